// Server-sent events, parsed as they arrive. Source: WHATWG HTML, 9.2.6 "Interpreting an event stream".
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace holt {

struct SseEvent {
  std::string event;  ///< empty: none was named
  std::string data;
};

/// The same events for every way of cutting the bytes. Lines end in LF, CR or CRLF; a byte order mark at the
/// front and comments are skipped; an event that the end of the stream cuts off is never handed out. Not
/// thread-safe.
class SseParser {
 public:
  static constexpr std::size_t k_event_limit = std::size_t{8} << 20;

  explicit SseParser(std::size_t event_limit = k_event_limit) : limit_(event_limit) {}

  using Sink = std::function<void(const SseEvent&)>;
  /// Hands every event that is complete to `sink`. Throws Error LIMIT_EXCEEDED when an event grows over the
  /// limit; what `sink` throws passes through. After a throw the parser is of no further use.
  void feed(std::string_view bytes, const Sink& sink);

 private:
  void end_line(const Sink& sink);
  void take_field(std::string_view line);
  void dispatch(const Sink& sink);

  std::size_t limit_;
  std::string line_;
  SseEvent open_;
  bool has_data_ = false;
  bool at_start_ = true;       ///< no line has ended yet: a byte order mark may stand here
  bool after_return_ = false;  ///< the last byte was CR, so an LF now belongs to it
};

}  // namespace holt
