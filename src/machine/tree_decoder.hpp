// Takes apart the stream in which a guest sends a tree, and checks all of it: names, order, sizes, counts.
#pragma once

#include "holt/protocol/messages.hpp"
#include "machine/copy_log.hpp"
#include "machine/host_tree.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace holt::machine {

/// Where a tree goes. Calls come in the order of the stream: a file is begun, filled and ended before the
/// next entry. What throws Error is a problem of its entry, except STORAGE_FULL, CANCELLED and TIMEOUT, which
/// end the copy.
class TreeSink {
 public:
  virtual ~TreeSink() = default;
  virtual void directory(const TreePath& path, const protocol::TreeEntry& entry) = 0;
  virtual void link(const TreePath& path, const protocol::TreeEntry& entry) = 0;
  virtual void begin_file(const TreePath& path, const protocol::TreeEntry& entry) = 0;
  virtual void bytes(std::string_view bytes) = 0;
  virtual void hole(std::uint64_t size) = 0;
  virtual void end_file() = 0;
  virtual void finish() = 0;
};

class TreeDecoder {
 public:
  enum class More { yes, no };
  TreeDecoder(TreeSink& sink, CopyLog& log) : sink_(sink), log_(log) {}

  /// Takes the next frame of the stream; no more behind the reply. Throws Error GUEST_PROTOCOL,
  /// LIMIT_EXCEEDED, STORAGE_FULL, and what kept the root from being written.
  More take(const protocol::Frame& frame);

 private:
  void take_entry(std::string_view payload);
  void take_item(const TreePath& path, const protocol::TreeEntry& entry);
  void take_hole(std::string_view payload);
  void take_content(std::uint64_t size);
  void take_reply(std::string_view payload);
  template <class Action>
  void attempt(const Action& action);

  TreeSink& sink_;
  CopyLog& log_;
  std::set<std::string> seen_;
  std::string path_;        // of the present entry
  std::uint64_t left_ = 0;  // bytes of it that are due
  bool holes_ = false;      // some of them may be told rather than sent
  bool failed_ = false;     // it could not be written: its bytes are dropped
  std::uint64_t path_bytes_ = 0;
};

}  // namespace holt::machine
