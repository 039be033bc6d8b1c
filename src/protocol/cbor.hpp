// The part of CBOR (RFC 8949) that messages use, straight between bytes and described structs: no tree in
// between, definite lengths only, no tags. Reading is bounded: depth, no reservation by a claimed count, no
// key twice.
#pragma once

#include "holt/protocol/frame.hpp"

#include <bit>
#include <concepts>
#include <cstdint>
#include <expected>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <boost/describe.hpp>
#include <boost/mp11/algorithm.hpp>

namespace holt::protocol::cbor {

inline constexpr int k_max_depth = 16;

enum class Major : std::uint8_t { unsigned_integer, negative_integer, bytes, text, array, map, tag, simple };
inline constexpr std::uint64_t k_false = 20;
inline constexpr std::uint64_t k_true = 21;
inline constexpr std::uint64_t k_null = 22;

class Writer {
 public:
  void head(Major major, std::uint64_t argument);
  void bytes(std::string_view value);
  void text(std::string_view value);
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

/// Reads values one after another. After the first error every call returns false and the error stays.
class Reader {
 public:
  explicit Reader(std::string_view input) : rest_(input) {}

  struct Head {
    Major major = Major::simple;
    std::uint64_t argument = 0;
  };
  bool head(Head& out);
  /// Head of an array or a map, its members within what is left of the input. leave() closes it.
  bool enter(Major major, std::uint64_t& count);
  void leave() { --depth_; }
  bool string(std::string_view& out);
  bool integer(std::int64_t& out, std::int64_t low, std::int64_t high);
  bool unsigned_integer(std::uint64_t& out, std::uint64_t high);
  bool boolean(bool& out);
  /// Takes a null if there is one.
  bool take_null();
  bool skip();

  bool at_end() const { return rest_.empty(); }
  bool fail(Violation rule, std::string_view detail);
  ProtocolError error() const { return error_.value_or(ProtocolError{}); }

 private:
  std::string_view rest_;
  int depth_ = 0;
  std::optional<ProtocolError> error_;
};

template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T>
using Members = boost::describe::describe_members<T, boost::describe::mod_public>;

template <class T>
void write_members(Writer& w, const T& value);

template <class T>
void write(Writer& w, const T& value) {
  if constexpr (std::same_as<T, bool>) {
    w.head(Major::simple, value ? k_true : k_false);
  } else if constexpr (std::is_enum_v<T>) {
    w.text(boost::describe::enum_to_string(value, "unknown"));
  } else if constexpr (std::signed_integral<T>) {
    if (value < 0) {
      w.head(Major::negative_integer, ~static_cast<std::uint64_t>(value));
    } else {
      w.head(Major::unsigned_integer, static_cast<std::uint64_t>(value));
    }
  } else if constexpr (std::unsigned_integral<T>) {
    w.head(Major::unsigned_integer, value);
  } else if constexpr (std::same_as<T, std::string>) {
    w.bytes(value);
  } else if constexpr (is_optional<T>) {
    if (value) {
      write(w, *value);
    } else {
      w.head(Major::simple, k_null);
    }
  } else if constexpr (is_vector<T>) {
    w.head(Major::array, value.size());
    for (const auto& item : value) write(w, item);
  } else {
    w.head(Major::map, boost::mp11::mp_size<Members<T>>::value);
    write_members(w, value);
  }
}

template <class T>
void write_members(Writer& w, const T& value) {
  boost::mp11::mp_for_each<Members<T>>([&](auto member) {
    w.text(member.name);
    write(w, value.*member.pointer);
  });
}

template <class T>
bool read_members(Reader& r, T& out, std::uint64_t count);

template <class T>
bool read(Reader& r, T& out) {
  if constexpr (std::same_as<T, bool>) {
    return r.boolean(out);
  } else if constexpr (std::is_enum_v<T>) {
    std::string_view name;
    if (!r.string(name)) return false;
    bool known = false;
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>([&](auto enumerator) {
      if (name == enumerator.name) {
        out = enumerator.value;
        known = true;
      }
    });
    return known || r.fail(Violation::malformed_message, "unknown word for an enumeration");
  } else if constexpr (std::signed_integral<T>) {
    std::int64_t value = 0;
    if (!r.integer(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max())) return false;
    out = static_cast<T>(value);
    return true;
  } else if constexpr (std::unsigned_integral<T>) {
    std::uint64_t value = 0;
    if (!r.unsigned_integer(value, std::numeric_limits<T>::max())) return false;
    out = static_cast<T>(value);
    return true;
  } else if constexpr (std::same_as<T, std::string>) {
    std::string_view value;
    if (!r.string(value)) return false;
    out = value;
    return true;
  } else if constexpr (is_optional<T>) {
    if (r.take_null()) {
      out.reset();
      return true;
    }
    return read(r, out.emplace());
  } else if constexpr (is_vector<T>) {
    std::uint64_t count = 0;
    if (!r.enter(Major::array, count)) return false;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (!read(r, out.emplace_back())) return false;
    }
    r.leave();
    return true;
  } else {
    std::uint64_t count = 0;
    if (!r.enter(Major::map, count)) return false;
    if (!read_members(r, out, count)) return false;
    r.leave();
    return true;
  }
}

/// Members of a map whose head has been read.
template <class T>
bool read_members(Reader& r, T& out, std::uint64_t count) {
  std::uint64_t seen = 0;
  static_assert(boost::mp11::mp_size<Members<T>>::value <= 64);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string_view key;
    if (!r.string(key)) return false;
    bool found = false;
    bool good = true;
    std::uint64_t bit = 1;
    boost::mp11::mp_for_each<Members<T>>([&](auto member) {
      if (!found && key == member.name) {
        found = true;
        good = (seen & bit) == 0 ? read(r, out.*member.pointer)
                                 : r.fail(Violation::malformed_message, "a field stands twice");
        seen |= bit;
      }
      bit <<= 1;
    });
    if (!found) good = r.skip();
    if (!good) return false;
  }
  return true;
}

}  // namespace holt::protocol::cbor
