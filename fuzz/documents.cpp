// Manifests, indexes and configurations of strangers, together with what their source says of them.
#include "image/oci/documents.hpp"

#include "fuzz.hpp"
#include "holt/base/error.hpp"
#include "image/oci/media_types.hpp"

#include <algorithm>
#include <array>

using namespace holt;
using namespace holt::image;

namespace {

void check(const Descriptor& descriptor) {
  fuzz::require(is_digest(descriptor.digest) && descriptor.size <= INT64_MAX);
  fuzz::require(descriptor.media_type == bare_media_type(descriptor.media_type));
}

void check(const Index& index) {
  fuzz::require(index.manifests.size() <= k_index_entries);
  for (const Descriptor& entry : index.manifests) check(entry);
  for (const Platform& platform : {Platform{}, Platform{.architecture = "arm64", .variant = "v8"}}) {
    try {
      const Descriptor& chosen = choose(index, platform);
      fuzz::require(!chosen.platform || chosen.platform->os == platform.os);
    } catch (const Error& error) {
      fuzz::require(error.code() == ErrorCode::not_found);
    }
  }
}

void check(const Manifest& manifest) {
  fuzz::require(manifest.layers.size() <= k_layers);
  check(manifest.config);
  for (const Descriptor& layer : manifest.layers) {
    check(layer);
    fuzz::require(media_kind(layer.media_type) == MediaKind::layer);
  }
}

bool is_path_below_root(std::string_view path) {
  return path.starts_with('/') && path.find("/../") == std::string_view::npos && !path.ends_with("/..");
}

void check(const ConfigDocument& document) {
  fuzz::require(document.diff_ids.size() <= k_layers && std::ranges::all_of(document.diff_ids, is_digest));
  fuzz::require(parse_platform(document.platform.text()) == document.platform);
  const ImageConfig& config = document.config;
  fuzz::require(config.working_dir.empty() || is_path_below_root(config.working_dir));
  fuzz::require(std::ranges::all_of(config.volumes, is_path_below_root));
  for (const std::string& entry : config.env) {
    fuzz::require(entry.find('=') != std::string::npos && !entry.starts_with('='));
  }
  for (const auto* words : {&config.env, &config.entrypoint, &config.cmd}) {
    for (const std::string& word : *words) fuzz::require(word.find('\0') == std::string::npos);
  }
}

/// An error tells what it is about in words that are fit to be shown.
void check(const Error& error) {
  std::string_view sentence = error.what();
  fuzz::require(!sentence.empty() && error.code() != ErrorCode::internal);
  fuzz::require(std::ranges::none_of(sentence, [](char c) { return static_cast<unsigned char>(c) < 0x20; }));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::array<std::string_view, 6> k_types{
      "", k_oci_index, k_oci_manifest, k_docker_index, k_docker_manifest, "application/json; charset=utf-8"};
  fuzz::Input input(data, size);
  std::size_t choice = input.byte();
  try {
    if (choice == k_types.size()) {
      check(parse_config(input.all()));
      return 0;
    }
    std::string_view type = choice < k_types.size() ? k_types[choice] : input.take(choice);
    std::visit([](const auto& document) { check(document); }, parse_document(input.all(), type));
  } catch (const Error& error) {
    check(error);
  }
  return 0;
}
