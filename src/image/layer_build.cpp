#include "image/layer_build.hpp"

#include "holt/base/error.hpp"
#include "image/byte_source.hpp"
#include "image/folders.hpp"
#include "image/image_builder.hpp"
#include "image/space.hpp"

#include <fmt/format.h>

namespace holt::image {
namespace {

/// Headers of one tar member, with those of PAX, at most.
constexpr std::uint64_t k_member_overhead = 4096;

/// Tells how far the reader is.
class ReportingSource final : public ByteSource {
 public:
  ReportingSource(FollowingSource& below, LayerProgressReporter& progress, std::size_t layer)
      : below_(below), progress_(progress), layer_(layer) {}
  std::string_view read() override {
    progress_.report(layer_, LayerProgress::Step::unpacking, below_.position());
    return below_.read();
  }

 private:
  FollowingSource& below_;
  LayerProgressReporter& progress_;
  std::size_t layer_;
};

/// Errors that wrong bytes can cause.
bool is_about_content(const Error& error) {
  return error.code() == ErrorCode::image_invalid || error.code() == ErrorCode::not_supported ||
         error.code() == ErrorCode::limit_exceeded;
}

class LayerBuild {
 public:
  LayerBuild(const LayerBuildRequest& request, LayerFetches& fetches, LayerProgressReporter& progress,
             const CancellationToken& stop)
      : request_(request), fetches_(fetches), progress_(progress), stop_(stop) {}

  void run(BlobStream::Follow follow) {
    std::filesystem::remove(request_.ext4);
    left_ = request_.limits.unpacked_bytes + header_budget(request_.limits);
    ImageBuilder builder(
        request_.ext4,
        {.limits = request_.limits, .disk_bytes = request_.disk_bytes, .progress = nullptr, .cancel = stop_});
    std::size_t layer = 0;
    try {
      for (; layer < layers(); ++layer) apply(builder, layer, follow);
      builder.finish(digest_digits(request_.image_digest));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::storage_full) throw;
      throw with_space_need(error, {.folder = request_.images,
                                    .file = request_.ext4,
                                    .bytes = builder.known_bytes() + bytes_behind(layer),
                                    .what = fmt::format("the file system of {}", request_.name)});
    }
  }

 private:
  std::size_t layers() const { return request_.documents.manifest.layers.size(); }

  /// Compressed bytes of the layers behind one: they are hardly more when they are unpacked.
  std::uint64_t bytes_behind(std::size_t layer) const {
    std::uint64_t bytes = 0;
    while (++layer < layers()) bytes += request_.documents.manifest.layers[layer].size;
    return bytes;
  }

  void apply(ImageBuilder& builder, std::size_t layer, BlobStream::Follow follow) {
    BlobStream& stream = fetches_.stream(layer);
    FollowingSource blob(stream, follow, stop_);
    ReportingSource reported(blob, progress_, layer);
    std::string diff_id;
    try {
      DecompressedSource unpacked(reported, Compressions::layers);
      MeteredSource tar(unpacked, left_);
      builder.apply_layer(tar);
      tar.drain();
      left_ -= tar.count();
      diff_id = "sha256:" + tar.digest_hex();
      while (!reported.read().empty()) {
      }
    } catch (const Error& error) {
      if (!is_about_content(error)) throw;
      // Of bytes that are not the layer's, only that is to be said.
      stream.wait_end();
      if (stream.generation() != blob.generation()) throw BlobRestarted{};
      throw about_layer(error, layer);
    }
    check_diff_id(layer, diff_id);
    progress_.report(layer, LayerProgress::Step::done, request_.documents.manifest.layers[layer].size);
  }

  Error about_layer(const Error& error, std::size_t layer) const {
    const std::string& digest = request_.documents.manifest.layers[layer].digest;
    return {error.code(),
            fmt::format("unpack layer {} of {} ({}): {}", layer + 1, layers(), digest, error.what()),
            {.subject = digest, .hint = error.hint(), .causes = error.causes()}};
  }

  void check_diff_id(std::size_t layer, const std::string& found) const {
    const std::string& expected = request_.documents.config.diff_ids[layer];
    if (found == expected) return;
    throw digest_mismatch(request_.documents.manifest.layers[layer].digest,
                          fmt::format("layer {} of {} unpacks to {}, the configuration says {}", layer + 1,
                                      layers(), found, expected));
  }

  const LayerBuildRequest& request_;
  LayerFetches& fetches_;
  LayerProgressReporter& progress_;
  const CancellationToken& stop_;
  std::uint64_t left_ = 0;  ///< bytes that layers may still unpack to
};

}  // namespace

std::uint64_t header_budget(const Limits& limits) {
  return limits.entries * k_member_overhead;
}

void build_layers(const LayerBuildRequest& request, LayerFetches& fetches, LayerProgressReporter& progress,
                  const CancellationToken& stop) {
  LayerBuild build(request, fetches, progress, stop);
  try {
    build.run(BlobStream::Follow::growing);
  } catch (const BlobRestarted&) {
    build.run(BlobStream::Follow::whole);
  }
  fetches.join();
}

}  // namespace holt::image
