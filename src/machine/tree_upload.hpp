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

/// Where the items of a tree go, in the order of the stream.
class TreeTarget {
 public:
  virtual ~TreeTarget() = default;
  /// A regular file (but a hard link) is followed by exactly its size in bytes() and hole().
  virtual void entry(const protocol::TreeEntry& entry) = 0;
  virtual void bytes(std::string_view bytes) = 0;
  /// Zero bytes that are not sent; of an entry with `holes`.
  virtual void hole(std::uint64_t size) = 0;
};

/// Every call throws Error when the guest ended the copy, with its reason. Gone without finish() it ends the
/// copy where it stands.
class TreeUpload final : public TreeTarget {
 public:
  TreeUpload(const MachineFolder& folder, const std::string& target, const CopyOptions& options);
  ~TreeUpload() override;
  TreeUpload(const TreeUpload&) = delete;
  TreeUpload& operator=(const TreeUpload&) = delete;

  void entry(const protocol::TreeEntry& entry) override;
  void bytes(std::string_view bytes) override;
  void hole(std::uint64_t size) override;
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
