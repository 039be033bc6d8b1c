#include "protocol/cbor.hpp"

namespace holt::protocol::cbor {

void Writer::head(Major major, std::uint64_t argument) {
  auto initial = static_cast<unsigned>(major) << 5;
  if (argument < 24) {
    out_.push_back(static_cast<char>(initial | argument));
    return;
  }
  int size_code = argument <= 0xff ? 0 : argument <= 0xffff ? 1 : argument <= 0xffffffff ? 2 : 3;
  out_.push_back(static_cast<char>(initial | (24U + static_cast<unsigned>(size_code))));
  for (int shift = (8 << size_code) - 8; shift >= 0; shift -= 8) {
    out_.push_back(static_cast<char>(argument >> shift));
  }
}

void Writer::bytes(std::string_view value) {
  head(Major::bytes, value.size());
  out_.append(value);
}

void Writer::text(std::string_view value) {
  head(Major::text, value.size());
  out_.append(value);
}

bool Reader::fail(Violation rule, std::string_view detail) {
  if (!error_) error_ = ProtocolError{rule, std::string(detail)};
  rest_ = {};
  return false;
}

bool Reader::head(Head& out) {
  if (rest_.empty()) return fail(Violation::malformed_message, "the message ends too early");
  auto initial = static_cast<std::uint8_t>(rest_.front());
  rest_.remove_prefix(1);
  out.major = static_cast<Major>(initial >> 5);
  unsigned info = initial & 0x1f;
  if (info < 24) {
    out.argument = info;
    return true;
  }
  if (info > 27) return fail(Violation::malformed_message, "a length that is not definite");
  std::size_t size = std::size_t{1} << (info - 24);
  if (rest_.size() < size) return fail(Violation::malformed_message, "the message ends too early");
  out.argument = 0;
  for (std::size_t i = 0; i < size; ++i) {
    out.argument = out.argument << 8 | static_cast<std::uint8_t>(rest_[i]);
  }
  rest_.remove_prefix(size);
  return true;
}

bool Reader::enter(Major major, std::uint64_t& count) {
  Head h;
  if (!head(h)) return false;
  if (h.major != major) return fail(Violation::malformed_message, "a value of another type than expected");
  if (++depth_ > k_max_depth) return fail(Violation::too_deep, "values nested too deeply");
  // Each member takes a byte at least, so a larger count is a lie.
  if (h.argument > rest_.size()) return fail(Violation::too_many, "more members than bytes");
  count = h.argument;
  return true;
}

bool Reader::string(std::string_view& out) {
  Head h;
  if (!head(h)) return false;
  if (h.major != Major::bytes && h.major != Major::text) {
    return fail(Violation::malformed_message, "a value of another type than a string");
  }
  if (h.argument > rest_.size()) return fail(Violation::malformed_message, "a string past the message's end");
  out = rest_.substr(0, h.argument);
  rest_.remove_prefix(h.argument);
  return true;
}

bool Reader::unsigned_integer(std::uint64_t& out, std::uint64_t high) {
  Head h;
  if (!head(h)) return false;
  if (h.major != Major::unsigned_integer || h.argument > high) {
    return fail(Violation::malformed_message, "a number outside its range");
  }
  out = h.argument;
  return true;
}

bool Reader::integer(std::int64_t& out, std::int64_t low, std::int64_t high) {
  Head h;
  if (!head(h)) return false;
  constexpr auto k_top = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  bool number = h.major == Major::unsigned_integer || h.major == Major::negative_integer;
  if (!number || h.argument > k_top) return fail(Violation::malformed_message, "a number outside its range");
  auto value = static_cast<std::int64_t>(h.argument);
  if (h.major == Major::negative_integer) value = -1 - value;
  if (value < low || value > high) return fail(Violation::malformed_message, "a number outside its range");
  out = value;
  return true;
}

bool Reader::boolean(bool& out) {
  Head h;
  if (!head(h)) return false;
  if (h.major != Major::simple || (h.argument != k_true && h.argument != k_false)) {
    return fail(Violation::malformed_message, "a value of another type than a boolean");
  }
  out = h.argument == k_true;
  return true;
}

bool Reader::take_null() {
  constexpr char k_null_byte = static_cast<char>(0xf6);
  if (rest_.empty() || rest_.front() != k_null_byte) return false;
  rest_.remove_prefix(1);
  return true;
}

bool Reader::skip() {
  Head h;
  if (!head(h)) return false;
  switch (h.major) {
    case Major::unsigned_integer:
    case Major::negative_integer:
    case Major::simple:
      return true;
    case Major::bytes:
    case Major::text:
      if (h.argument > rest_.size()) {
        return fail(Violation::malformed_message, "a string past the message's end");
      }
      rest_.remove_prefix(h.argument);
      return true;
    case Major::array:
    case Major::map: {
      if (++depth_ > k_max_depth) return fail(Violation::too_deep, "values nested too deeply");
      if (h.argument > rest_.size()) return fail(Violation::too_many, "more members than bytes");
      std::uint64_t values = h.major == Major::map ? h.argument * 2 : h.argument;
      for (std::uint64_t i = 0; i < values; ++i) {
        if (!skip()) return false;
      }
      --depth_;
      return true;
    }
    case Major::tag:
      break;
  }
  return fail(Violation::malformed_message, "a tagged value");
}

}  // namespace holt::protocol::cbor
