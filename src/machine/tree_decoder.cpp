#include "machine/tree_decoder.hpp"

#include "machine/guest_link.hpp"

#include <fmt/format.h>

namespace holt::machine {

using namespace protocol;

namespace {

// Each path is remembered, to see one that comes twice: the guest must not fill the host's memory with them.
constexpr std::uint64_t k_most_path_bytes = std::uint64_t{256} << 20;
// What remembering costs beyond the bytes: a node of the set, 80 bytes of the allocator, and up to 24 that it
// adds to the text.
constexpr std::uint64_t k_path_cost = 104;

[[noreturn]] void broken(const std::string& what) {
  throw Error(ErrorCode::guest_protocol, fmt::format("The guest program broke the protocol: {}", what));
}

}  // namespace

/// A full disk and an impatient caller end the copy; one bad name does not. The root must succeed.
template <class Action>
void TreeDecoder::attempt(const Action& action) {
  if (failed_) return;
  try {
    action();
  } catch (const Error& e) {
    bool ends = e.code() == ErrorCode::storage_full || e.code() == ErrorCode::cancelled ||
                e.code() == ErrorCode::timeout;
    if (ends || path_.empty()) throw;
    log_.failed(path_, e.what());
    failed_ = true;
  }
}

TreeDecoder::More TreeDecoder::take(const Frame& frame) {
  switch (frame.header.type) {
    case FrameType::started:
      return More::yes;
    case FrameType::entry:
      left_ > 0 ? take_hole(frame.payload) : take_entry(frame.payload);
      return More::yes;
    case FrameType::output:
      attempt([&] { sink_.bytes(std::string_view(frame.payload).substr(0, left_)); });
      take_content(frame.payload.size());
      return More::yes;
    case FrameType::reply:
      if (left_ > 0) broken("fewer bytes of a file than announced");
      take_reply(frame.payload);
      sink_.finish();
      return More::no;
    default:
      broken("a frame that no tree has");
  }
}

void TreeDecoder::take_entry(std::string_view payload) {
  auto entry = decode<TreeEntry>(payload);
  if (!entry) throw guest_protocol_error(entry.error());
  path_bytes_ += entry->path.size() + k_path_cost;
  if (path_bytes_ > k_most_path_bytes) {
    throw Error(
        ErrorCode::limit_exceeded,
        fmt::format("The tree's paths take more than 256 MiB, {} bytes each beside their own", k_path_cost));
  }
  auto path = TreePath::from(entry->path);
  if (!path) broken("a path that leaves the tree");
  if (!seen_.insert(entry->path).second) broken("one path twice in a tree");
  path_ = entry->path;
  failed_ = false;
  if (entry->failed) return log_.failed(path_, entry->problem);
  take_item(*path, *entry);
}

void TreeDecoder::take_item(const TreePath& path, const TreeEntry& entry) {
  switch (entry.type) {
    case protocol::FileType::regular:
      left_ = entry.size;
      holes_ = entry.holes;
      attempt([&] { sink_.begin_file(path, entry); });
      if (left_ == 0) attempt([&] { sink_.end_file(); });
      break;
    case protocol::FileType::directory:
      attempt([&] { sink_.directory(path, entry); });
      break;
    case protocol::FileType::symlink:
      attempt([&] { sink_.link(path, entry); });
      break;
    default:
      return log_.skipped(path_, "is no file, folder or link");
  }
  if (!failed_) log_.entry();
}

void TreeDecoder::take_hole(std::string_view payload) {
  if (!holes_) broken("fewer bytes of a file than announced");
  auto hole = decode<TreeHole>(payload);
  if (!hole) throw guest_protocol_error(hole.error());
  if (hole->length == 0) broken("a hole of no bytes");
  if (hole->length <= left_) attempt([&] { sink_.hole(hole->length); });
  take_content(hole->length);
}

void TreeDecoder::take_content(std::uint64_t size) {
  if (size > left_) broken("more bytes of a file than announced");
  left_ -= size;
  log_.bytes(size);
  if (left_ == 0) attempt([&] { sink_.end_file(); });
}

void TreeDecoder::take_reply(std::string_view payload) {
  auto reply = decode<TreeReply>(payload);
  if (!reply) throw guest_protocol_error(reply.error());
  // Those that were sent as entries stand in the log already.
  for (const auto& problem : reply->problems) {
    if (!log_.names(problem.path)) log_.failed(problem.path, problem.message);
  }
}

}  // namespace holt::machine
