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

bool is_accepted(int filter, Compressions accepted) {
  switch (filter) {
    case ARCHIVE_FILTER_NONE:
    case ARCHIVE_FILTER_GZIP:
    case ARCHIVE_FILTER_ZSTD:
      return true;
    case ARCHIVE_FILTER_XZ:
    case ARCHIVE_FILTER_LZ4:
      return accepted == Compressions::kernel;
    default:
      return false;
  }
}

/// Throws NOT_SUPPORTED for what was recognised and is not wanted: another compression, or one inside
/// another.
void check_filters(archive* handle, Compressions accepted) {
  for (int i = 0; i < archive_filter_count(handle); ++i) {
    bool nested = i > 0 && archive_filter_code(handle, i) != ARCHIVE_FILTER_NONE;
    if (!nested && is_accepted(archive_filter_code(handle, i), accepted)) continue;
    throw Error(ErrorCode::not_supported,
                fmt::format("decompress the image: {}{} is not supported", nested ? "nested " : "",
                            archive_filter_name(handle, i)),
                {.hint = "Use a plain tar, gzip or zstd."});
  }
}

std::string archive_reason(archive* handle) {
  const char* text = archive_error_string(handle);
  return text ? printable(text, 200) : "unreadable";
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
    throw Error(ErrorCode::limit_exceeded, fmt::format("the image unpacks to more than {} bytes", limit_));
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

DecompressedSource::DecompressedSource(ByteSource& below, Compressions accepted)
    : feed_(below), handle_(archive_read_new()) {
  for (auto support : {archive_read_support_filter_gzip, archive_read_support_filter_zstd,
                       archive_read_support_filter_xz, archive_read_support_filter_lz4,
                       archive_read_support_filter_bzip2, archive_read_support_filter_compress}) {
    support(handle_.get());
  }
  archive_read_support_format_raw(handle_.get());
  archive_read_support_format_empty(handle_.get());
  archive_entry* entry = nullptr;
  int status = feed_.open(handle_.get());
  if (status == ARCHIVE_OK) status = archive_read_next_header(handle_.get(), &entry);
  feed_.rethrow();
  check_filters(handle_.get(), accepted);
  if (status == ARCHIVE_EOF) {
    ended_ = true;
  } else if (status != ARCHIVE_OK && status != ARCHIVE_WARN) {
    throw Error(ErrorCode::image_invalid, "decompress the image: " + archive_reason(handle_.get()));
  }
}

std::string_view DecompressedSource::read() {
  const void* data = nullptr;
  std::size_t size = 0;
  la_int64_t offset = 0;
  while (!ended_) {
    int status = archive_read_data_block(handle_.get(), &data, &size, &offset);
    feed_.rethrow();
    if (status == ARCHIVE_EOF) {
      ended_ = true;
    } else if (status != ARCHIVE_OK) {
      throw Error(ErrorCode::image_invalid, "decompress the image: " + archive_reason(handle_.get()));
    } else if (size > 0) {
      return {static_cast<const char*>(data), size};
    }
  }
  return {};
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
