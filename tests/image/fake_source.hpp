// An image in memory, and a source that serves it: well, badly or slowly.
//
//   FakeImage image({.layers = {tar}});
//   FakeSource source(image);
//   source.alter = [](const Descriptor& blob, std::string bytes) { return bytes + "x"; };
#pragma once

#include "holt/image/store.hpp"
#include "image/compression.hpp"
#include "image/layout_builder.hpp"
#include "image/oci/source.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace holt::image::test {

/// One image: documents that can be changed, and the bytes behind their digests.
struct FakeImage {
  /// `pack` compresses the layers.
  explicit FakeImage(const TestImage& image, std::string (*pack)(std::string_view) = gzip);
  /// Makes `config` the configuration of the manifest.
  void use_config();
  std::string top() const { return dump_json(manifest); }
  std::string top_digest() const { return digest_of(top()); }
  /// The image's.
  std::string digest() const { return manifest["config"]["digest"]; }
  std::string layer(std::size_t i) const { return manifest["layers"][i]["digest"]; }

  Json config;
  Json manifest;
  std::map<std::string, std::string> blobs = {};
};

class FakeSource final : public ImageSource {
 public:
  explicit FakeSource(const FakeImage& image, std::string name = "the fake registry")
      : image_(image), name_(std::move(name)) {}

  std::string name() const override { return name_; }
  RawDocument top() override;
  RawDocument document(const Descriptor& descriptor, std::size_t limit) override;
  void fetch(const Descriptor& descriptor, BlobSink& sink) override;
  std::size_t parallel_fetches() const override { return threads; }

  /// What is sent instead of a blob's bytes.
  std::function<std::string(const Descriptor&, std::string)> alter = nullptr;
  /// Called before each piece with the blob and where the piece begins.
  std::function<void(const Descriptor&, std::uint64_t, BlobSink&)> before_piece = nullptr;
  std::size_t piece = std::size_t{64} << 10;
  std::size_t threads = 3;

  /// Where fetches of a blob began, in order.
  std::map<std::string, std::vector<std::uint64_t>> fetches() const;
  int documents = 0;

 private:
  std::string bytes_of(const Descriptor& descriptor) const;
  FakeImage image_;
  std::string name_;
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<std::uint64_t>> fetches_;
};

}  // namespace holt::image::test
