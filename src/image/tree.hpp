// The merged tree of an image's layers: names and what they stand for. Pure memory; file content is
// elsewhere.
//
// Paths are resolved as a process chrooted into the image would see them: symlinks in the middle of a path
// are followed, absolute targets and ".." end at the image's root. Nothing here can name anything outside.
#pragma once

#include "holt/image/limits.hpp"
#include "image/metadata.hpp"

#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holt::image {

struct Directory;

/// One name. Several names may carry one inode.
struct Node {
  std::uint32_t inode = 0;  ///< 0 for a directory until it is written
  EntryKind kind = EntryKind::regular;
  std::unique_ptr<Directory> directory;  ///< of a directory only
  std::unique_ptr<std::string> target;   ///< of a symlink only
};

struct Directory {
  Directory* parent = nullptr;  ///< itself for the root
  std::size_t depth = 0;        ///< folders above it; bounded, so that a walk over the tree may recurse
  Metadata metadata;
  std::map<std::string, Node, std::less<>> children;
};

/// Where an entry goes: a directory of the tree and a name in it. An empty name means the root itself.
struct Place {
  Directory* directory = nullptr;
  std::string name;

  Node* find() const;
};

/// Reasons in the errors are half sentences: "has a name of 300 bytes".
class Tree {
 public:
  explicit Tree(const Limits& limits) : limits_(limits) { root_.parent = &root_; }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  Directory& root() { return root_; }

  /// Makes an empty folder at a free place. An error when it would lie too deep.
  std::expected<Directory*, std::string> make_directory(const Place& place);

  /// The place of a path as an archive writes it. Missing parents are made (0755, owned by root).
  std::expected<Place, std::string> place(std::string_view path);
  /// The entry of a path, nothing when there is none; makes nothing. A symlink at the end is not followed.
  std::expected<Node*, std::string> find(std::string_view path);

 private:
  enum class MissingParents { make, stop };
  /// A path's components, cleaned: no empty one, no ".", ".." taken back lexically and never above the root.
  std::expected<std::vector<std::string>, std::string> components(std::string_view path) const;
  std::expected<Place, std::string> walk(std::string_view path, MissingParents missing);

  Limits limits_;
  Directory root_;
};

}  // namespace holt::image
