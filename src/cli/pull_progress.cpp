#include "cli/pull_progress.hpp"

#include "cli/units.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace holt::cli {
namespace {

constexpr std::size_t k_most_layers = 4096;  // shown; an image has fewer
constexpr std::size_t k_shown_digest = 12;

std::string_view word_of(image::LayerProgress::Step step) {
  using Step = image::LayerProgress::Step;
  switch (step) {
    case Step::waiting:
      return "waits";
    case Step::downloading:
      return "downloading";
    case Step::unpacking:
      return "unpacking";
    case Step::done:
      return "done";
    case Step::present:
      return "here already";
  }
  return "";
}

bool is_work(image::LayerProgress::Step step) {
  return step == image::LayerProgress::Step::downloading || step == image::LayerProgress::Step::unpacking;
}

}  // namespace

void PullProgress::take(const image::LayerProgress& progress) {
  if (progress.index >= k_most_layers) return;
  if (progress.index >= layers_.size()) layers_.resize(progress.index + 1);
  auto& layer = layers_[progress.index];
  layer.last = progress;
  if (progress.step == image::LayerProgress::Step::downloading) {
    layer.first_byte = std::min(layer.first_byte.value_or(progress.done), progress.done);
    layer.fetched = std::max(layer.fetched, progress.done - *layer.first_byte);
  }
  if (is_work(progress.step)) {
    layer.fresh = true;
    // A log should say what is waited for; a terminal shows it.
    if (!did_work_ && !session_->output.err_is_terminal()) session_->note(printable(title()));
    did_work_ = true;
  }
  if (did_work_ && !session_->globals.quiet) show();
}

std::string PullProgress::title() const {
  return (kind_ == Kind::pull ? "pulling " : "importing ") + name_;
}

std::string PullProgress::line_of(const Layer& layer) const {
  const auto& last = layer.last;
  auto colon = last.digest.find(':');
  auto digest = colon == std::string::npos ? last.digest : last.digest.substr(colon + 1);
  auto text = fmt::format("  {:<12}  {}", digest.substr(0, k_shown_digest), word_of(last.step));
  if (!is_work(last.step)) return text;
  text += fmt::format(" {}", show_size(last.done));
  if (last.total > 0 && last.step == image::LayerProgress::Step::downloading)
    text += fmt::format(" of {}", show_size(last.total));
  return text;
}

void PullProgress::show() const {
  if (!session_->output.err_is_terminal()) return;
  std::vector<std::string> lines{"holt: " + title()};
  for (const auto& layer : layers_) {
    if (layer.last.layers > 0) lines.push_back(line_of(layer));
  }
  session_->output.progress(lines);
}

std::uint64_t PullProgress::fetched_bytes() const {
  return std::accumulate(layers_.begin(), layers_.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Layer& layer) { return sum + layer.fetched; });
}

void PullProgress::finish() {
  session_->output.clear_progress();
  if (!did_work_) return;
  auto fresh = std::ranges::count(layers_, true, &Layer::fresh);
  auto text = fmt::format("{}: {} of {} layers were new", printable(name_), fresh, layers_.size());
  if (kind_ == Kind::pull) text += fmt::format(", {} fetched", show_size(fetched_bytes()));
  session_->note(text);
}

void PullProgress::interrupted() {
  session_->output.clear_progress();
  if (did_work_ && kind_ == Kind::pull)
    session_->note("what has come is kept; the next pull goes on from there");
}

}  // namespace holt::cli
