#include "holt/base/encoding.hpp"
#include "messages/object_builder.hpp"
#include "messages/reading.hpp"

#include <algorithm>
#include <array>

namespace holt {
namespace {

constexpr std::array<std::string_view, 8> k_file_providers = {
    "anthropic", "openai", "google", "google-cloud", "google-gla", "google-vertex", "bedrock", "xai"};

std::string short_digest(std::string_view bytes) {
  return sha1_hex(bytes).substr(0, 6);
}

/// A text that counts as not given when it is empty.
std::optional<std::string> given_text(const Fields& fields, std::string_view name) {
  auto text = fields.optional_text(name);
  return text && text->empty() ? std::nullopt : text;
}

TextContent read_text_content(const Fields& fields) {
  return {.content = fields.text("content"), .metadata = fields.any("metadata")};
}

StructuredContent read_structured_content(const Fields& fields) {
  return {.content = fields.text("content"),
          .metadata = fields.any("metadata"),
          .value = fields.required_any("value"),
          .tag = fields.any("tag"),
          .description = fields.optional_text("description")};
}

ForceDownload read_force_download(const Fields& fields) {
  const Json* value = fields.find("force_download");
  if (!value) return ForceDownload::no;
  if (*value == "allow-local") return ForceDownload::allow_local;
  return need_boolean(*value, fields.place().key("force_download")) ? ForceDownload::yes : ForceDownload::no;
}

FileUrl read_file_url(const Fields& fields, UrlKind kind) {
  return {.kind = kind,
          .url = fields.text("url"),
          .force_download = read_force_download(fields),
          .vendor_metadata = fields.optional_object("vendor_metadata"),
          .media_type = given_text(fields, "media_type"),
          .identifier = given_text(fields, "identifier")};
}

UploadedFile read_uploaded_file(const Fields& fields) {
  UploadedFile file{.file_id = fields.text("file_id"),
                    .provider_name = fields.text("provider_name"),
                    .vendor_metadata = fields.optional_object("vendor_metadata"),
                    .media_type = given_text(fields, "media_type"),
                    .identifier = given_text(fields, "identifier")};
  if (std::ranges::find(k_file_providers, file.provider_name) == k_file_providers.end()) {
    refuse(fields.place().key("provider_name"),
           "Expected " + quoted_list(k_file_providers.data(), k_file_providers.size()));
  }
  return file;
}

CachePoint read_cache_point(const Fields& fields) {
  CachePoint point{.ttl = fields.text_or("ttl", "5m")};
  if (point.ttl != "5m" && point.ttl != "1h") refuse(fields.place().key("ttl"), "Expected '5m' or '1h'");
  return point;
}

BinaryContent read_binary_fields(const Fields& fields) {
  std::string text = fields.text("data");
  auto bytes = base64_decode(text);
  if (!bytes) refuse(fields.place().key("data"), "Not base64");
  return {.data = std::move(*bytes),
          .media_type = fields.text("media_type"),
          .vendor_metadata = fields.optional_object("vendor_metadata"),
          .identifier = given_text(fields, "identifier")};
}

/// Without a kind the first shape that fits is taken, as the reference's union does.
UserContentItem read_item_without_kind(const Fields& fields) {
  const Json* content = fields.find("content");
  if (!content || !content->is_string()) return read_cache_point(fields);
  if (fields.find("value")) return read_structured_content(fields);
  return read_text_content(fields);
}

Json optional_to_json(const std::optional<std::string>& text) {
  return text ? Json(*text) : Json(nullptr);
}

Json force_download_to_json(ForceDownload force) {
  if (force == ForceDownload::allow_local) return "allow-local";
  return force == ForceDownload::yes;
}

struct ItemWriter {
  Json operator()(const std::string& text) const { return text; }
  Json operator()(const TextContent& text) const {
    return ObjectBuilder(3)
        .add("content", text.content)
        .add("metadata", text.metadata)
        .add("kind", "text-content")
        .take();
  }
  Json operator()(const StructuredContent& item) const {
    return ObjectBuilder(6)
        .add("content", item.content)
        .add("metadata", item.metadata)
        .add("kind", "structured-content")
        .add("value", item.value)
        .add("tag", item.tag)
        .add("description", optional_to_json(item.description))
        .take();
  }
  Json operator()(const FileUrl& url) const {
    return ObjectBuilder(6)
        .add("url", url.url)
        .add("force_download", force_download_to_json(url.force_download))
        .add("vendor_metadata", url.vendor_metadata)
        .add("kind", std::string(word_of(url.kind)))
        .add("media_type", optional_to_json(media_type_of(url)))
        .add("identifier", identifier_of(url))
        .take();
  }
  Json operator()(const BinaryContent& binary) const {
    return ObjectBuilder(5)
        .add("data", base64_encode(binary.data, Base64Alphabet::url_safe))
        .add("media_type", binary.media_type)
        .add("vendor_metadata", binary.vendor_metadata)
        .add("kind", "binary")
        .add("identifier", identifier_of(binary))
        .take();
  }
  Json operator()(const UploadedFile& file) const {
    return ObjectBuilder(6)
        .add("file_id", file.file_id)
        .add("provider_name", file.provider_name)
        .add("vendor_metadata", file.vendor_metadata)
        .add("kind", "uploaded-file")
        .add("media_type", media_type_of(file))
        .add("identifier", identifier_of(file))
        .take();
  }
  Json operator()(const CachePoint& point) const {
    return ObjectBuilder(2).add("kind", "cache-point").add("ttl", point.ttl).take();
  }
};

}  // namespace

std::string identifier_of(const FileUrl& url) {
  return url.identifier ? *url.identifier : short_digest(url.url);
}
std::string identifier_of(const BinaryContent& binary) {
  return binary.identifier ? *binary.identifier : short_digest(binary.data);
}
std::string identifier_of(const UploadedFile& file) {
  return file.identifier ? *file.identifier : short_digest(file.file_id);
}

BinaryContent read_binary(Json& value, const Place& place) {
  Fields fields(value, place);
  if (fields.text_or("kind", "binary") != "binary") refuse(place.key("kind"), "Expected 'binary'");
  return read_binary_fields(fields);
}

UserContentItem read_content_item(Json& value, const Place& place) {
  if (value.is_string()) return std::move(value.get_ref<std::string&>());
  if (!value.is_object()) refuse(place, "Expected a string or an object");
  Fields fields(value, place);
  if (!fields.find("kind")) return read_item_without_kind(fields);
  std::string kind = fields.text("kind");
  if (kind == "text-content") return read_text_content(fields);
  if (kind == "structured-content") return read_structured_content(fields);
  if (kind == "binary") return read_binary_fields(fields);
  if (kind == "uploaded-file") return read_uploaded_file(fields);
  if (kind == "cache-point") return read_cache_point(fields);
  if (auto url_kind = enum_from_word<UrlKind>(kind)) return read_file_url(fields, *url_kind);
  refuse(place.key("kind"), "no kind of user content: " + printable(kind, 80));
}

Json content_to_json(const UserContentItem& item) {
  return std::visit(ItemWriter{}, item);
}

UserContentItem content_from_json(const Json& value) {
  Json copy = value;
  return read_content_item(copy, Place());
}

}  // namespace holt
