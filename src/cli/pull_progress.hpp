// How an image comes, for people: on a terminal a line for each layer, elsewhere one line at the end.
#pragma once

#include "cli/session.hpp"
#include "holt/image/pull.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holt::cli {

/// Follows one pull or import. Lives as long as that does; its sink is called by one thread at a time.
class PullProgress {
 public:
  /// `name` is what is being fetched, as people know it.
  enum class Kind { pull, import };
  PullProgress(Session& session, std::string name, Kind kind)
      : session_(&session), name_(std::move(name)), kind_(kind) {}

  image::ProgressSink sink() {
    return [this](const image::LayerProgress& progress) { take(progress); };
  }
  /// Takes the lines away; says what came, where anything did.
  void finish();
  /// What an interrupt leaves behind.
  void interrupted();

  /// Something had to be fetched or unpacked.
  bool did_work() const { return did_work_; }
  std::uint64_t fetched_bytes() const;

 private:
  struct Layer {
    image::LayerProgress last;
    std::optional<std::uint64_t> first_byte;  ///< where its download began: behind what an earlier one left
    std::uint64_t fetched = 0;
    bool fresh = false;  ///< something of it was done here
  };
  void take(const image::LayerProgress& progress);
  void show() const;
  std::string title() const;
  std::string line_of(const Layer& layer) const;

  Session* session_;
  std::string name_;
  Kind kind_;
  std::vector<Layer> layers_;
  bool did_work_ = false;
};

}  // namespace holt::cli
