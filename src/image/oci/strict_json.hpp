// JSON of strangers: what two readers could understand differently is refused, as is what costs too much.
#pragma once

#include "holt/base/json.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holt::image {

/// Published in docs/reference.md.
inline constexpr std::size_t k_document_depth = 32;        ///< objects and lists in one another
inline constexpr std::size_t k_document_values = 200'000;  ///< values of one document

/// The object that a whole document is. `what` is its name in errors, e.g. "the image's manifest". Throws
/// Error IMAGE_INVALID for anything but one JSON object with unique keys (RFC 8259; numbers in the range of a
/// double, no byte order mark, nothing behind it), LIMIT_EXCEEDED for depth and number of values.
Json parse_strict_object(std::string_view bytes, std::string_view what);
/// The same of a list.
Json parse_strict_list(std::string_view bytes, std::string_view what);

/// Members of a document. Absent and null are the same. Throw Error IMAGE_INVALID "read WHAT: ..." for a
/// value of another kind, and for strings with a NUL in them.
class Fields {
 public:
  Fields(const Json& object, std::string_view what) : object_(object), what_(what) {}

  bool has(const char* key) const { return find(key) != nullptr; }
  /// Nothing when it is not there.
  const Json* object(const char* key) const;
  const Json* list(const char* key) const;
  /// Empty when it is not there.
  std::string string(const char* key) const;
  std::vector<std::string> strings(const char* key) const;
  /// A whole number from 0 to 2^63-1; it must be there.
  std::uint64_t size(const char* key) const;

  [[noreturn]] void refuse(const std::string& reason) const;

 private:
  const Json* find(const char* key) const;
  const Json* find(const char* key, Json::value_t type, std::string_view wanted) const;
  std::string checked(const Json& value, const char* key) const;

  const Json& object_;
  std::string_view what_;
};

}  // namespace holt::image
