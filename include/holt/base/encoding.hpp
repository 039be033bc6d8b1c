// Text encodings and digests.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace holt {

enum class Base64Alphabet { standard, url_safe };
/// With padding (RFC 4648).
std::string base64_encode(std::string_view bytes, Base64Alphabet alphabet);
/// Either alphabet but no mix of the two; padding whole, partial or left out. Nothing for anything else: too
/// much padding, a rest of bits that is not zero, white space.
std::optional<std::string> base64_decode(std::string_view text);

/// Lower-case hexadecimal.
std::string hex(std::string_view bytes);
std::string sha256(std::string_view bytes);      ///< 32 bytes
std::string sha256_hex(std::string_view bytes);  ///< 64 digits
std::string sha1_hex(std::string_view bytes);    ///< 40 digits

bool is_utf8(std::string_view text);
/// Invalid sequences replaced by U+FFFD, one for each maximal part (as Python's errors="replace").
std::string utf8_replace(std::string_view bytes);
/// Number of code points; invalid sequences count as utf8_replace() would make them.
std::size_t utf8_length(std::string_view text);

/// Decodes a stream piece by piece; a character split over two pieces comes out whole.
class Utf8Decoder {
 public:
  std::string feed(std::string_view bytes);
  /// What was still open, as U+FFFD.
  std::string finish();

 private:
  std::string open_;
};

}  // namespace holt
