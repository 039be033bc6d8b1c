// A blob that one thread writes to a file while another reads it.
//
//   writer: stream.open(fd, 0);  stream.grow(n); ...  stream.finish();
//   reader: FollowingSource source(stream, BlobStream::Follow::growing, cancel);  source.read();
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/base/fd.hpp"
#include "image/byte_source.hpp"

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace holt::image {

/// Thrown to a reader whose bytes were taken back: the blob began again at the front.
struct BlobRestarted {};

/// How much of a blob's file holds good. Thread-safe; one writer, any number of readers.
class BlobStream {
 public:
  enum class Follow {
    growing,  ///< reads what is there, checked or not; BlobRestarted when it is taken back
    whole,    ///< reads nothing before all of it is checked
  };

  /// The file, and how many bytes it has to begin with. Again after restart() for another file.
  void open(Fd file, std::uint64_t bytes);
  void grow(std::uint64_t bytes);
  /// Takes all back. To be told before the file loses its bytes.
  void restart();
  /// Digest and size are right.
  void finish();
  /// Quiet when it has ended already.
  void fail(std::exception_ptr failure);

  struct Piece {
    int fd = -1;              ///< open as long as the stream
    std::uint64_t bytes = 0;  ///< that can be read behind the position; 0 at the end
    unsigned generation = 0;
  };
  /// Waits for bytes behind `position`. Throws what the writer failed with, BlobRestarted when `position` is
  /// of another generation.
  Piece wait(std::uint64_t position, unsigned generation, Follow follow);
  /// How often it began again.
  unsigned generation();
  /// Waits for the end. Throws what the writer failed with.
  void wait_end();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Fd> files_;  ///< the last one counts; a reader may still be at one before it
  std::uint64_t bytes_ = 0;
  unsigned generation_ = 0;
  bool ended_ = false;
  std::exception_ptr failure_;
};

/// Reads a stream from the front to its end, waiting for what is not there yet.
class FollowingSource final : public ByteSource {
 public:
  FollowingSource(BlobStream& stream, BlobStream::Follow follow, CancellationToken cancel)
      : stream_(stream), follow_(follow), cancel_(std::move(cancel)) {}
  std::string_view read() override;
  std::uint64_t position() const { return position_; }
  unsigned generation() const { return generation_; }

 private:
  BlobStream& stream_;
  BlobStream::Follow follow_;
  CancellationToken cancel_;
  std::uint64_t position_ = 0;
  unsigned generation_ = 0;
  std::string buffer_;
};

}  // namespace holt::image
