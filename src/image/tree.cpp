#include "image/tree.hpp"

#include "holt/base/error.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace holt::image {
namespace {

/// A link's target, last component first: a walk takes them from the end. ".." stays. How many components
/// were looked at, empty ones too.
std::size_t push_reversed(std::vector<std::string_view>& parts, std::string_view target) {
  std::size_t first = parts.size();
  std::size_t seen = 0;
  for (; !target.empty(); ++seen) {
    std::size_t slash = std::min(target.find('/'), target.size());
    std::string_view part = target.substr(0, slash);
    if (!part.empty() && part != ".") parts.push_back(part);
    target.remove_prefix(std::min(slash + 1, target.size()));
  }
  std::reverse(parts.begin() + static_cast<std::ptrdiff_t>(first), parts.end());
  return seen;
}

std::uint64_t bytes_of(const Metadata& metadata) {
  std::uint64_t bytes = 0;
  for (const auto& attribute : metadata.xattrs) {
    bytes += sizeof attribute + attribute.first.size() + attribute.second.size();
  }
  return bytes;
}

}  // namespace

/// Where a path's parents lead: what is there of them, and the names of those that are no folders. A ".."
/// behind such a name takes it back, so that a link through what is not there leads somewhere (as in umoci
/// and Docker).
struct Tree::Walk {
  Directory* directory;
  std::vector<std::string_view> missing;
};

Node* Place::find() const {
  auto found = directory->children.find(name);
  return found == directory->children.end() ? nullptr : &*found;
}

Tree::~Tree() {
  empty(root_);
}

void Tree::begin_layer() {
  if (layer_ == UINT16_MAX) {
    throw Error(ErrorCode::limit_exceeded, fmt::format("the image has more than {} layers", layer_));
  }
  ++layer_;
}

std::string_view Tree::keep(std::string_view text) {
  bytes_ += text.size() + 1;
  auto* copy = static_cast<char*>(texts_.allocate(text.size() + 1, 1));
  std::ranges::copy(text, copy);
  copy[text.size()] = '\0';
  return {copy, text.size()};
}

Node& Tree::make_node(const Place& place, EntryKind kind) {
  Node& node = *std::pmr::polymorphic_allocator<>(&pool_).new_object<Node>();
  bytes_ += sizeof(Node);
  node.name = keep(place.name);
  node.kind = kind;
  node.layer = layer_;
  place.directory->children.insert(node);
  return node;
}

std::expected<Directory*, Refusal> Tree::make_directory(const Place& place) {
  if (place.directory->depth >= limits_.path_depth) {
    return refused(fmt::format("lies more than {} folders deep", limits_.path_depth),
                   ErrorCode::limit_exceeded);
  }
  if (place.name.starts_with(k_marker_prefix)) {
    return refused("has a parent that is called like a whiteout");
  }
  Node& node = make_node(place, EntryKind::directory);
  node.directory = std::pmr::polymorphic_allocator<>(&pool_).new_object<Directory>();
  bytes_ += sizeof(Directory);
  node.directory->parent = place.directory;
  node.directory->node = &node;
  node.directory->depth = static_cast<std::uint16_t>(place.directory->depth + 1);
  node.directory->cleared = layer_;
  return node.directory;
}

void Tree::unlink(Directory& directory, Node& node) {
  directory.children.erase(Children::s_iterator_to(node));
  destroy(node);
}

void Tree::destroy(Node& node) {
  if (node.directory) {
    empty(*node.directory);
    bytes_ -= sizeof(Directory) + bytes_of(node.directory->metadata);
    std::pmr::polymorphic_allocator<>(&pool_).delete_object(node.directory);
  } else {
    dropped_.push_back(node.inode);
  }
  bytes_ -= sizeof(Node);
  std::pmr::polymorphic_allocator<>(&pool_).delete_object(&node);
}

void Tree::empty(Directory& directory) {
  directory.children.clear_and_dispose([&](Node* node) { destroy(*node); });
}

void Tree::touch(Directory& directory) {
  for (Directory* at = &directory; at->node && at->node->layer != layer_; at = at->parent) {
    at->node->layer = layer_;
  }
}

std::expected<Tree::Walk, Refusal> Tree::walk(const Path& path) {
  std::vector<std::string_view> pending(path.rbegin(), path.rend());
  if (!pending.empty()) pending.erase(pending.begin());
  Walk reached{.directory = &root_, .missing = {}};
  std::size_t followed = 0;
  std::size_t steps = 0;
  while (!pending.empty()) {
    if (++steps > limits_.path_depth * limits_.symlinks_followed) return refused("has a parent without end");
    if (++steps_ > limits_.walk_steps) {
      return refused(
          fmt::format("brings the way to the members of the image above {} steps from folder to folder",
                      limits_.walk_steps),
          ErrorCode::limit_exceeded);
    }
    std::string_view part = pending.back();
    pending.pop_back();
    if (part == "..") {
      if (reached.missing.empty()) {
        reached.directory = reached.directory->parent;
      } else {
        reached.missing.pop_back();
      }
      continue;
    }
    if (part.size() > k_name_bytes) return refused("has a parent with a target too long");
    Node* found = reached.missing.empty() ? Place{reached.directory, part}.find() : nullptr;
    if (found && found->directory) {
      reached.directory = found->directory;
    } else if (found && found->target) {
      if (++followed > limits_.symlinks_followed) return refused("has too many links in its path");
      std::string_view target = found->target;
      if (target.starts_with('/')) reached.directory = &root_;
      steps_ += push_reversed(pending, target);
    } else {
      reached.missing.push_back(part);
    }
  }
  return reached;
}

std::expected<Place, Refusal> Tree::place(const Path& path) {
  auto reached = walk(path);
  if (!reached) return std::unexpected(reached.error());
  Directory* at = reached->directory;
  touch(*at);
  if (!reached->missing.empty() && Place{at, reached->missing.front()}.find()) {
    return refused(
        fmt::format("lies below '{}', which is no folder", printable(reached->missing.front(), 64)));
  }
  for (std::string_view name : reached->missing) {
    auto made = make_directory({at, name});
    if (!made) return std::unexpected(made.error());
    at = *made;
  }
  return Place{at, path.empty() ? std::string_view() : path.back()};
}

std::expected<Place, Refusal> Tree::find_place(const Path& path) {
  auto reached = walk(path);
  if (!reached) return std::unexpected(reached.error());
  if (!reached->missing.empty()) return Place{};
  return Place{reached->directory, path.empty() ? std::string_view() : path.back()};
}

void Tree::put(const Place& place, EntryKind kind, Inode inode, std::string_view target) {
  if (Node* present = place.find()) unlink(*place.directory, *present);
  Node& node = make_node(place, kind);
  node.inode = inode;
  if (kind == EntryKind::symlink) node.target = keep(target).data();
}

std::expected<Directory*, Refusal> Tree::put_directory(const Place& place) {
  Node* present = place.find();
  if (present && present->directory) {
    touch(*present->directory);
    return present->directory;
  }
  if (present) unlink(*place.directory, *present);
  return make_directory(place);
}

void Tree::set_metadata(Directory& directory, Metadata metadata) {
  bytes_ += bytes_of(metadata);
  bytes_ -= bytes_of(directory.metadata);
  directory.metadata = std::move(metadata);
}

void Tree::white_out(const Place& place) {
  Node* node = place.find();
  if (!node) return;
  if (node->layer != layer_) {
    unlink(*place.directory, *node);
  } else if (node->directory) {
    clear_lower(*node->directory);
  }
}

void Tree::clear_lower(Directory& directory) {
  // Nothing lower can come back into it, so that each folder is looked through once a layer at most.
  if (directory.cleared == layer_) return;
  directory.cleared = layer_;
  for (auto it = directory.children.begin(); it != directory.children.end();) {
    Node& node = *it++;
    if (node.layer != layer_) {
      unlink(directory, node);
    } else if (node.directory) {
      clear_lower(*node.directory);
    }
  }
}

}  // namespace holt::image
