#include "image/tar_check.hpp"

#include "holt/base/error.hpp"
#include "holt/image/limits.hpp"
#include "image/tar_header.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace holt::image {
namespace {

// GNU's old sparse header ('S'): 4 pieces in the header and 21 in each block behind it, 24 bytes a piece;
// then a byte that says whether another block follows.
constexpr std::size_t k_header_pieces = 4;
constexpr std::size_t k_header_goes_on = 482;
constexpr std::size_t k_block_pieces = 21;
constexpr std::size_t k_block_goes_on = 504;

constexpr std::array<char, k_tar_block> k_padding{};

/// The next bytes, at most `size`.
std::string_view take(std::string_view& rest, std::uint64_t size) {
  std::string_view part =
      rest.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(size, rest.size())));
  rest.remove_prefix(part.size());
  return part;
}

bool has_data(char type) {
  return type == '0' || type == '\0' || type == '7' || type == 'S';
}

bool has_link_target(char type) {
  return type == '1' || type == '2';
}

/// Links, devices, folders, FIFOs: a header and nothing else.
bool is_header_only(char type) {
  return type >= '1' && type <= '6';
}

}  // namespace

std::string_view TarCheck::read() {
  while (true) {
    if (rest_.empty()) rest_ = below_.read();
    if (rest_.empty()) return end_of_stream();
    if (state_ == State::extension) {
      extension_ += take(rest_, left_ - extension_.size());
      if (extension_.size() == left_) return end_extension();
    } else if (is_behind_extension()) {
      block_ += take(rest_, k_tar_block - block_.size());
      if (block_.size() == k_tar_block) return end_header();
    } else {
      std::string_view piece = rest_;
      look_at(rest_);
      return piece.substr(0, piece.size() - rest_.size());
    }
  }
}

std::string_view TarCheck::end_of_stream() {
  if (state_ == State::data && left_ <= padding_) {
    std::string_view padding(k_padding.data(), static_cast<std::size_t>(left_));
    skip(0, State::data);
    return padding;
  }
  bool between = state_ == State::header && block_.empty() && !is_behind_extension();
  if (state_ != State::end && !between) refuse("is cut");
  state_ = State::end;
  return {};
}

bool TarCheck::is_empty() {
  if (rest_.empty()) rest_ = below_.read();
  return rest_.empty();
}

void TarCheck::finish() {
  while (state_ != State::end) read();
}

void TarCheck::refuse(std::string_view reason, ErrorCode code) const {
  bool in_header = state_ == State::header || state_ == State::extension;
  throw Error(code, fmt::format("member {} of the archive {}", in_header ? members_ + 1 : members_, reason));
}

bool TarCheck::is_behind_extension() const {
  return state_ == State::header && (records_ || long_name_ || long_link_);
}

void TarCheck::look_at(std::string_view& rest) {
  while (!rest.empty() && state_ != State::extension && !is_behind_extension()) {
    switch (state_) {
      case State::end:
        rest = {};
        break;
      case State::data:
        left_ -= take(rest, left_).size();
        if (left_ == 0) state_ = State::header;
        break;
      default:
        block_ += take(rest, k_tar_block - block_.size());
        if (block_.size() == k_tar_block) look_at_block();
    }
  }
}

void TarCheck::look_at_block() {
  switch (state_) {
    case State::sparse_map: {
      bool goes_on = block_[k_block_goes_on] != '\0';
      look_at_sparse_map(k_block_pieces);
      if (!goes_on) skip(left_, State::data);
      break;
    }
    case State::sparse_count:
      look_at_sparse_count();
      break;
    default:
      look_at_header();
  }
  block_.clear();
}

void TarCheck::look_at_header() {
  bool empty = block_.find_first_not_of('\0') == std::string::npos;
  if (empty_block_ && !empty) refuse("lies behind the end of the archive");
  if (empty && is_behind_extension()) refuse("ends with its extended header");
  if (empty) {
    if (std::exchange(empty_block_, true)) state_ = State::end;
    return;
  }
  if (!tar_checksum_holds(block_)) refuse("has a damaged header: its checksum is wrong");
  auto size = tar_number(block_, k_size_field);
  if (!size || *size < 0) refuse("has a size that is none");
  for (TarField field : {k_mode_field, k_uid_field, k_gid_field, k_mtime_field}) {
    if (!tar_number(block_, field)) refuse("has a number in its header that is none");
  }
  char type = block_[k_type_offset];
  if (is_extension(type)) return start_extension(type, static_cast<std::uint64_t>(*size));
  look_at_member(type, static_cast<std::uint64_t>(*size));
  records_.reset();
  long_name_.reset();
  long_link_.reset();
  ++members_;
}

void TarCheck::start_extension(char type, std::uint64_t size) {
  if (size > k_extension_bytes) refuse(fmt::format("has an extended header of {} bytes", size));
  bool second = (type == 'x' && records_) || (type == 'L' && long_name_) || (type == 'K' && long_link_);
  if (second) refuse("has two extended headers of one kind");
  extension_type_ = type;
  extension_size_ = size;
  extension_.clear();
  left_ = whole_blocks(size);
  state_ = State::extension;
  if (left_ == 0) end_extension();
}

std::string_view TarCheck::end_header() {
  bool elsewhere = has_link_target(block_[k_type_offset]) && block_[k_link_offset] == '\0' && has_long_link();
  header_ = block_;
  look_at_block();
  if (elsewhere) {
    header_[k_link_offset] = '.';
    set_tar_checksum(header_);
  }
  return header_;
}

bool TarCheck::has_long_link() const {
  return (long_link_ && !long_link_->empty()) || (records_ && records_->contains("linkpath"));
}

std::string_view TarCheck::end_extension() {
  state_ = State::header;
  extension_.resize(static_cast<std::size_t>(extension_size_));
  if (extension_type_ == 'L') long_name_ = extension_.c_str();
  if (extension_type_ == 'K') long_link_ = extension_.c_str();
  if (extension_type_ == 'x' || extension_type_ == 'g') {
    auto records = read_pax_records(extension_);
    if (!records) refuse(records.error());
    // A global one applies to nothing here, as in libarchive and in Go.
    if (extension_type_ == 'x') records_ = std::move(*records);
  }
  extension_.resize(static_cast<std::size_t>(std::exchange(left_, 0)));
  return extension_;
}

void TarCheck::look_at_member(char type, std::uint64_t size) {
  if (!has_data(type) && !is_header_only(type)) {
    refuse(fmt::format("'{}' is of the unknown type {:#04x}", printable(name(), 200),
                       static_cast<unsigned>(static_cast<unsigned char>(type))));
  }
  bool device = type == '3' || type == '4';
  if (device && (!tar_number(block_, k_major_field) || !tar_number(block_, k_minor_field))) {
    refuse("has a device number that is none");
  }
  check_names();
  bool overridden = false;
  auto sparse = sparse_format_of(records_ ? *records_ : PaxRecords());
  if (!sparse) refuse(sparse.error());
  if (*sparse != SparseFormat::none && type != '0') refuse("is a sparse file of another kind");
  if (records_) {
    if (auto found = records_->find("size"); found != records_->end()) {
      std::int64_t value = 0;
      std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
      if (value < 0) refuse("has a negative size");
      size = static_cast<std::uint64_t>(value);
      overridden = true;
    }
  }
  if (is_header_only(type)) {
    // Whether data follow such a header is where readers differ most.
    if (size > 0 && (overridden || type == '1')) refuse("has data, and its kind has none");
    return;
  }
  if (type != '\0' && name().ends_with('/')) refuse("is a file with the name of a folder");
  left_ = whole_blocks(size);
  padding_ = left_ - size;
  pieces_ = 0;
  if (type == 'S') {
    bool goes_on = block_[k_header_goes_on] != '\0';
    look_at_sparse_map(k_header_pieces);
    if (goes_on) {
      state_ = State::sparse_map;
      return;
    }
  }
  skip(left_, *sparse == SparseFormat::pax_1 && left_ > 0 ? State::sparse_count : State::data);
}

std::string_view TarCheck::name() const {
  if (records_) {
    for (std::string_view key : {"GNU.sparse.name", "path"}) {
      auto found = records_->find(key);
      if (found != records_->end() && !found->second.empty()) return found->second;
    }
  }
  if (long_name_) return *long_name_;
  std::string_view field = std::string_view(block_).substr(0, 100);
  return field.substr(0, field.find('\0'));
}

void TarCheck::skip(std::uint64_t size, State next) {
  left_ = size;
  state_ = size == 0 ? State::header : next;
}

void TarCheck::check_names() const {
  if (!records_) return;
  auto differs = [&](std::string_view key, const std::optional<std::string>& name) {
    auto found = records_->find(key);
    return name && found != records_->end() && found->second != *name;
  };
  if (differs("path", long_name_) || differs("GNU.sparse.name", long_name_))
    refuse("has two different names");
  if (differs("linkpath", long_link_)) refuse("has two different link targets");
}

void TarCheck::look_at_sparse_map(std::size_t pieces) {
  pieces_ += pieces;
  if (pieces_ > k_sparse_pieces) {
    refuse(fmt::format("is a sparse file of more than {} pieces", k_sparse_pieces),
           ErrorCode::limit_exceeded);
  }
}

void TarCheck::look_at_sparse_count() {
  std::uint64_t pieces = 0;
  auto [end, error] = std::from_chars(block_.data(), block_.data() + block_.size(), pieces);
  if (error == std::errc::result_out_of_range) pieces = UINT64_MAX;
  if (error == std::errc::invalid_argument || end == block_.data() + block_.size() || *end != '\n') {
    refuse("has a sparse map that is damaged");
  }
  if (pieces > k_sparse_pieces) look_at_sparse_map(k_sparse_pieces + 1);
  skip(left_ - k_tar_block, State::data);
}

}  // namespace holt::image
