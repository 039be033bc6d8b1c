// Small helpers for text that a model reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holt {

/// 60001 as "60,001".
std::string with_commas(std::uint64_t number);
/// Pieces between `separator`s; one empty piece for an empty text.
std::vector<std::string_view> split(std::string_view text, char separator);
/// Number of lines: pieces that end in LF, and an unfinished one at the end.
std::size_t count_lines(std::string_view text);
/// Offset of the first byte that is no UTF-8, as Python counts it.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);
/// The last `count` characters of valid UTF-8 text.
std::string_view last_characters(std::string_view text, std::size_t count);
/// The first `count` characters of valid UTF-8 text.
std::string_view first_characters(std::string_view text, std::size_t count);
/// Without white space at the end.
std::string_view trim_end(std::string_view text);

}  // namespace holt
