// Compressed bytes for tests.
#pragma once

#include <string>
#include <string_view>

namespace holt::image::test {

/// One member of gzip.
std::string gzip(std::string_view bytes);
/// One frame of zstd, with a window of 2^`window_log` bytes where that is not 0.
std::string zstd(std::string_view bytes, int window_log = 0);

}  // namespace holt::image::test
