#include "image/byte_source.hpp"

#include <array>
#include <cerrno>
#include <poll.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr std::size_t k_read_bytes = std::size_t{1} << 20;

/// Waits until `fd` can be read or throws CANCELLED.
void wait_readable(int fd, const CancellationToken& cancel) {
  std::array<pollfd, 2> fds{{{fd, POLLIN, 0}, {cancel.fd(), POLLIN, 0}}};
  while (::poll(fds.data(), fds.size(), -1) < 0) {
    if (errno != EINTR) throw system_error(errno, "wait for the image's bytes");
  }
  cancel.throw_if_cancelled();
}

}  // namespace

FdSource::FdSource(int fd, std::optional<CancellationToken> cancel)
    : fd_(fd), cancel_(std::move(cancel)), buffer_(k_read_bytes, '\0') {}

std::string_view FdSource::read() {
  while (true) {
    if (cancel_) wait_readable(fd_, *cancel_);
    ssize_t n = ::read(fd_, buffer_.data(), buffer_.size());
    if (n >= 0) return {buffer_.data(), static_cast<std::size_t>(n)};
    if (errno != EINTR) throw system_error(errno, "read the image");
  }
}

std::string_view MeteredSource::read() {
  std::string_view piece = below_.read();
  count_ += piece.size();
  if (count_ > limit_) {
    throw Error(ErrorCode::limit_exceeded, fmt::format("the image unpacks to more than {} bytes", limit_),
                {.hint = k_bytes_hint});
  }
  digest_.update(piece);
  return piece;
}

void MeteredSource::drain() {
  while (!read().empty()) {
  }
}

void ArchiveDeleter::operator()(archive* handle) const {
  archive_read_free(handle);
}

long ArchiveFeed::read_some(archive* handle, void* self, const void** out) {
  auto* feed = static_cast<ArchiveFeed*>(self);
  try {
    std::string_view piece = feed->source_.read();
    *out = piece.data();
    return static_cast<long>(piece.size());
  } catch (...) {
    feed->failure_ = std::current_exception();
    archive_set_error(handle, EIO, "the source failed");
    return ARCHIVE_FATAL;
  }
}

int ArchiveFeed::open(archive* handle) {
  return archive_read_open2(handle, this, nullptr, &ArchiveFeed::read_some, nullptr, nullptr);
}

void ArchiveFeed::rethrow() {
  if (failure_) std::rethrow_exception(failure_);
}

std::string read_all(ByteSource& source, std::size_t limit) {
  std::string all;
  for (std::string_view piece = source.read(); !piece.empty(); piece = source.read()) {
    if (all.size() + piece.size() > limit) {
      throw Error(ErrorCode::limit_exceeded, fmt::format("more than {} bytes after decompression", limit));
    }
    all += piece;
  }
  return all;
}

}  // namespace holt::image
