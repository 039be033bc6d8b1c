// Keeps what a guest writes to its serial console, in a file of bounded size.
#pragma once

#include "holt/base/fd.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
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

 private:
  void read_all();

  Fd console_;
  Fd stop_;
  Fd stop_writer_;
  std::filesystem::path file_;
  std::thread thread_;
};

/// The end of a console log, made fit to be shown.
std::string last_lines_of(const std::filesystem::path& file);

}  // namespace holt::machine
