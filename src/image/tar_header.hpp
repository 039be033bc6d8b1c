// A tar's header block and extended records as plain data, read strictly.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace holt::image {

inline constexpr std::size_t k_tar_block = 512;

/// A field of the header block by its place. Source: POSIX pax, "ustar Interchange Format".
struct TarField {
  std::size_t offset;
  std::size_t length;
};
inline constexpr TarField k_mode_field{100, 8};
inline constexpr TarField k_uid_field{108, 8};
inline constexpr TarField k_gid_field{116, 8};
inline constexpr TarField k_size_field{124, 12};
inline constexpr TarField k_mtime_field{136, 12};
inline constexpr TarField k_checksum_field{148, 8};
inline constexpr std::size_t k_type_offset = 156;
inline constexpr std::size_t k_link_offset = 157;
inline constexpr std::uint64_t k_extension_bytes = std::uint64_t{1} << 20;  ///< of one header; as libarchive
inline constexpr TarField k_major_field{329, 8};
inline constexpr TarField k_minor_field{337, 8};

/// Octal digits between spaces and NULs, or GNU's two's complement of base 256. Nothing for anything else,
/// also for what does not fit.
std::optional<std::int64_t> tar_number(std::string_view block, TarField field);

/// Whether a member of this type says something of the next one: pax's and GNU's extended headers.
bool is_extension(char type);

/// A member's data with their padding.
std::uint64_t whole_blocks(std::uint64_t size);

/// Whether the sum of the bytes, taken signed or unsigned, is the one in the block.
bool tar_checksum_holds(std::string_view block);
void set_tar_checksum(std::string& block);

using PaxRecords = std::map<std::string, std::string, std::less<>>;

/// The records of a pax extended header that count: the last of equal keys, and those alone that readers
/// agree on (path, linkpath, size, uid, gid, mtime, SCHILY.xattr.*, GNU.sparse.*), with a value where they
/// are no attribute. All others are renamed in `body`, so that nobody behind obeys them. An mtime within the
/// second before the epoch ("-0.5") becomes a ctime there: libarchive loses the sign of its zero, and no
/// other record gives a ctime. GNU.sparse.offset and .numbytes make one GNU.sparse.map. The error, half a
/// sentence, is a record that is not well-formed, has a NUL where a name stands, or a number that is none.
std::expected<PaxRecords, std::string> read_pax_records(std::string& body);

enum class SparseFormat {
  none,
  pax_0,  ///< 0.0 and 0.1: the map is a record
  pax_1,  ///< 1.0: the map is at the beginning of the data
};

/// What the records say of a sparse file. The error, half a sentence, is records of no format, or a map that
/// is none. Source: GNU tar manual, "Storing Sparse Files".
std::expected<SparseFormat, std::string> sparse_format_of(const PaxRecords& records);

}  // namespace holt::image
