// Sends a tree to the guest, item by item.
#pragma once

#include "holt/protocol/messages.hpp"
#include "machine/copy_log.hpp"
#include "machine/file_streams.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace holt::machine {

/// Every call throws Error when the guest ended the copy, with its reason. Gone without finish() it ends the
/// copy where it stands.
class TreeUpload {
 public:
  TreeUpload(const MachineFolder& folder, const std::string& target, const CopyOptions& options);
  ~TreeUpload();
  TreeUpload(const TreeUpload&) = delete;
  TreeUpload& operator=(const TreeUpload&) = delete;

  /// A regular file (but a hard link) is followed by exactly its size in bytes() and hole().
  void entry(const protocol::TreeEntry& entry);
  void bytes(std::string_view bytes);
  /// Zero bytes that are not sent; of an entry with `holes`.
  void hole(std::uint64_t size);
  /// Waits until the guest has written all.
  CopyResult finish();

  CopyLog& log() { return log_; }

 private:
  [[noreturn]] void throw_early_end();

  Patience patience_;
  CopyLog log_;
  std::unique_ptr<StreamConnection> connection_;
};

}  // namespace holt::machine
