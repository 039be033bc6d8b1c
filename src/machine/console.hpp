// Keeps what a guest writes to its serial console, in a file of bounded size.
#pragma once

#include "holt/base/fd.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>

namespace holt::machine {

/// Most bytes of a console log on disk: two files of half of it each.
inline constexpr std::uint64_t k_console_limit = std::uint64_t{10} << 20;

/// Reads on a thread of its own until the other end closes, so that a guest never waits for its console. What
/// cannot be written (a full disk) is dropped. The file FILE is renamed to FILE.1 when it holds half of the
/// limit.
class ConsoleReader {
 public:
  ConsoleReader(Fd console, std::filesystem::path file);
  ~ConsoleReader();
  ConsoleReader(const ConsoleReader&) = delete;
  ConsoleReader& operator=(const ConsoleReader&) = delete;

  /// The end of the log, made fit to be shown: at most ten lines.
  std::string last_lines() const;
  /// The rest of the first line with `text` among the last 64 KiB that this reader has read, from `text` on
  /// and made fit to be shown; empty when there is none. Called when the other end has closed: reads what is
  /// left.
  std::string find_line(std::string_view text);

 private:
  void read_all();
  void end();

  Fd console_;
  Fd stop_;
  Fd stop_writer_;
  std::filesystem::path file_;
  std::string tail_;  ///< the last that was read; belongs to the thread until that has ended
  std::thread thread_;
};

/// The end of a console log, made fit to be shown.
std::string last_lines_of(const std::filesystem::path& file);

}  // namespace holt::machine
