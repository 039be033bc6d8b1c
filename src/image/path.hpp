// A path as an archive writes it, taken apart: components only, so that ".." cannot sneak in.
#pragma once

#include "holt/base/error.hpp"
#include "holt/image/limits.hpp"

#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holt::image {

/// Why an entry cannot be: a half sentence, and IMAGE_INVALID or, where a file system could hold it,
/// LIMIT_EXCEEDED.
struct Refusal {
  std::string reason;
  ErrorCode code = ErrorCode::image_invalid;
};
inline std::unexpected<Refusal> refused(std::string reason, ErrorCode code = ErrorCode::image_invalid) {
  return std::unexpected(Refusal{std::move(reason), code});
}

/// Components from the image's root on, views into the text: no empty one, no ".", no "..". Empty: the root.
using Path = std::vector<std::string_view>;

/// ".." is taken back lexically and never leads above the root. The error names what no file
/// system could hold (a NUL, a component of over 255 bytes, a path too long) or a path too deep.
std::expected<Path, Refusal> parse_path(std::string_view text, const Limits& limits);

/// What a member's name asks of the layers below its own.
enum class Marker {
  none,      ///< an ordinary entry
  whiteout,  ///< ".wh.NAME": the lower NAME goes
  opaque,    ///< ".wh..wh..opq": everything lower in the folder goes
  ignored,   ///< ".wh..wh.*" has no meaning beside the one above, and no entry of the image
};

/// The marker of a path's last component. The error is a marker for nothing (".wh.", and those
/// for "." and "..") or an entry below one. Source: OCI image specification, layer.md, "Whiteouts".
std::expected<Marker, Refusal> marker_of(const Path& path);

/// The prefix of markers. No entry of an image may have such a name.
inline constexpr std::string_view k_marker_prefix = ".wh.";

}  // namespace holt::image
