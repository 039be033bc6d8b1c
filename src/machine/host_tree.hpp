// Writes files with names from a hostile source below one folder of the host, and nowhere else.
//
// Paths are lists of checked components. Parents are opened beneath the folder's descriptor without following
// any link (openat2(2): RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS), so neither a link in the tree nor one that
// somebody puts there meanwhile leads out. Files are written under a temporary name and renamed.
#pragma once

#include "holt/base/fd.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holt::machine {

/// A relative path of checked components; the empty path is the root.
class TreePath {
 public:
  /// Nothing for absolute paths, empty components, ".", "..", NUL and components over 255 bytes.
  static std::optional<TreePath> from(std::string_view text);
  bool empty() const { return components_.empty(); }
  TreePath parent() const;
  const std::string& name() const { return components_.back(); }
  std::string text() const;

 private:
  std::vector<std::string> components_;
};

struct HostEntry {
  std::uint32_t mode = 0644;  ///< setuid, setgid and sticky bits are dropped
  std::int64_t mtime_ns = 0;
  std::optional<std::pair<std::uint32_t, std::uint32_t>> owner = std::nullopt;  ///< user and group id
};

/// Not thread-safe. Throws Error as system_error().
class HostTree {
 public:
  /// `target` is what the root entry becomes; its parent must exist.
  explicit HostTree(const std::filesystem::path& target);
  ~HostTree();
  HostTree(const HostTree&) = delete;
  HostTree& operator=(const HostTree&) = delete;

  void make_directory(const TreePath& path, const HostEntry& facts);
  void make_link(const TreePath& path, const std::string& target, const HostEntry& facts);
  /// A file is begun, written and ended before the next entry. After a failed begin its bytes are dropped.
  void begin_file(const TreePath& path, const HostEntry& facts);
  void write(std::string_view bytes);
  /// Leaves a hole.
  void skip(std::uint64_t size);
  void end_file();
  /// Gives folders their modes and times, innermost first.
  void finish();

 private:
  struct Place {
    Fd folder;
    std::string name;
  };
  Place place_of(const TreePath& path);

  std::filesystem::path target_;
  Fd outside_;  // the folder that holds the target
  Fd root_;     // the target, once it is a folder
  std::vector<std::pair<TreePath, HostEntry>> directories_;

  std::optional<Place> open_place_;
  std::string temporary_;
  Fd file_;
  bool ends_in_hole_ = false;
  HostEntry file_facts_;
};

}  // namespace holt::machine
