// Which of an image's variants a machine can run.
//
//   holt::image::Platform::of_machines().text();   // "linux/amd64"
//
// Depends on the standard library only.
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace holt::image {

/// Operating system, architecture and variant as Go names them. A value.
/// Source: OCI image specification 1.1, image-index.md, "platform".
struct Platform {
  std::string os = "linux";
  std::string architecture = "amd64";
  std::string variant = {};  ///< e.g. "v8" of arm64; empty: none

  /// What machines on this host run.
  static Platform of_machines() { return {}; }
  /// OS/ARCHITECTURE[/VARIANT].
  std::string text() const;
  bool operator==(const Platform&) const = default;
};

/// Reads OS/ARCHITECTURE[/VARIANT]; the kernel's words x86_64 and aarch64 become amd64 and arm64. The error
/// says what is wrong in half a sentence.
std::expected<Platform, std::string> parse_platform(std::string_view text);

}  // namespace holt::image
