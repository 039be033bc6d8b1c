#include "image/xattrs.hpp"

#include "holt/base/error.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <linux/capability.h>
#include <string_view>

#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr std::array<std::string_view, 2> k_access_lists{"system.posix_acl_access",
                                                         "system.posix_acl_default"};
constexpr std::string_view k_capability = "security.capability";
constexpr std::array<std::string_view, 2> k_namespaces{"user.", "trusted."};
constexpr std::size_t k_name_limit = 255;    ///< XATTR_NAME_MAX
constexpr std::size_t k_value_limit = 4096;  ///< one block: the file system has no ea_inode

bool is_access_list(std::string_view name) {
  return std::ranges::find(k_access_lists, name) != k_access_lists.end();
}

bool is_kept(std::string_view name) {
  return name == k_capability || is_access_list(name) ||
         std::ranges::any_of(k_namespaces, [&](std::string_view space) { return name.starts_with(space); });
}

/// posix_acl_xattr_header (version 2) and entries of 8 bytes.
bool is_well_formed_list(std::string_view value) {
  std::uint32_t version = 0;
  if (value.size() < sizeof version || (value.size() - sizeof version) % 8 != 0) return false;
  std::memcpy(&version, value.data(), sizeof version);
  return version == 2;
}

/// vfs_cap_data of revision 1, 2 or 3. The kernel runs no file that has another.
bool is_well_formed_capability(std::string_view value) {
  std::uint32_t magic = 0;
  if (value.size() < sizeof magic) return false;
  std::memcpy(&magic, value.data(), sizeof magic);
  switch (magic & ~static_cast<std::uint32_t>(VFS_CAP_FLAGS_EFFECTIVE)) {
    case VFS_CAP_REVISION_1:
      return value.size() == XATTR_CAPS_SZ_1;
    case VFS_CAP_REVISION_2:
      return value.size() == XATTR_CAPS_SZ_2;
    case VFS_CAP_REVISION_3:
      return value.size() == XATTR_CAPS_SZ_3;
    default:
      return false;
  }
}

std::expected<void, std::string> check(std::string_view name, std::string_view value) {
  if (name.size() > k_name_limit || name.ends_with('.')) {
    return std::unexpected(
        fmt::format("has the attribute '{}', which is no proper name", printable(name, 64)));
  }
  if (value.size() > k_value_limit) {
    return std::unexpected(
        fmt::format("has an attribute '{}' of {} bytes", printable(name, 64), value.size()));
  }
  if (is_access_list(name) && !is_well_formed_list(value)) {
    return std::unexpected(fmt::format("has an attribute '{}' that is no access list", name));
  }
  if (name == k_capability && !is_well_formed_capability(value)) {
    return std::unexpected(fmt::format("has an attribute '{}' that is no set of capabilities", name));
  }
  return {};
}

}  // namespace

std::expected<void, std::string> keep_valid_xattrs(Metadata& metadata) {
  std::erase_if(metadata.xattrs, [](const auto& attribute) { return !is_kept(attribute.first); });
  std::ranges::sort(metadata.xattrs);
  for (const auto& [name, value] : metadata.xattrs) {
    if (auto checked = check(name, value); !checked) return checked;
  }
  return {};
}

}  // namespace holt::image
