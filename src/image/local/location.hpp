// What a user calls an image of this machine: a path, or a kind and a path.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace holt::image {

enum class LocalKind { layout, saved, root };

struct Location {
  std::optional<LocalKind> kind = std::nullopt;  ///< nothing: the content says
  std::filesystem::path path = {};
  std::string select = {};  ///< what follows PATH, e.g. a tag
};

/// Reads PATH, "oci:PATH[:NAME]", "docker-archive:PATH[:NAME]" or "rootfs:PATH". Behind a prefix PATH ends at
/// its first ':' unless the whole is there.
Location parse_location(std::string_view text);

/// NAME of an image after a file: "app.tar.gz" -> "app"; "rootfs.tar" -> "rootfs-image", as "rootfs:TAG" is a
/// place; empty when nothing of it makes a name.
std::string name_after(const std::filesystem::path& path);

}  // namespace holt::image
