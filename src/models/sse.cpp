#include "models/sse.hpp"

#include "holt/base/error.hpp"

#include <fmt/format.h>

namespace holt {

void SseParser::feed(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    if (after_return_) {
      after_return_ = false;
      if (bytes.front() == '\n') bytes.remove_prefix(1);
      continue;
    }
    auto end = bytes.find_first_of("\r\n");
    auto piece = bytes.substr(0, end);
    if (line_.size() + open_.data.size() + piece.size() > limit_) {
      throw Error(ErrorCode::limit_exceeded,
                  fmt::format("An event of the stream is longer than {} bytes", limit_));
    }
    line_ += piece;
    if (end == std::string_view::npos) return;
    after_return_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    end_line(sink);
  }
}

void SseParser::end_line(const Sink& sink) {
  std::string line = std::move(line_);
  line_.clear();
  std::string_view view = line;
  if (at_start_ && view.starts_with("\xef\xbb\xbf")) view.remove_prefix(3);
  at_start_ = false;
  if (view.empty()) {
    dispatch(sink);
  } else {
    take_field(view);
  }
}

void SseParser::take_field(std::string_view line) {
  auto colon = line.find(':');
  auto name = line.substr(0, colon);
  auto value = colon == std::string_view::npos ? std::string_view{} : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "event") {
    open_.event = value;
  } else if (name == "data") {
    if (has_data_) open_.data += '\n';
    open_.data += value;
    has_data_ = true;
  }
}

void SseParser::dispatch(const Sink& sink) {
  SseEvent event = std::move(open_);
  bool complete = has_data_;
  open_ = {};
  has_data_ = false;
  // An event without data is none, says the specification.
  if (complete) sink(event);
}

}  // namespace holt
