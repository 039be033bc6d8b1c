// Random names and identifiers, from the kernel's random source. Thread-safe.
#pragma once

#include <cstddef>
#include <string>

namespace holt {

/// `bytes` random bytes. Throws Error INTERNAL when the kernel gives none.
std::string random_bytes(std::size_t bytes);
/// `digits` lower-case hexadecimal digits.
std::string random_hex(std::size_t digits);
/// A UUID of version 7 (RFC 9562), lower case with hyphens; later ones of one process sort behind earlier
/// ones.
std::string uuid7();

}  // namespace holt
