// Names of images.
//
//   auto reference = holt::image::parse_reference("python:3.12-alpine");
//   reference->canonical();   // "python:3.12-alpine"
//   holt::image::parse_reference("python")->canonical();   // "python:latest"
//   reference->registry() + "/" + reference->repository();   // "docker.io/library/python"
//
// Depends on the standard library only.
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace holt::image {

/// The image used when none is named; `scripts/setup` makes it on this machine.
inline constexpr std::string_view k_default_image = "holt/default:latest";

/// The registry of a name that has no host in it.
inline constexpr std::string_view k_default_registry = "docker.io";

/// A parsed reference. A value.
struct Reference {
  /// Path with its optional host, e.g. "python", "holt/default", "127.0.0.1:5000/a/b", "[::1]:5000/a". The
  /// default registry and its "library/" are left out, so that "docker.io/library/python" and "python" are
  /// one name, and an IPv6 address is written as RFC 5952 does.
  std::string name;
  std::string tag;     ///< "latest" when the text has neither tag nor digest; may be empty beside a digest
  std::string digest;  ///< "sha256:" and 64 hexadecimal digits, or empty

  /// NAME[:TAG][@DIGEST], the key under which the store keeps it.
  std::string canonical() const;
  /// HOST[:PORT] to be asked for the image, e.g. "docker.io", "localhost:5000".
  std::string registry() const;
  /// Path in that registry, e.g. "library/python", "a/b".
  std::string repository() const;
};

/// Reads NAME[:TAG][@DIGEST]; the error says what is wrong in half a sentence. At most 1,024 bytes.
/// The first component is a host when it has a dot or a port (1 to 65535), is "localhost" or an IPv6 address
/// in brackets, without a zone. Source: grammar of github.com/distribution/reference, OCI distribution
/// specification 1.1.
std::expected<Reference, std::string> parse_reference(std::string_view text);

/// True for "sha256:" and 64 lower-case hexadecimal digits, the only digests the store makes file names of.
bool is_digest(std::string_view text);

}  // namespace holt::image
