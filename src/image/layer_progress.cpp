#include "image/layer_progress.hpp"

namespace holt::image {
namespace {

constexpr auto k_interval = std::chrono::milliseconds(100);

}  // namespace

LayerProgressReporter::LayerProgressReporter(ProgressSink sink, const std::vector<Descriptor>& layers)
    : sink_(std::move(sink)) {
  for (const Descriptor& layer : layers) {
    layers_.push_back({.progress = {.digest = layer.digest,
                                    .index = layers_.size(),
                                    .layers = layers.size(),
                                    .total = layer.size},
                       .told = {}});
  }
}

void LayerProgressReporter::report(std::size_t layer, LayerProgress::Step step, std::uint64_t done) {
  if (!sink_) return;
  std::lock_guard lock(mutex_);
  State& state = layers_.at(layer);
  // Unpacked while it still comes: that it comes is what takes the time.
  if (step == LayerProgress::Step::unpacking && state.progress.step == LayerProgress::Step::downloading &&
      state.progress.done < state.progress.total) {
    return;
  }
  auto now = std::chrono::steady_clock::now();
  bool same_step = step == state.progress.step && state.told != std::chrono::steady_clock::time_point();
  if (same_step && now - state.told < k_interval && done < state.progress.total) {
    state.progress.done = done;
    return;
  }
  state.progress.step = step;
  state.progress.done = done;
  state.told = now;
  sink_(state.progress);
}

}  // namespace holt::image
