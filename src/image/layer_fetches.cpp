#include "image/layer_fetches.hpp"

#include "holt/base/error.hpp"
#include "image/space.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <map>

#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr std::size_t k_most_threads = 16;

/// Tells of what passes through.
class ReportingSink final : public BlobSink {
 public:
  ReportingSink(BlobDownload& below, LayerProgressReporter& progress, std::size_t layer)
      : below_(below), progress_(progress), layer_(layer) {}
  std::uint64_t offset() const override { return below_.offset(); }
  void restart() override { below_.restart(); }
  void write(std::string_view bytes) override {
    below_.write(bytes);
    progress_.report(layer_, LayerProgress::Step::downloading, below_.offset());
  }
  bool is_right() override { return below_.is_right(); }

 private:
  BlobDownload& below_;
  LayerProgressReporter& progress_;
  std::size_t layer_;
};

}  // namespace

LayerFetches::LayerFetches(const BlobStore& blobs, ImageSource& source, const std::vector<Descriptor>& layers,
                           LayerProgressReporter& progress, CancellationToken stop)
    : blobs_(blobs), source_(source), progress_(progress), stop_(std::move(stop)) {
  std::map<std::string_view, std::size_t> known;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    auto [job, fresh] = known.emplace(layers[layer].digest, jobs_.size());
    if (fresh) {
      Job& made = jobs_.emplace_back();
      made.blob = layers[layer];
      made.layer = layer;
    }
    job_of_.push_back(job->second);
    progress_.report(layer, LayerProgress::Step::waiting, 0);
  }
  std::size_t threads = std::clamp<std::size_t>(source.parallel_fetches(), 1, k_most_threads);
  for (std::size_t i = 0; i < std::min(threads, jobs_.size()); ++i) threads_.emplace_back([this] { work(); });
}

LayerFetches::~LayerFetches() {
  if (!threads_.empty()) cancel();
}

void LayerFetches::cancel() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stop_.cancel();
}

void LayerFetches::join() {
  wait();
  std::lock_guard lock(mutex_);
  if (first_failure_) std::rethrow_exception(first_failure_);
}

void LayerFetches::work() {
  for (std::size_t i = next_++; i < jobs_.size(); i = next_++) {
    try {
      fetch(jobs_[i]);
    } catch (...) {
      fail(jobs_[i], std::current_exception());
    }
  }
}

void LayerFetches::fail(Job& job, std::exception_ptr failure) {
  {
    std::lock_guard lock(mutex_);
    if (!stopped_) first_failure_ = failure;
    stopped_ = true;
  }
  // The failure first: whoever the stop wakes asks for it.
  stop_.cancel();
  job.stream.fail(std::move(failure));
}

void LayerFetches::fetch(Job& job) {
  FileLock lock = blobs_.lock(job.blob.digest, stop_);
  if (use_stored(job)) return;
  download(job, std::move(lock));
}

bool LayerFetches::use_stored(Job& job) {
  auto size = blobs_.size(job.blob.digest);
  if (!size) return false;
  if (*size == job.blob.size) {
    Fd file(::open(blobs_.path(job.blob.digest).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file) throw system_error(errno, "read a blob of the image store", job.blob.digest);
    job.stream.open(std::move(file), *size);
  }
  if (blobs_.is_sound(job.blob.digest, stop_)) {
    if (*size != job.blob.size) {
      throw digest_mismatch(job.blob.digest,
                            fmt::format("the manifest gives it {} bytes, it has {}", job.blob.size, *size));
    }
    job.stream.finish();
    progress_.report(job.layer, LayerProgress::Step::present, *size);
    return true;
  }
  job.stream.restart();
  blobs_.discard(job.blob.digest);
  return false;
}

void LayerFetches::download(Job& job, FileLock lock) {
  BlobDownload download(blobs_, job.blob, std::move(lock), job.stream, stop_);
  ReportingSink sink(download, progress_, job.layer);
  try {
    if (download.offset() < job.blob.size) {
      // Where it begins, for whoever counts what comes.
      progress_.report(job.layer, LayerProgress::Step::downloading, download.offset());
      source_.fetch(job.blob, sink);
    }
    if (download.resumed() && !download.is_right()) {
      // What an earlier try left was not what it should have been.
      download.restart();
      source_.fetch(job.blob, sink);
    }
    download.commit();
  } catch (const Error& error) {
    // Neither wrong bytes nor a full disk are for a later try to go on from.
    if (error.code() == ErrorCode::digest_mismatch) download.discard();
    if (error.code() != ErrorCode::storage_full) throw;
    Error full = with_space_need(error, {.folder = blobs_.images(),
                                         .file = blobs_.partial(job.blob.digest),
                                         .bytes = job.blob.size,
                                         .what = fmt::format("the layer {}", job.blob.digest)});
    download.discard();
    throw full;
  }
  std::lock_guard held(mutex_);
  downloaded_.push_back(job.blob.digest);
}

}  // namespace holt::image
