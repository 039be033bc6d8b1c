// A log of a machine as its monitor writes it: NAME, and NAME.1 for what was there before it grew too long.
#pragma once

#include "holt/base/fd.hpp"

#include <filesystem>
#include <string>

namespace holt::cli {

/// Not thread-safe. Memory is bounded by what the monitor keeps: k_console_limit of a console.
class LogFile {
 public:
  /// Nothing is opened yet: a log that is not there is empty, and may come.
  explicit LogFile(std::filesystem::path path) : path_(std::move(path)) {}

  /// What was written since the last call, in order; in the first call everything kept. What was begun anew
  /// is read from its first byte. Throws Error (STORAGE_ERROR and the like) when the log is there and not
  /// readable.
  std::string read();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path old_path() const;

  std::filesystem::path path_;
  Fd file_;
};

}  // namespace holt::cli
