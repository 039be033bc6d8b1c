// Images for tests, as the files of an OCI layout or of what `docker save` wrote before 2024.
//
//   LayoutBuilder layout;
//   layout.list(layout.image({.layers = {tar}}), "app:1");
//   layout.write(folder);   // or layout.tar()
#pragma once

#include "holt/base/json.hpp"
#include "image/oci/documents.hpp"
#include "image/oci/media_types.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

struct archive;

namespace holt::image::test {

std::string digest_of(std::string_view bytes);

/// A descriptor as documents write it.
Json descriptor(std::string_view media_type, std::string_view bytes);
/// The same as the parsed value.
Descriptor parsed_descriptor(std::string_view media_type, std::string_view bytes);

/// A configuration of linux/amd64 with the digests of plain tars.
Json config_of(const std::vector<std::string>& layers, const Json& process = Json::object());
Json manifest_of(const Json& config, const Json& layers);
Json index_of(const Json& entries);

struct TestImage {
  std::vector<std::string> layers = {};  ///< plain tars, lowest first
  Json config = nullptr;                 ///< null: config_of(layers)
};

/// The files of an OCI layout.
class LayoutBuilder {
 public:
  LayoutBuilder();
  /// Adds a blob; its descriptor.
  Json blob(std::string_view media_type, const std::string& bytes);
  /// Adds an image's blobs; the descriptor of its manifest.
  Json image(const TestImage& image);
  /// Writes an entry into index.json, under a name if it is not empty.
  LayoutBuilder& list(Json descriptor, std::string_view name = {});
  /// A file beside them, or instead of one.
  LayoutBuilder& file(const std::string& path, std::string content);
  LayoutBuilder& without(const std::string& path);

  const std::map<std::string, std::string>& files() const { return files_; }
  void write(const std::filesystem::path& folder) const;
  std::string tar() const;

 private:
  std::map<std::string, std::string> files_;
  Json entries_ = Json::array();
};

/// The tar of `docker save` without an OCI layout: manifest.json, HEX.json, HEX/layer.tar.
struct SavedImage {
  TestImage image;
  std::vector<std::string> tags = {};
};
std::map<std::string, std::string> saved_files(const std::vector<SavedImage>& images);
std::string tar_of(const std::map<std::string, std::string>& files);

/// Bytes behind a filter of libarchive, e.g. archive_write_add_filter_gzip.
std::string compressed(const std::string& bytes, int (*filter)(archive*));

}  // namespace holt::image::test
