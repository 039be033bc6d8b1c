// Refuses tars on which readers disagree. libarchive is lenient where the tar readers of other container
// tools are strict (Go's archive/tar): it cuts a name at a NUL, takes a number up to the first byte that is
// no digit, makes a file of an unknown type, and obeys extended records that only some writers know. An image
// that means two things is none, so the headers are looked at once more while they pass through.
#pragma once

#include "image/byte_source.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace holt::image {

/// A tar, passed through with three changes: extended records that do not count are renamed to what no reader
/// knows (read_pax_records()); a link's header without a target gets one when an extension has the true one,
/// since libarchive forgets that otherwise; and the padding of the last member is added where a writer left
/// it out at the end of the stream (umoci insert does, and readers in Go take it). read() throws Error
/// IMAGE_INVALID with the number of the member whose header is wrong, or that is cut, and LIMIT_EXCEEDED for
/// a sparse file of more than k_sparse_pieces. What lies behind the two empty blocks at the end is not looked
/// at. Source: POSIX pax, "ustar Interchange Format" and "pax Extended Header"; GNU tar manual, "Basic Tar
/// Format" and "Storing Sparse Files".
class TarCheck final : public ByteSource {
 public:
  explicit TarCheck(ByteSource& below) : below_(below) {}
  std::string_view read() override;
  /// Whether the stream has no bytes at all. Asked before anything is read.
  bool is_empty();
  /// Reads on to the end of the archive, where a reader stops at the first of its two empty blocks.
  void finish();

 private:
  enum class State { header, extension, sparse_map, sparse_count, data, end };

  std::string_view end_of_stream();
  void look_at(std::string_view& rest);
  void look_at_block();
  void look_at_header();
  void look_at_member(char type, std::uint64_t size);
  void start_extension(char type, std::uint64_t size);
  std::string_view end_extension();
  bool is_behind_extension() const;
  std::string_view end_header();
  bool has_long_link() const;
  void look_at_sparse_map(std::size_t pieces);
  void look_at_sparse_count();
  void check_names() const;
  /// Of the member whose header is in the block, without ustar's prefix.
  std::string_view name() const;
  void skip(std::uint64_t size, State next);
  [[noreturn]] void refuse(std::string_view reason, ErrorCode code = ErrorCode::image_invalid) const;

  ByteSource& below_;
  std::string_view rest_;  ///< of the piece that the source gave last
  State state_ = State::header;
  std::uint64_t members_ = 0;  ///< whose headers have passed
  std::string block_;          ///< a header, or the first line of a sparse file's data, not whole yet
  std::string header_;         ///< behind an extension, held back until it is whole
  std::uint64_t left_ = 0;     ///< of an extension or of data, padding included
  std::uint64_t padding_ = 0;  ///< of a member's data, the last of left_
  bool empty_block_ = false;   ///< the last one was
  char extension_type_ = 0;    ///< of the body that passes
  std::uint64_t extension_size_ = 0;
  std::string extension_;     ///< that body with its padding, held back until it is whole
  std::uint64_t pieces_ = 0;  ///< of a sparse file

  // What the extensions said about the next member.
  std::optional<std::map<std::string, std::string, std::less<>>> records_;
  std::optional<std::string> long_name_;
  std::optional<std::string> long_link_;
};

}  // namespace holt::image
