#include "image/fake_source.hpp"

#include "holt/base/error.hpp"
#include "image/oci/media_types.hpp"

#include <algorithm>

namespace holt::image::test {

FakeImage::FakeImage(const TestImage& image, std::string (*pack)(std::string_view))
    : config(image.config.is_null() ? config_of(image.layers) : image.config),
      manifest(manifest_of(Json(), Json::array())) {
  for (const std::string& tar : image.layers) {
    std::string bytes = pack ? pack(tar) : tar;
    manifest["layers"].push_back(descriptor(k_oci_layer, bytes));
    blobs[digest_of(bytes)] = bytes;
  }
  use_config();
}

void FakeImage::use_config() {
  std::string bytes = dump_json(config);
  manifest["config"] = descriptor(k_oci_config, bytes);
  blobs[digest_of(bytes)] = bytes;
}

RawDocument FakeSource::top() {
  ++documents;
  return {.bytes = image_.top(), .media_type = image_.manifest["mediaType"]};
}

RawDocument FakeSource::document(const Descriptor& descriptor, std::size_t limit) {
  ++documents;
  std::string bytes = bytes_of(descriptor);
  if (bytes.size() > limit) throw Error(ErrorCode::limit_exceeded, "the document is too large");
  return {.bytes = bytes, .media_type = {}};
}

void FakeSource::fetch(const Descriptor& descriptor, BlobSink& sink) {
  std::string bytes = bytes_of(descriptor);
  {
    std::lock_guard lock(mutex_);
    fetches_[descriptor.digest].push_back(sink.offset());
  }
  while (sink.offset() < bytes.size()) {
    std::uint64_t at = sink.offset();
    if (before_piece) before_piece(descriptor, at, sink);
    if (sink.offset() != at) continue;
    sink.write(std::string_view(bytes).substr(at, piece));
  }
}

std::map<std::string, std::vector<std::uint64_t>> FakeSource::fetches() const {
  std::lock_guard lock(mutex_);
  return fetches_;
}

std::string FakeSource::bytes_of(const Descriptor& descriptor) const {
  auto found = image_.blobs.find(descriptor.digest);
  if (found == image_.blobs.end()) throw Error(ErrorCode::not_found, "the fake registry has no such blob");
  return alter ? alter(descriptor, found->second) : found->second;
}

}  // namespace holt::image::test
