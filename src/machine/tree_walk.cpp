#include "machine/tree_walk.hpp"

#include "machine/file_streams.hpp"
#include "machine/guest_link.hpp"
#include "machine/host_tree.hpp"

#include <utility>

#include <fmt/format.h>

namespace holt {

using namespace machine;

namespace {

constexpr std::uint64_t k_most_entries = 4'000'000;

[[noreturn]] void broken(const char* what) {
  throw Error(ErrorCode::guest_protocol, fmt::format("The guest program broke the protocol: {}", what));
}

WalkEntry walk_entry(protocol::TreeEntry&& entry) {
  return {.path = std::move(entry.path),
          .type = file_type(entry.type),
          .size = entry.size,
          .mode = entry.mode & 07777,
          .uid = entry.uid,
          .gid = entry.gid,
          .mtime_ns = nanoseconds(entry.mtime_s, entry.mtime_ns),
          .target = std::move(entry.link_target),
          .problem = entry.failed ? printable(entry.problem.empty() ? "could not be read" : entry.problem)
                                  : std::string()};
}

}  // namespace

class TreeWalk::Impl {
 public:
  Impl(const MachineFolder& folder, const std::string& path, const WalkOptions& options, Sending sending)
      : path_(path), patience_(options.call) {
    protocol::TreeOutRequest request{.path = path,
                                     .content = protocol::TreeContent::names_only,
                                     .max_depth = options.max_depth,
                                     .user = options.user};
    connection_ = StreamConnection::open(folder, request, Effect::none, patience_.next_step(), sending);
    if (sending == Sending::queues) connection_->set_alarm(patience_.next_step().deadline);
  }
  ~Impl() {
    if (connection_) connection_->kill();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::optional<WalkEntry> next() {
    for (;;) {
      if (auto entry = held()) return entry;
      if (ended_) return std::nullopt;
      take_page(connection_->next(patience_.next_step()));
    }
  }

  Tried<WalkEntry> try_next() {
    for (;;) {
      if (auto entry = held()) return {.value = std::move(entry)};
      if (ended_) return Tried<WalkEntry>::end();
      auto frame = connection_->try_next();
      if (frame.pending) return Tried<WalkEntry>::not_yet();
      connection_->set_alarm(patience_.next_step().deadline);
      take_page(std::move(frame.value));
    }
  }

  StreamConnection& connection() { return *connection_; }
  void abandon() noexcept {
    connection_->abandon();
    [[maybe_unused]] auto* kept = connection_.release();
  }

 private:
  /// The next entry of the page at hand.
  std::optional<WalkEntry> held() {
    while (at_ < page_.entries.size()) {
      auto entry = std::move(page_.entries[at_++]);
      if (++count_ > k_most_entries) {
        throw Error(ErrorCode::limit_exceeded,
                    fmt::format("{} holds more than {} entries", printable(path_), k_most_entries),
                    {.subject = printable(path_)});
      }
      if (count_ == 1) {
        check_root(entry);
        continue;
      }
      auto path = TreePath::from(entry.path);
      if (!path || path->empty()) broken("a path that leaves the tree");
      return walk_entry(std::move(entry));
    }
    return std::nullopt;
  }

  void take_page(std::optional<protocol::Frame> frame) {
    if (!frame) throw Error(ErrorCode::cancelled, "The walk was cancelled");
    switch (frame->header.type) {
      case protocol::FrameType::started:
        return;
      case protocol::FrameType::reply:
        ended_ = true;
        return;
      case protocol::FrameType::entry:
        break;
      default:
        broken("a frame that no walk has");
    }
    auto page = protocol::decode<protocol::TreePage>(frame->payload);
    if (!page) throw guest_protocol_error(page.error());
    if (page->entries.empty()) broken("a page without entries");
    page_ = std::move(*page);
    at_ = 0;
  }

  void check_root(const protocol::TreeEntry& root) const {
    if (!root.path.empty()) broken("a tree without its root");
    auto shown = printable(path_);
    if (root.type != protocol::FileType::directory) {
      throw Error(ErrorCode::not_a_directory, fmt::format("{} is no folder", shown), {.subject = shown});
    }
    if (root.failed) {
      throw Error(ErrorCode::permission_denied,
                  fmt::format("{} cannot be read: {}", shown, printable(root.problem)), {.subject = shown});
    }
  }

  std::string path_;
  Patience patience_;
  std::unique_ptr<StreamConnection> connection_;
  protocol::TreePage page_;
  std::size_t at_ = 0;
  std::uint64_t count_ = 0;
  bool ended_ = false;
};

TreeWalk::TreeWalk(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TreeWalk::TreeWalk(TreeWalk&&) noexcept = default;
TreeWalk& TreeWalk::operator=(TreeWalk&&) noexcept = default;
TreeWalk::~TreeWalk() = default;
std::optional<WalkEntry> TreeWalk::next() {
  return impl_->next();
}
Tried<WalkEntry> TreeWalk::try_next() {
  return impl_->try_next();
}
int TreeWalk::fd() const {
  return impl_->connection().poll_fd();
}
void TreeWalk::cancel() {
  impl_->connection().kill();
}
void TreeWalk::abandon() noexcept {
  impl_->abandon();
}

namespace machine {

TreeWalk walk_tree(const MachineFolder& folder, const std::string& path, const WalkOptions& options,
                   Sending sending) {
  return TreeWalk(std::make_unique<TreeWalk::Impl>(folder, path, options, sending));
}

}  // namespace machine
}  // namespace holt
