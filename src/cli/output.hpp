// The three standard streams. Standard output has only results, standard error everything else.
#pragma once

#include "holt/base/json.hpp"

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace holt::cli {

enum class ColorChoice { automatic, always, never };

/// Makes descriptors 0 to 2 exist (on the null device where they were closed), so that no socket or disk ever
/// takes their place.
void secure_standard_descriptors();

/// Writes to standard output and standard error. Thread-safe.
class Output {
 public:
  /// Bytes unchanged. Waits while a pipe is full, also a non-blocking one. Throws BrokenPipe when the reader
  /// has gone, Error otherwise (STORAGE_FULL on a full disk).
  void out(std::string_view bytes);
  void line(std::string_view text);
  /// One JSON document and a line end.
  void json(const Json& value);

  /// Bytes unchanged to standard error; a reader that has gone is no failure.
  void err(std::string_view bytes);
  /// "holt: TEXT" on a line of its own, the progress line taken away first.
  void note(std::string_view text);

  /// A line that later ones replace. On a terminal only; elsewhere it prints nothing.
  void progress(std::string_view text);
  /// Several such lines, the last ones where the terminal has not room for all.
  void progress(const std::vector<std::string>& lines);
  void clear_progress();

  /// For a process that is about to end: `result` to standard output where that has got nothing, `message` to
  /// standard error. Waits neither for a reader nor for another thread; what that would need is left out.
  void last_words(std::string_view result, std::string_view message);

  bool printed() const { return printed_; }  ///< whether standard output got anything
  bool out_is_terminal() const { return out_is_terminal_; }
  bool err_is_terminal() const { return err_is_terminal_; }
  bool color() const { return color_; }
  void set_color(ColorChoice choice);

  Output();

 private:
  std::recursive_mutex mutex_;
  bool printed_ = false;
  bool out_is_terminal_ = false;
  bool err_is_terminal_ = false;
  bool color_ = false;
  std::size_t progress_shown_ = 0;  ///< lines
};

}  // namespace holt::cli
