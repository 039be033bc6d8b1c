// The merged tree of an image's layers: names and what they stand for. Pure memory; file content is
// elsewhere.
//
// Paths are resolved as a process chrooted into the image would see them: symlinks in the middle of a path
// are followed, absolute targets and ".." end at the image's root. Nothing here can name anything outside.
//
// Each entry knows the layer that put or touched it last. A whiteout takes away what lower layers left and
// spares its own layer's entries, so the order within a layer does not matter.
#pragma once

#include "holt/image/limits.hpp"
#include "image/metadata.hpp"
#include "image/path.hpp"

#include <cstdint>
#include <expected>
#include <memory_resource>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/intrusive/set.hpp>

namespace holt::image {

struct Directory;

/// One name. Several names may carry one inode. A million of them are the bar: small, and each in one piece.
struct Node : boost::intrusive::set_base_hook<boost::intrusive::optimize_size<true>> {
  std::string_view name;    ///< in the tree's memory
  std::uint32_t inode = 0;  ///< 0 for a directory until it is written
  std::uint16_t layer = 0;  ///< that put or touched it last
  EntryKind kind = EntryKind::regular;
  Directory* directory = nullptr;  ///< of a directory only
  const char* target = nullptr;    ///< of a symlink only, in the tree's memory
};

struct NameOf {
  using type = std::string_view;
  type operator()(const Node& node) const { return node.name; }
};
using Children = boost::intrusive::set<Node, boost::intrusive::key_of_value<NameOf>,
                                       boost::intrusive::constant_time_size<false>>;

struct Directory {
  Directory* parent = nullptr;  ///< itself for the root
  Node* node = nullptr;         ///< its name; nothing for the root
  std::uint16_t depth = 0;      ///< folders above it; bounded, so that a walk over the tree may recurse
  std::uint16_t cleared = 0;    ///< the last layer that left nothing lower in it
  Metadata metadata;
  Children children;
};

/// Where an entry goes: a directory of the tree and a name in it. An empty name means the root itself.
struct Place {
  Directory* directory = nullptr;
  std::string_view name;

  Node* find() const;
};

/// Views into paths need to live for the call only. Not thread-safe.
class Tree {
 public:
  using Inode = std::uint32_t;

  explicit Tree(const Limits& limits) : limits_(limits) { root_.parent = &root_; }
  ~Tree();
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  Directory& root() { return root_; }
  /// Inodes of the names that went since the last call, once for each name.
  std::vector<Inode> take_dropped() { return std::exchange(dropped_, {}); }
  /// Counted against Limits::tree_bytes; names are counted also when their entries are gone.
  std::uint64_t bytes() const { return bytes_; }

  /// From here on, what is put or touched belongs to a layer above all others. At most 65,535.
  void begin_layer();

  /// The place of a path. Missing parents are made (0755, owned by root); all of them are touched.
  std::expected<Place, Refusal> place(const Path& path);
  /// The same, making and touching nothing; a place without a directory when a parent is not there.
  std::expected<Place, Refusal> find_place(const Path& path);

  /// Puts an entry that is no directory in the place of what is there, all of it when that is a directory.
  void put(const Place& place, EntryKind kind, Inode inode, std::string_view target = {});
  /// The directory at a place, with what is in it; an empty one when something else or nothing is there. An
  /// error when it would lie too deep.
  std::expected<Directory*, Refusal> put_directory(const Place& place);
  void set_metadata(Directory& directory, Metadata metadata);

  /// Takes away what lower layers have left under a name, at any depth.
  void white_out(const Place& place);
  /// Takes away what lower layers have left in a directory, at any depth.
  void clear_lower(Directory& directory);

 private:
  struct Walk;
  std::expected<Walk, Refusal> walk(const Path& path);
  std::expected<Directory*, Refusal> make_directory(const Place& place);
  Node& make_node(const Place& place, EntryKind kind);
  std::string_view keep(std::string_view text);
  void touch(Directory& directory);
  void unlink(Directory& directory, Node& node);
  void destroy(Node& node);
  void empty(Directory& directory);

  Limits limits_;
  std::vector<Inode> dropped_;
  std::uint16_t layer_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t steps_ = 0;                           ///< of all walks, against Limits::walk_steps
  std::pmr::unsynchronized_pool_resource pool_;       ///< nodes and directories
  std::pmr::monotonic_buffer_resource texts_{65536};  ///< names and targets
  Directory root_;
};

}  // namespace holt::image
