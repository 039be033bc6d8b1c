#include "holt/base/ids.hpp"
#include "machine/copy_log.hpp"
#include "machine/file_streams.hpp"
#include "machine/guest_link.hpp"
#include "machine/host_tree.hpp"
#include "machine/tree_copy.hpp"

#include <fmt/format.h>

namespace holt::machine {

using namespace protocol;

namespace {

// Each path is remembered, to see one that comes twice: the guest must not fill the host's memory with them.
constexpr std::uint64_t k_most_entries = 4'000'000;
constexpr std::uint64_t k_most_path_bytes = std::uint64_t{256} << 20;

[[noreturn]] void broken(const std::string& what) {
  throw Error(ErrorCode::guest_protocol, fmt::format("The guest program broke the protocol: {}", what));
}

/// Takes a stream of tree entries and writes them below a host folder.
class TreeReceiver {
 public:
  TreeReceiver(const MachineFolder& folder, const std::string& source, const std::filesystem::path& target,
               const CopyOptions& options)
      : patience_(options.call), log_(options), tree_(target) {
    connection_ =
        StreamConnection::open(folder, TreeOutRequest{.path = source}, Effect::none, patience_.next_step());
  }
  ~TreeReceiver() { connection_->kill(); }

  CopyResult receive() {
    for (;;) {
      auto frame = connection_->next(patience_.next_step());
      if (!frame) broken("a tree without an end");
      switch (frame->header.type) {
        case FrameType::started:
          break;
        case FrameType::entry:
          take_entry(frame->payload);
          break;
        case FrameType::output:
          take_bytes(frame->payload);
          break;
        case FrameType::reply:
          if (left_ > 0) broken("fewer bytes of a file than announced");
          tree_.finish();
          return std::move(log_.result);
        default:
          broken("a frame that no tree has");
      }
    }
  }

 private:
  void take_entry(const std::string& payload) {
    if (left_ > 0) broken("fewer bytes of a file than announced");
    if (++entries_ > k_most_entries) {
      throw Error(ErrorCode::limit_exceeded,
                  fmt::format("The tree has more than {} entries", k_most_entries));
    }
    auto entry = decode<TreeEntry>(payload);
    if (!entry) throw guest_protocol_error(entry.error());
    path_bytes_ += entry->path.size();
    if (path_bytes_ > k_most_path_bytes) {
      throw Error(ErrorCode::limit_exceeded, "The tree's paths have more than 256 MiB together");
    }
    auto path = TreePath::from(entry->path);
    if (!path) broken("a path that leaves the tree");
    if (!tree_.is_new(*path)) broken("one path twice in a tree");
    if (entry->failed) return log_.failed(entry->path, entry->problem);
    HostEntry facts{.mode = entry->mode, .mtime_ns = nanoseconds(entry->mtime_s, entry->mtime_ns)};
    try {
      switch (entry->type) {
        case protocol::FileType::regular:
          left_ = entry->size;
          tree_.begin_file(*path, facts);
          if (left_ == 0) tree_.end_file();
          break;
        case protocol::FileType::directory:
          tree_.make_directory(*path, facts);
          break;
        case protocol::FileType::symlink:
          tree_.make_link(*path, entry->link_target);
          break;
        default:
          return log_.skipped(entry->path, "is no file, folder or link");
      }
      log_.entry();
    } catch (const Error& e) {
      // A full disk ends the copy; one bad name does not. The root must succeed.
      if (e.code() == ErrorCode::storage_full || path->empty()) throw;
      log_.failed(entry->path, e.what());
    }
  }

  void take_bytes(const std::string& bytes) {
    if (bytes.size() > left_) broken("more bytes of a file than announced");
    left_ -= bytes.size();
    tree_.write(bytes);
    log_.bytes(bytes.size());
    if (left_ == 0) tree_.end_file();
  }

  Patience patience_;
  CopyLog log_;
  HostTree tree_;
  std::unique_ptr<StreamConnection> connection_;
  std::uint64_t left_ = 0;
  std::uint64_t entries_ = 0;
  std::uint64_t path_bytes_ = 0;
};

}  // namespace

CopyResult copy_tree_out(const MachineFolder& folder, const std::string& source,
                         const std::filesystem::path& target, const CopyOptions& options) {
  return TreeReceiver(folder, source, target, options).receive();
}

}  // namespace holt::machine
