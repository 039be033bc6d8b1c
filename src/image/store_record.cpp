#include "image/store_record.hpp"

#include "holt/base/json.hpp"

#include <algorithm>

namespace holt::image {
namespace {

constexpr int k_record_version = 1;

/// {"NAME": {}}, as the specification writes sets.
Json set_json(const std::vector<std::string>& names) {
  Json json = Json::object();
  for (const std::string& name : names) json[name] = Json::object();
  return json;
}

std::vector<std::string> set_of(const Json& json, const char* member) {
  std::vector<std::string> names;
  if (auto found = json.find(member); found != json.end()) {
    for (const auto& [name, unused] : found->items()) names.push_back(name);
  }
  return names;
}

/// Field names of the OCI image specification, config.md. The last four only when they say something: the
/// digests of images without them stay what they were.
Json config_json(const ImageConfig& config) {
  Json json{{"Env", config.env},
            {"WorkingDir", config.working_dir},
            {"User", config.user},
            {"Entrypoint", config.entrypoint},
            {"Cmd", config.cmd}};
  if (!config.stop_signal.empty()) json["StopSignal"] = config.stop_signal;
  if (!config.exposed_ports.empty()) json["ExposedPorts"] = set_json(config.exposed_ports);
  if (!config.volumes.empty()) json["Volumes"] = set_json(config.volumes);
  if (!config.labels.empty()) json["Labels"] = config.labels;
  return json;
}

ImageConfig config_of(const Json& json) {
  return {.env = json.at("Env"),
          .working_dir = json.at("WorkingDir"),
          .user = json.at("User"),
          .entrypoint = json.at("Entrypoint"),
          .cmd = json.at("Cmd"),
          .stop_signal = json.value("StopSignal", std::string()),
          .exposed_ports = set_of(json, "ExposedPorts"),
          .volumes = set_of(json, "Volumes"),
          .labels = json.value("Labels", std::map<std::string, std::string>())};
}

/// True for what may be a file name, and for nothing at all.
bool is_digest_or_empty(std::string_view text) {
  return text.empty() || is_digest(text);
}

/// Runs `read` on the JSON value of a text; nothing when either fails.
template <class T, class Read>
std::optional<T> read_record(std::string_view text, Read read) {
  auto json = parse_json(text);
  if (!json) return std::nullopt;
  try {
    if (json->at("version") != k_record_version) return std::nullopt;
    return read(*json);
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

std::string oci_config(const ImageConfig& config, std::string_view layer_digest) {
  return dump_json(
      Json{{"architecture", "amd64"},
           {"os", "linux"},
           {"config", config_json(config)},
           {"rootfs", {{"type", "layers"}, {"diff_ids", Json::array({std::string(layer_digest)})}}}});
}

std::string write_image_record(const Image& image) {
  Json json{{"version", k_record_version},   {"digest", image.digest},
            {"diskBytes", image.disk_bytes}, {"created", image.created},
            {"platform", image.platform},    {"config", config_json(image.config)}};
  if (!image.manifest_digest.empty()) json["manifest"] = image.manifest_digest;
  if (!image.layers.empty()) json["layers"] = image.layers;
  if (!image.content_digest.empty()) json["contentDigest"] = image.content_digest;
  return dump_json(json, {.indent = 2}) + "\n";
}

std::optional<Image> read_image_record(std::string_view text) {
  auto image = read_record<Image>(text, [](const Json& json) {
    Image read;
    read.digest = json.at("digest");
    read.disk_bytes = json.at("diskBytes");
    read.created = json.at("created");
    read.platform = json.at("platform");
    read.config = config_of(json.at("config"));
    read.manifest_digest = json.value("manifest", std::string());
    read.layers = json.value("layers", std::vector<std::string>());
    read.content_digest = json.value("contentDigest", std::string());
    return read;
  });
  if (!image || !is_digest(image->digest) || !is_digest_or_empty(image->manifest_digest) ||
      !std::ranges::all_of(image->layers, is_digest)) {
    return std::nullopt;
  }
  return image;
}

std::string write_reference_record(const ReferenceRecord& record) {
  Json json{{"version", k_record_version}, {"reference", record.reference}, {"digest", record.digest}};
  if (!record.manifest.empty()) json["manifest"] = record.manifest;
  if (!record.top.empty()) json["top"] = record.top;
  return dump_json(json) + "\n";
}

std::optional<ReferenceRecord> read_reference_record(std::string_view text) {
  auto record = read_record<ReferenceRecord>(text, [](const Json& json) {
    return ReferenceRecord{.reference = json.at("reference"),
                           .digest = json.at("digest"),
                           .manifest = json.value("manifest", std::string()),
                           .top = json.value("top", std::string())};
  });
  if (!record || !is_digest(record->digest) || !is_digest_or_empty(record->manifest) ||
      !is_digest_or_empty(record->top)) {
    return std::nullopt;
  }
  return record;
}

}  // namespace holt::image
