// Bytes of large files past the page cache: under emulation a copy through the cache costs more than the disk
// itself.
#pragma once

#include "guest/outcome.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace holt::guest {

inline constexpr std::size_t k_bulk_size = std::size_t{1} << 20;
inline constexpr std::size_t k_bulk_alignment = 4096;

/// A page-aligned buffer of k_bulk_size bytes.
class BulkBuffer {
 public:
  BulkBuffer();
  std::span<char> bytes() const { return {data_.get(), k_bulk_size}; }

 private:
  struct Free {
    void operator()(char* data) const;
  };
  std::unique_ptr<char, Free> data_;
};

/// Writes a new file front to back: whole megabytes by O_DIRECT where the file system takes it, the rest as
/// usual.
class BulkWriter {
 public:
  /// `size` where known: the blocks are allocated at once, and a full disk is found before the first byte.
  BulkWriter(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  Outcome<> allocate(std::uint64_t size);
  Outcome<> write(std::string_view bytes);
  /// Leaves a hole.
  Outcome<> skip(std::uint64_t size);
  /// Writes what is still buffered.
  Outcome<> finish();
  std::uint64_t written() const { return offset_ + filled_; }

 private:
  Outcome<> flush(std::size_t size);
  Outcome<> put(std::string_view bytes);
  void set_direct(int flag);

  int fd_;
  std::string path_;
  std::unique_ptr<BulkBuffer> buffer_;
  std::size_t filled_ = 0;
  std::uint64_t offset_ = 0;
  bool direct_works_ = true;
  bool is_direct_ = false;
  bool ends_in_hole_ = false;
};

}  // namespace holt::guest
