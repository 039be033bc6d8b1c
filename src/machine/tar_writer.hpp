// A tree as a tar: the pax interchange format (POSIX.1-2001), by libarchive.
#pragma once

#include "holt/machine/files.hpp"
#include "machine/tree_decoder.hpp"

#include <exception>
#include <memory>
#include <string>
#include <string_view>

struct archive;

namespace holt::machine {

/// Not thread-safe. What the output throws comes out of the call that wrote.
class TarWriter final : public TreeSink {
 public:
  /// `root_name` is the name of a root that is a file; a folder's content stands below "./".
  TarWriter(const TarOutput& output, std::string root_name);
  ~TarWriter() override;
  TarWriter(const TarWriter&) = delete;
  TarWriter& operator=(const TarWriter&) = delete;

  void directory(const TreePath& path, const protocol::TreeEntry& entry) override;
  void link(const TreePath& path, const protocol::TreeEntry& entry) override;
  void begin_file(const TreePath& path, const protocol::TreeEntry& entry) override;
  void bytes(std::string_view bytes) override;
  void hole(std::uint64_t size) override;
  void end_file() override;
  void finish() override;

 private:
  void header(const TreePath& path, const protocol::TreeEntry& entry);
  /// Ends the copy for an error of libarchive, or with what the output threw.
  void check(long status);
  static long write_some(archive* handle, void* self, const void* bytes, std::size_t size);

  const TarOutput& output_;
  std::string root_name_;
  std::exception_ptr failure_;
  bool finished_ = false;
  bool dropping_ = false;  ///< nobody wants the rest
  archive* handle_;
};

}  // namespace holt::machine
