// Records of the store: which images are there, what they are called, what they need.
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/base/deadline.hpp"
#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "holt/image/store.hpp"
#include "image/folders.hpp"
#include "image/store_record.hpp"

#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace holt::image {

/// A wait for another builder's last step.
inline constexpr auto k_lock_wait = std::chrono::seconds(60);

/// Whether a file system of an image may have so many bytes: 64 MiB to 1 TiB in whole MiB.
bool is_disk_size(std::uint64_t bytes);
/// Throws InvalidArgument for other sizes.
void check_disk_size(std::uint64_t bytes);

/// The name that a user gives an image. Throws Error USAGE that says what is wrong with it.
Reference parsed_reference(std::string_view text);
/// The store's key of a reference: its canonical form, or the digest itself. Throws Error USAGE.
std::string key_of(std::string_view reference);

/// The entry of a digest when its record can be read and says so; its ext4 file may be missing or cut.
std::optional<Image> read_entry(const Folders& folders, const std::string& digest);
/// Whether the ext4 file is there with the size of the record.
bool has_file_system(const Image& image);
/// The entry of a digest when all its files are there.
std::optional<Image> load_entry(const Folders& folders, const std::string& digest);

/// Reads the ext4 file against its record; true as well for one whose digest was not recorded.
bool is_sound(const Image& image, const std::optional<CancellationToken>& cancel);
/// Throws Error CONFLICT when what was built to take the place of `recorded` has other bytes: the disks of
/// machines are laid over the very bytes of the file system they were made with.
void check_same_content(const std::optional<Image>& recorded, const Image& built);

/// All names, sorted; damaged records are logged and left out.
std::vector<ReferenceRecord> read_references(const Folders& folders);
std::optional<ReferenceRecord> read_reference(const Folders& folders, std::string_view canonical);
/// Digests of all entries, whole or not.
std::set<std::string> read_digests(const Folders& folders);

/// What a reference, a digest (of configuration, manifest or index) or the beginning of a digest (12 digits
/// or more) stands for, whether or not its files are there. Throws Error USAGE for a bad one and for a
/// beginning that several images have.
std::optional<ReferenceRecord> look_up(const Folders& folders, std::string_view reference);

/// Held while an entry is pinned, put in place or removed, and while it is named.
FileLock lock_entry(const Folders& folders, std::string_view digest, Deadline deadline);

/// Held while a name is given or taken: a name that moves to another image is not taken away with the old
/// one. Behind the entry's lock.
FileLock lock_references(const Folders& folders);

/// Moves the new files of an entry to their places; what else is there (smaller file systems) stays. The
/// caller holds the entry's lock.
void place_entry(const Folders& folders, const std::filesystem::path& fresh, std::string_view digest);
/// Gives an image a name, under the lock of the names. The caller holds the entry's lock; the file is made in
/// `scratch`.
void name_entry(const Folders& folders, const ReferenceRecord& record, const std::filesystem::path& scratch);

/// For a reference of which there is nothing here, or nothing whole.
Error image_not_found(const Folders& folders, std::string_view reference);

}  // namespace holt::image
