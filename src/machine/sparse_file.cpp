#include "machine/sparse_file.hpp"

#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "holt/base/fd.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace holt::machine {
namespace {

constexpr off_t k_page = 4096;
constexpr std::size_t k_samples = 256;

struct Opened {
  Fd fd;
  off_t size = 0;
};

Opened open_file(const std::filesystem::path& file, int flags) {
  Opened opened{.fd = Fd(::open(file.c_str(), flags | O_CLOEXEC))};
  struct stat info{};
  if (!opened.fd || ::fstat(opened.fd.get(), &info) != 0) {
    throw system_error(errno, fmt::format("open {}", file.string()), file);
  }
  opened.size = info.st_size;
  return opened;
}

/// The parts of the file that are no holes, as {begin, end}.
std::vector<std::pair<off_t, off_t>> data_ranges(const Opened& opened) {
  std::vector<std::pair<off_t, off_t>> ranges;
  for (off_t at = 0; at < opened.size;) {
    off_t begin = ::lseek(opened.fd.get(), at, SEEK_DATA);
    if (begin < 0) break;
    off_t end = ::lseek(opened.fd.get(), begin, SEEK_HOLE);
    if (end <= begin) break;
    ranges.emplace_back(begin, end);
    at = end;
  }
  return ranges;
}

}  // namespace

void punch_zero_pages(const std::filesystem::path& file) {
  static constexpr std::array<char, k_page> zeroes{};
  auto opened = open_file(file, O_RDWR);
  if (opened.size == 0) return;
  auto length = static_cast<std::size_t>(opened.size);
  void* mapping = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, opened.fd.get(), 0);
  if (mapping == MAP_FAILED) throw system_error(errno, fmt::format("map {}", file.string()), file);
  const char* bytes = static_cast<const char*>(mapping);
  auto is_zero = [&](off_t page) { return std::memcmp(bytes + page, zeroes.data(), zeroes.size()) == 0; };
  for (auto [begin, end] : data_ranges(opened)) {
    for (off_t page = begin; page + k_page <= end;) {
      off_t last = page;
      while (last + k_page <= end && is_zero(last)) last += k_page;
      if (last > page) {
        // Without support for holes the file is only larger.
        ::fallocate(opened.fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, page, last - page);
        page = last;
      } else {
        page += k_page;
      }
    }
  }
  ::munmap(mapping, length);
}

std::string sampled_digest(const std::filesystem::path& file) {
  auto opened = open_file(file, O_RDONLY);
  auto ranges = data_ranges(opened);
  off_t total = 0;
  std::string seen = fmt::format("{} {}\n", opened.size, ranges.size());
  for (auto [begin, end] : ranges) {
    seen += fmt::format("{}-{} ", begin, end);
    total += end - begin;
  }
  const off_t step = std::max<off_t>(total / static_cast<off_t>(k_samples) / k_page * k_page, k_page);
  off_t next = 0;    // in data, counted over all ranges
  off_t before = 0;  // data in the ranges before this one
  std::array<char, k_page> page;
  for (auto [begin, end] : ranges) {
    for (; next < before + (end - begin); next += step) {
      ssize_t n = ::pread(opened.fd.get(), page.data(), page.size(), begin + (next - before));
      if (n < 0) throw system_error(errno, fmt::format("read {}", file.string()), file);
      seen.append(page.data(), static_cast<std::size_t>(n));
    }
    before += end - begin;
  }
  return sha256_hex(seen);
}

}  // namespace holt::machine
