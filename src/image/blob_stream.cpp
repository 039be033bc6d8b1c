#include "image/blob_stream.hpp"

#include "holt/base/error.hpp"

#include <algorithm>
#include <cerrno>
#include <unistd.h>
#include <utility>

namespace holt::image {
namespace {

constexpr std::size_t k_read_bytes = std::size_t{1} << 20;

}  // namespace

void BlobStream::open(Fd file, std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  files_.push_back(std::move(file));
  bytes_ = bytes;
  changed_.notify_all();
}

void BlobStream::grow(std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  bytes_ = bytes;
  changed_.notify_all();
}

void BlobStream::restart() {
  std::lock_guard lock(mutex_);
  bytes_ = 0;
  ++generation_;
  changed_.notify_all();
}

void BlobStream::finish() {
  std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

void BlobStream::fail(std::exception_ptr failure) {
  std::lock_guard lock(mutex_);
  if (ended_) return;
  ended_ = true;
  failure_ = std::move(failure);
  changed_.notify_all();
}

BlobStream::Piece BlobStream::wait(std::uint64_t position, unsigned generation, Follow follow) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return ended_ || (follow == Follow::growing && bytes_ > position) ||
           (position > 0 && generation != generation_);
  });
  if (failure_) std::rethrow_exception(failure_);
  if (position > 0 && generation != generation_) throw BlobRestarted{};
  return {.fd = files_.empty() ? -1 : files_.back().get(),
          .bytes = bytes_ - std::min(position, bytes_),
          .generation = generation_};
}

unsigned BlobStream::generation() {
  std::lock_guard lock(mutex_);
  return generation_;
}

void BlobStream::wait_end() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_; });
  if (failure_) std::rethrow_exception(failure_);
}

std::string_view FollowingSource::read() {
  while (true) {
    cancel_.throw_if_cancelled();
    auto piece = stream_.wait(position_, generation_, follow_);
    generation_ = piece.generation;
    if (piece.bytes == 0) return {};
    buffer_.resize(k_read_bytes);
    auto count = std::min<std::uint64_t>(piece.bytes, buffer_.size());
    ssize_t n = ::pread(piece.fd, buffer_.data(), count, static_cast<off_t>(position_));
    if (n < 0 && errno != EINTR) throw system_error(errno, "read a layer of the image");
    if (n > 0) {
      position_ += static_cast<std::uint64_t>(n);
      return {buffer_.data(), static_cast<std::size_t>(n)};
    }
    // Nothing where there were bytes. A restart is told before it cuts the file; anything else is damage.
    if (n == 0 && stream_.generation() == piece.generation)
      throw Error(ErrorCode::storage_error, "read a layer of the image: its file has become shorter");
  }
}

}  // namespace holt::image
