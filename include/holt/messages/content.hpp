// What a user prompt or a tool result may hold beside text.
//
//   holt::UserContent prompt = std::vector<holt::UserContentItem>{
//       "What is this?", holt::BinaryContent{.data = png, .media_type = "image/png"}};
//
// Plain values. Depends on base/. The order of fields is the order written.
#pragma once

#include "holt/base/json.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace holt {

/// Text with data that is never sent.
struct TextContent {
  std::string content;
  Json metadata = nullptr;
};

/// A value with the text that it was rendered to.
struct StructuredContent {
  std::string content;
  Json metadata = nullptr;
  Json value = nullptr;
  Json tag = nullptr;
  std::optional<std::string> description = std::nullopt;
};

enum class UrlKind { image, audio, video, document };
enum class ForceDownload { no, yes, allow_local };

struct FileUrl {
  UrlKind kind = UrlKind::image;
  std::string url;
  ForceDownload force_download = ForceDownload::no;
  Json vendor_metadata = nullptr;  ///< object or null
  std::optional<std::string> media_type =
      std::nullopt;  ///< none: guessed from the extension, see media_type_of()
  std::optional<std::string> identifier = std::nullopt;  ///< none: 6 digits of the SHA-1 of the URL
};

/// A file's bytes.
struct BinaryContent {
  std::string data;  ///< raw bytes
  std::string media_type;
  Json vendor_metadata = nullptr;
  std::optional<std::string> identifier = std::nullopt;  ///< none: 6 digits of the SHA-1 of the bytes
};

struct UploadedFile {
  std::string file_id;
  std::string provider_name;
  Json vendor_metadata = nullptr;
  std::optional<std::string> media_type = std::nullopt;
  std::optional<std::string> identifier = std::nullopt;
};

struct CachePoint {
  std::string ttl = "5m";  ///< "5m" or "1h"
};

using UserContentItem = std::variant<std::string, TextContent, StructuredContent, FileUrl, BinaryContent,
                                     UploadedFile, CachePoint>;
/// A whole prompt: one text, or a list.
using UserContent = std::variant<std::string, std::vector<UserContentItem>>;

/// The identifier as it is written: the given one or the one made from the content.
std::string identifier_of(const FileUrl& url);
std::string identifier_of(const BinaryContent& binary);
std::string identifier_of(const UploadedFile& file);
/// The media type as it is written: the given one, else guessed; nothing when unknown.
std::optional<std::string> media_type_of(const FileUrl& url);
/// The same for an uploaded file: the given one, else guessed, else application/octet-stream.
std::string media_type_of(const UploadedFile& file);
/// The media type of a file name, path or URL by its extension (docs/reference.md, "Media types"); nothing
/// when unknown.
std::optional<std::string> media_type_by_extension(std::string_view name);

/// An item as history JSON, in full form (also what a tool result holds for a media item).
Json content_to_json(const UserContentItem& item);
/// An item from history JSON. Throws Error INVALID_CONFIG naming what is wrong.
UserContentItem content_from_json(const Json& value);

}  // namespace holt
