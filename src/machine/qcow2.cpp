#include "machine/qcow2.hpp"

#include "holt/base/error.hpp"
#include "holt/base/fd.hpp"
#include "holt/base/files.hpp"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::machine {
namespace {

constexpr std::uint64_t k_cluster = 64 * 1024;
// One L2 table of 8,192 entries maps 512 MiB.
constexpr std::uint64_t k_mapped_by_l1_entry = k_cluster / 8 * k_cluster;
constexpr std::size_t k_longest_backing_name = 1023;
constexpr std::uint32_t k_header_length = 104;
constexpr std::uint32_t k_backing_format_extension = 0xE2792ACA;

template <class Integer>
void put(std::string& out, Integer value) {
  for (int shift = static_cast<int>(sizeof(Integer)) * 8 - 8; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(static_cast<unsigned char>(value >> shift)));
  }
}

std::uint64_t divide_up(std::uint64_t value, std::uint64_t by) {
  return (value + by - 1) / by;
}

std::uint64_t l1_entries(std::uint64_t size) {
  return divide_up(size, k_mapped_by_l1_entry);
}
std::uint64_t l1_clusters(std::uint64_t size) {
  return divide_up(l1_entries(size) * 8, k_cluster);
}

}  // namespace

std::string qcow2_header(std::uint64_t size, const std::filesystem::path& backing, BackingFormat format) {
  const std::string name = backing.string();
  if (name.size() > k_longest_backing_name) {
    throw Error(ErrorCode::invalid_config,
                fmt::format("The path of the image has {} bytes, more than a qcow2 file can "
                            "name ({})",
                            name.size(), k_longest_backing_name),
                {.subject = name, .hint = "Use a shorter HOLT_HOME."});
  }
  const std::string format_name = format == BackingFormat::raw ? "raw" : "qcow2";
  const std::string padding((8 - format_name.size() % 8) % 8, '\0');
  const std::uint64_t extensions = 8 + format_name.size() + padding.size() + 8;

  std::string out = "QFI\xfb";
  put<std::uint32_t>(out, 3);                             // version
  put<std::uint64_t>(out, k_header_length + extensions);  // where the backing name stands
  put<std::uint32_t>(out, static_cast<std::uint32_t>(name.size()));
  put<std::uint32_t>(out, 16);  // cluster bits
  put<std::uint64_t>(out, size);
  put<std::uint32_t>(out, 0);  // not encrypted
  put<std::uint32_t>(out, static_cast<std::uint32_t>(l1_entries(size)));
  put<std::uint64_t>(out, 3 * k_cluster);  // L1 table
  put<std::uint64_t>(out, 1 * k_cluster);  // reference count table
  put<std::uint32_t>(out, 1);              // its clusters
  put<std::uint32_t>(out, 0);              // snapshots
  put<std::uint64_t>(out, 0);
  for (int feature_set = 0; feature_set < 3; feature_set++) put<std::uint64_t>(out, 0);
  put<std::uint32_t>(out, 4);  // 16-bit reference counts
  put<std::uint32_t>(out, k_header_length);
  put<std::uint32_t>(out, k_backing_format_extension);
  put<std::uint32_t>(out, static_cast<std::uint32_t>(format_name.size()));
  out += format_name + padding;
  put<std::uint64_t>(out, 0);  // end of extensions
  out += name;

  out.resize(k_cluster, '\0');
  put<std::uint64_t>(out, 2 * k_cluster);  // the one reference count block
  out.resize(2 * k_cluster, '\0');
  for (std::uint64_t cluster = 0; cluster < 3 + l1_clusters(size); cluster++) put<std::uint16_t>(out, 1);
  return out;
}

void create_overlay(const std::filesystem::path& path, std::uint64_t size,
                    const std::filesystem::path& backing, BackingFormat format) {
  auto header = qcow2_header(size, backing, format);
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) throw system_error(errno, fmt::format("make the disk {}", path.string()), path);
  write_all(fd.get(), header);
  // The L1 table is the hole behind.
  if (::ftruncate(fd.get(), static_cast<off_t>((3 + l1_clusters(size)) * k_cluster)) != 0) {
    throw system_error(errno, fmt::format("make the disk {}", path.string()), path);
  }
}

}  // namespace holt::machine
