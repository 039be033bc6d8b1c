// Which extended attributes of an archive go into the image.
#pragma once

#include "image/metadata.hpp"

#include <expected>
#include <string>

namespace holt::image {

/// Leaves out attributes of namespaces that Linux does not have (an archive made on macOS carries its own)
/// and of security modules (security.selinux, security.ima mean nothing in the machine; security.capability
/// stays). The error, half a sentence, is an attribute that would damage the file system: an empty name, one
/// of over 255 bytes, a value over 4 KiB, an access list or set of capabilities that is none.
/// Source: xattr(7), Linux fs/posix_acl.c and linux/capability.h.
std::expected<void, std::string> keep_valid_xattrs(Metadata& metadata);

}  // namespace holt::image
