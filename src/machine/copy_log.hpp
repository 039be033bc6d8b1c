// Counts of a copy under way, shared by both directions.
#pragma once

#include "holt/base/error.hpp"
#include "holt/machine/files.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

namespace holt::machine {

class CopyLog {
 public:
  explicit CopyLog(const CopyOptions& options) : options_(options) {}

  void entry() { result.files++, tell(); }
  void bytes(std::size_t count) { result.bytes += count, tell(); }
  void skipped(std::string_view path, std::string_view why) {
    result.skipped++;
    keep(CopyProblem::Kind::skipped, path, why);
  }
  void failed(std::string_view path, std::string_view why) {
    result.failed++;
    keep(CopyProblem::Kind::failed, path, why);
  }

  /// True when one of the kept problems is of this path.
  bool names(std::string_view path) const {
    return std::ranges::any_of(
        result.problems, [shown = printable(path)](const auto& problem) { return problem.path == shown; });
  }

  CopyResult result;

 private:
  void keep(CopyProblem::Kind kind, std::string_view path, std::string_view why) {
    constexpr std::size_t k_kept = 100;
    if (result.problems.size() >= k_kept) return;
    result.problems.push_back({.kind = kind, .path = printable(path), .message = printable(why)});
  }
  // A few times a second: a progress line costs more than a small file.
  void tell() {
    auto now = std::chrono::steady_clock::now();
    if (!options_.on_progress || now - told_ < std::chrono::milliseconds(100)) return;
    told_ = now;
    options_.on_progress(result);
  }

  const CopyOptions& options_;
  std::chrono::steady_clock::time_point told_ = std::chrono::steady_clock::now();
};

}  // namespace holt::machine
