// A file written beside its target and put in its place in one step.
#pragma once

#include "guest/bulk_io.hpp"
#include "guest/outcome.hpp"
#include "holt/base/fd.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>

namespace holt::guest {

struct ReplacementOptions {
  protocol::WriteMode write = protocol::WriteMode::replace;
  std::optional<std::uint32_t> mode = {};  ///< none: that of the replaced file, 0644 for a new one
  std::optional<std::uint64_t> size = {};  ///< when known
  bool durable = false;
  /// A new file may be seen under its name while it is written: half the price for many small files.
  bool new_in_place = false;
  /// A symlink of that name is replaced rather than refused.
  bool over_links = false;
  std::optional<timespec> mtime = {};
  /// None: that of the replaced file, or the acting user. An id of -1 is as none.
  std::optional<std::pair<uid_t, gid_t>> owner = {};
  std::string expected_sha256 = {};  ///< the replaced file must have it, in lower-case hex
};

/// Gone without commit() it leaves everything as it was.
class FileReplacement {
 public:
  /// `folder` must stay open. `shown` is the path in messages.
  static Outcome<std::unique_ptr<FileReplacement>> begin(int folder, std::string name, std::string shown,
                                                         const ReplacementOptions& options);
  ~FileReplacement();
  FileReplacement(const FileReplacement&) = delete;
  FileReplacement& operator=(const FileReplacement&) = delete;

  Outcome<> write(std::string_view bytes) { return writer_->write(bytes); }
  Outcome<> skip(std::uint64_t size) { return writer_->skip(size); }
  std::uint64_t written() const { return writer_->written(); }
  Outcome<> commit();
  bool creates() const { return !replaced_; }

 private:
  FileReplacement(int folder, std::string name, std::string shown, const ReplacementOptions& options)
      : folder_(folder), name_(std::move(name)), shown_(std::move(shown)), options_(options) {}

  bool keeps_old() const { return replaced_ && S_ISREG(replaced_->st_mode); }
  Outcome<> look_at_target();
  Outcome<> open_new();
  Outcome<> set_attributes();
  Outcome<> set_owner();
  Outcome<> check_content() const;
  void copy_extended_attributes();
  Outcome<> put_in_place();
  Outcome<> rename_over();

  int folder_;
  std::string name_;
  std::string shown_;
  ReplacementOptions options_;
  std::optional<struct stat> replaced_;
  Fd fd_;
  std::string temporary_;  // name in the folder that is to go unless committed; empty for an unnamed file
  bool unnamed_ = false;
  std::optional<BulkWriter> writer_;
};

}  // namespace holt::guest
