// The files of a layout or a saved archive by name, from a folder or from a tar: no name and no link in it
// leads anywhere else.
//
//   FolderFiles files(path);
//   if (auto slice = files.open("index.json")) text = read_slice(*slice, limit, "index.json");
#pragma once

#include "holt/base/fd.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace holt::image {

/// A run of bytes of a regular file.
struct FileSlice {
  Fd file;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

/// Safe to use from several threads.
class SourceFiles {
 public:
  virtual ~SourceFiles() = default;
  /// The file of a relative name; nothing when there is none. Throws Error IMAGE_INVALID for an absolute name
  /// or one with "..", and for what is no regular file: links are not followed.
  virtual std::optional<FileSlice> open(const std::string& name) const = 0;
};

/// Files below a folder, opened by openat2(2) so that no link is followed on the way.
class FolderFiles final : public SourceFiles {
 public:
  /// Throws Error NOT_FOUND, NOT_A_DIRECTORY, PERMISSION_DENIED.
  explicit FolderFiles(const std::filesystem::path& folder);
  std::optional<FileSlice> open(const std::string& name) const override;

 private:
  Fd folder_;
};

struct ArchiveMember {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::string fault = {};  ///< why it cannot be used, half a sentence; empty: it can
  std::string link = {};   ///< cleaned name that a link stands for
};

/// Members of a plain tar in a regular file, indexed once.
class ArchiveFiles final : public SourceFiles {
 public:
  /// Reads the headers. Throws Error IMAGE_INVALID for what is no tar and for one that is cut short.
  explicit ArchiveFiles(Fd tar);
  /// As above; LIMIT_EXCEEDED in an archive of over k_archive_members.
  std::optional<FileSlice> open(const std::string& name) const override;
  /// The same, following links to other members: Docker wrote equal layers as links before 2024.
  std::optional<FileSlice> open_linked(const std::string& name) const;
  bool has(const std::string& name) const { return members_.contains(name); }
  /// Whether a member lies below a folder.
  bool has_below(const std::string& folder) const;
  /// The tar itself.
  const Fd& tar() const { return tar_; }

 private:
  void add(const std::string& name, ArchiveMember member);
  const ArchiveMember* find(const std::string& name) const;
  FileSlice slice(const std::string& name, const ArchiveMember& member) const;

  Fd tar_;
  std::map<std::string, ArchiveMember, std::less<>> members_;
  bool complete_ = true;  ///< members_ has all of them
};

/// Members of an archive that are kept in mind; a root file system has more, a layout never. Published in
/// docs/reference.md.
inline constexpr std::size_t k_archive_members = 20'000;

/// All bytes of a slice. Throws Error LIMIT_EXCEEDED above `limit`, IMAGE_INVALID when the file ends before.
std::string read_slice(const FileSlice& slice, std::size_t limit, std::string_view name);
/// At most `bytes` of it from `at` on.
std::string read_at(const FileSlice& slice, std::uint64_t at, std::size_t bytes);

/// Whether a folder has an entry of that name, of whatever kind; no where it cannot be asked.
bool has_entry(const std::filesystem::path& folder, std::string_view name);

/// A relative name without "." and empty components; nothing for an absolute one or one with "..".
std::optional<std::string> clean_member_name(std::string_view name);

}  // namespace holt::image
