// Who is told how far the layers are.
#pragma once

#include "holt/image/pull.hpp"
#include "image/oci/documents.hpp"

#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

namespace holt::image {

/// Passes on what threads say of layers, one call at a time and of each layer a few times a second. A change
/// of step is always passed on. Thread-safe; what the sink throws, the caller gets.
class LayerProgressReporter {
 public:
  LayerProgressReporter(ProgressSink sink, const std::vector<Descriptor>& layers);
  void report(std::size_t layer, LayerProgress::Step step, std::uint64_t done);

 private:
  struct State {
    LayerProgress progress;
    std::chrono::steady_clock::time_point told;
  };
  ProgressSink sink_;
  std::mutex mutex_;
  std::vector<State> layers_;
};

}  // namespace holt::image
