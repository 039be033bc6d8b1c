#include "guest/bulk_io.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <unistd.h>

namespace holt::guest {

BulkBuffer::BulkBuffer() : data_(static_cast<char*>(std::aligned_alloc(k_bulk_alignment, k_bulk_size))) {
  if (data_ == nullptr) throw std::bad_alloc();
}

void BulkBuffer::Free::operator()(char* data) const {
  std::free(data);
}

Outcome<> BulkWriter::allocate(std::uint64_t size) {
  if (size < k_bulk_size) return {};
  if (::fallocate(fd_, 0, 0, static_cast<off_t>(size)) == 0) return {};
  if (errno == ENOSPC || errno == EFBIG || errno == EDQUOT) return refuse_errno(errno, "write", path_);
  return {};
}

void BulkWriter::set_direct(int flag) {
  is_direct_ = flag != 0 && ::fcntl(fd_, F_SETFL, O_DIRECT) == 0;
  if (flag == 0) ::fcntl(fd_, F_SETFL, 0);
  if (flag != 0 && !is_direct_) direct_works_ = false;
}

Outcome<> BulkWriter::put(std::string_view bytes) {
  while (!bytes.empty()) {
    auto count = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset_));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EINVAL && is_direct_) {
      set_direct(0);
      direct_works_ = false;
      continue;
    }
    if (count < 0) return refuse_errno(errno, "write", path_);
    bytes.remove_prefix(static_cast<std::size_t>(count));
    offset_ += static_cast<std::uint64_t>(count);
  }
  return {};
}

Outcome<> BulkWriter::flush(std::size_t size) {
  bool whole = size == k_bulk_size && offset_ % k_bulk_alignment == 0;
  if (whole && direct_works_ && !is_direct_) set_direct(1);
  if (!whole && is_direct_) set_direct(0);
  std::string_view bytes(buffer_->bytes().data(), size);
  filled_ = 0;
  return put(bytes);
}

Outcome<> BulkWriter::write(std::string_view bytes) {
  if (!bytes.empty()) ends_in_hole_ = false;
  while (!bytes.empty()) {
    if (!buffer_) buffer_ = std::make_unique<BulkBuffer>();
    auto piece = bytes.substr(0, k_bulk_size - filled_);
    std::memcpy(buffer_->bytes().data() + filled_, piece.data(), piece.size());
    filled_ += piece.size();
    bytes.remove_prefix(piece.size());
    if (filled_ == k_bulk_size) {
      if (auto flushed = flush(k_bulk_size); !flushed) return flushed;
    }
  }
  return {};
}

Outcome<> BulkWriter::skip(std::uint64_t size) {
  if (filled_ != 0) {
    if (auto flushed = flush(filled_); !flushed) return flushed;
  }
  constexpr std::uint64_t k_largest = INT64_MAX;
  if (size > k_largest - offset_) return refuse_errno(EFBIG, "write", path_);
  offset_ += size;
  ends_in_hole_ = true;
  return {};
}

Outcome<> BulkWriter::finish() {
  if (filled_ != 0) return flush(filled_);
  if (!ends_in_hole_ || ::ftruncate(fd_, static_cast<off_t>(offset_)) == 0) return {};
  return refuse_errno(errno, "write", path_);
}

}  // namespace holt::guest
