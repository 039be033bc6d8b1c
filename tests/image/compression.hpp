// Compressed bytes for tests.
#pragma once

#include <string>
#include <string_view>

namespace holt::image::test {

/// One member of gzip, without a time: the same bytes give the same.
std::string gzip(std::string_view bytes);
/// One frame of zstd.
std::string zstd(std::string_view bytes);
/// The same with a window of 2^`window_log` bytes; 0: zstd's own choice.
std::string zstd_with_window(std::string_view bytes, int window_log);

}  // namespace holt::image::test
