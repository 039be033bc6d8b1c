#include "image/layout_builder.hpp"

#include "holt/base/encoding.hpp"
#include "holt/base/files.hpp"
#include "image/tar_builder.hpp"

#include <archive.h>
#include <archive_entry.h>

namespace holt::image::test {

std::string digest_of(std::string_view bytes) {
  return "sha256:" + sha256_hex(bytes);
}

Json descriptor(std::string_view media_type, std::string_view bytes) {
  return Json{{"mediaType", std::string(media_type)}, {"digest", digest_of(bytes)}, {"size", bytes.size()}};
}

Descriptor parsed_descriptor(std::string_view media_type, std::string_view bytes) {
  return {.media_type = std::string(media_type), .digest = digest_of(bytes), .size = bytes.size()};
}

Json config_of(const std::vector<std::string>& layers, const Json& process) {
  Json diff_ids = Json::array();
  for (const std::string& layer : layers) diff_ids.push_back(digest_of(layer));
  return Json{{"architecture", "amd64"},
              {"os", "linux"},
              {"config", process},
              {"rootfs", {{"type", "layers"}, {"diff_ids", diff_ids}}}};
}

Json manifest_of(const Json& config, const Json& layers) {
  return Json{{"schemaVersion", 2},
              {"mediaType", std::string(k_oci_manifest)},
              {"config", config},
              {"layers", layers}};
}

Json index_of(const Json& entries) {
  return Json{{"schemaVersion", 2}, {"mediaType", std::string(k_oci_index)}, {"manifests", entries}};
}

LayoutBuilder::LayoutBuilder() {
  files_["oci-layout"] = R"({"imageLayoutVersion":"1.0.0"})";
  files_["index.json"] = dump_json(index_of(entries_));
}

Json LayoutBuilder::blob(std::string_view media_type, const std::string& bytes) {
  files_["blobs/sha256/" + sha256_hex(bytes)] = bytes;
  return descriptor(media_type, bytes);
}

Json LayoutBuilder::image(const TestImage& image) {
  Json layers = Json::array();
  for (const std::string& layer : image.layers) layers.push_back(blob(k_oci_layer, layer));
  Json config =
      blob(k_oci_config, dump_json(image.config.is_null() ? config_of(image.layers) : image.config));
  return blob(k_oci_manifest, dump_json(manifest_of(config, layers)));
}

LayoutBuilder& LayoutBuilder::list(Json descriptor, std::string_view name) {
  if (!name.empty()) descriptor["annotations"]["org.opencontainers.image.ref.name"] = std::string(name);
  entries_.push_back(std::move(descriptor));
  return file("index.json", dump_json(index_of(entries_)));
}

LayoutBuilder& LayoutBuilder::file(const std::string& path, std::string content) {
  files_[path] = std::move(content);
  return *this;
}

LayoutBuilder& LayoutBuilder::without(const std::string& path) {
  files_.erase(path);
  return *this;
}

void LayoutBuilder::write(const std::filesystem::path& folder) const {
  for (const auto& [path, content] : files_) {
    make_private_directory((folder / path).parent_path());
    write_file_atomically(folder / path, content);
  }
}

std::string LayoutBuilder::tar() const {
  return tar_of(files_);
}

std::map<std::string, std::string> saved_files(const std::vector<SavedImage>& images) {
  std::map<std::string, std::string> files;
  Json manifest = Json::array();
  for (const SavedImage& saved : images) {
    const TestImage& image = saved.image;
    std::string config = dump_json(image.config.is_null() ? config_of(image.layers) : image.config);
    Json layers = Json::array();
    for (const std::string& layer : image.layers) {
      std::string path = sha256_hex(layer) + "/layer.tar";
      files[path] = layer;
      layers.push_back(path);
    }
    std::string config_path = sha256_hex(config) + ".json";
    files[config_path] = config;
    manifest.push_back(Json{{"Config", config_path}, {"RepoTags", saved.tags}, {"Layers", layers}});
  }
  files["manifest.json"] = dump_json(manifest);
  return files;
}

std::string tar_of(const std::map<std::string, std::string>& files) {
  TarBuilder tar;
  for (const auto& [path, content] : files) tar.file(path, content);
  return tar.finish();
}

std::string compressed(const std::string& bytes, int (*filter)(archive*)) {
  std::string out(bytes.size() + 65536, '\0');
  std::size_t used = 0;
  archive* writer = archive_write_new();
  filter(writer);
  archive_write_set_format_raw(writer);
  archive_write_set_bytes_in_last_block(writer, 1);
  archive_write_open_memory(writer, out.data(), out.size(), &used);
  archive_entry* entry = archive_entry_new();
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_write_header(writer, entry);
  archive_write_data(writer, bytes.data(), bytes.size());
  archive_entry_free(entry);
  archive_write_close(writer);
  archive_write_free(writer);
  out.resize(used);
  return out;
}

}  // namespace holt::image::test
