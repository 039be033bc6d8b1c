#include "image/content_digest.hpp"

#include "holt/base/error.hpp"
#include "holt/base/fd.hpp"
#include "image/sha256.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr off_t k_piece = off_t{64} << 10;

class Digesting {
 public:
  explicit Digesting(const std::filesystem::path& path)
      : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat info{};
    if (!file_ || ::fstat(file_.get(), &info) != 0) fail();
    size_ = info.st_size;
    add_number(size_);
  }

  std::string run(const std::optional<CancellationToken>& cancel) {
    off_t at = 0;
    while (at < size_) {
      off_t data = ::lseek(file_.get(), at, SEEK_DATA);
      if (data < 0 && errno == ENXIO) break;
      if (data < 0) fail();
      off_t hole = ::lseek(file_.get(), data, SEEK_HOLE);
      if (hole < 0) fail();
      // Whole pieces, so that it does not matter where in one the hole begins.
      for (at = std::max(at, data / k_piece * k_piece); at < std::min(hole, size_); at += k_piece) {
        if (cancel) cancel->throw_if_cancelled();
        add_piece(at);
      }
    }
    return "sha256:" + digest_.finish_hex();
  }

 private:
  [[noreturn]] void fail() const {
    throw system_error(errno, fmt::format("read {}", path_.string()), path_.string());
  }

  void add_number(off_t number) {
    std::array<char, 8> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * i));
    digest_.update({bytes.data(), bytes.size()});
  }

  void add_piece(off_t at) {
    auto wanted = static_cast<std::size_t>(std::min(k_piece, size_ - at));
    std::size_t have = 0;
    while (have < wanted) {
      ssize_t n = ::pread(file_.get(), buffer_.data() + have, wanted - have, at + static_cast<off_t>(have));
      if (n < 0 && errno == EINTR) continue;
      if (n == 0) errno = EIO;
      if (n <= 0) fail();
      have += static_cast<std::size_t>(n);
    }
    std::string_view piece(buffer_.data(), wanted);
    if (piece.front() == 0 && std::memcmp(piece.data(), piece.data() + 1, wanted - 1) == 0) return;
    add_number(at);
    digest_.update(piece);
  }

  const std::filesystem::path& path_;
  Fd file_;
  off_t size_ = 0;
  Sha256 digest_;
  std::array<char, k_piece> buffer_{};
};

}  // namespace

std::string content_digest(const std::filesystem::path& file,
                           const std::optional<CancellationToken>& cancel) {
  return std::make_unique<Digesting>(file)->run(cancel);
}

}  // namespace holt::image
