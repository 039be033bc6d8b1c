// umoci, whose unpacked trees are what images are compared with.
#pragma once

#include "holt/base/files.hpp"

#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace holt::image::test {

/// Why umoci cannot be the judge with a folder like this one; empty when it can.
inline std::string why_umoci_cannot_judge(const std::filesystem::path& folder) {
  if (::access("/usr/bin/umoci", X_OK) != 0) return "there is no umoci";
  if (::geteuid() != 0) return "umoci unpacks owners and devices as root only";
  auto probe = folder / "probe";
  write_file_atomically(probe, "x");
  if (::lsetxattr(probe.c_str(), "user.x", "1", 1, 0) != 0)
    return "the temporary folder keeps no user attributes";
  if (::mknod((folder / "device").c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0)
    return "no device can be made here";
  return {};
}

}  // namespace holt::image::test
