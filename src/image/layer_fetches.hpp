// The layers of an image on their way into the store, several at once.
//
//   LayerFetches fetches(blobs, source, manifest.layers, progress, stop);
//   read fetches.stream(0), stream(1), ... while they grow
//   fetches.join();
#pragma once

#include "holt/base/cancellation.hpp"
#include "image/blob_stream.hpp"
#include "image/blobs.hpp"
#include "image/layer_progress.hpp"
#include "image/oci/source.hpp"

#include <atomic>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace holt::image {

/// Fetches what the store lacks and checks what it has, lowest layer first. The first failure ends all.
/// Methods are for the thread that made it.
class LayerFetches {
 public:
  /// `stop` is cancelled at the first failure, and by cancel().
  LayerFetches(const BlobStore& blobs, ImageSource& source, const std::vector<Descriptor>& layers,
               LayerProgressReporter& progress, CancellationToken stop);
  ~LayerFetches();
  LayerFetches(const LayerFetches&) = delete;
  LayerFetches& operator=(const LayerFetches&) = delete;

  /// Layers with one digest share a stream.
  BlobStream& stream(std::size_t layer) { return jobs_[job_of_.at(layer)].stream; }
  /// Ends what is under way, without a failure.
  void cancel();
  /// Waits for all threads.
  void wait() { threads_.clear(); }
  /// Waits for all threads. Throws the first failure.
  void join();
  /// Digests of what was downloaded whole. After wait() or join().
  const std::vector<std::string>& downloaded() const { return downloaded_; }

 private:
  struct Job {
    Descriptor blob;
    std::size_t layer = 0;  ///< the first with this blob
    BlobStream stream;
  };

  void work();
  void fetch(Job& job);
  /// True when the store had it, whole. Like download(), under the blob's lock.
  bool use_stored(Job& job);
  void download(Job& job, FileLock lock);
  void fail(Job& job, std::exception_ptr failure);

  const BlobStore& blobs_;
  ImageSource& source_;
  LayerProgressReporter& progress_;
  CancellationToken stop_;
  std::deque<Job> jobs_;
  std::vector<std::size_t> job_of_;
  std::atomic<std::size_t> next_ = 0;

  std::mutex mutex_;
  bool stopped_ = false;
  std::exception_ptr first_failure_;
  std::vector<std::string> downloaded_;
  std::vector<std::jthread> threads_;
};

}  // namespace holt::image
