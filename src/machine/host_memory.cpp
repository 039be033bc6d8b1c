#include "machine/host_memory.hpp"

#include "holt/base/error.hpp"

#include <limits>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <fmt/format.h>

namespace holt::machine {

std::uint64_t host_memory_bytes() {
  struct sysinfo info{};
  if (::sysinfo(&info) != 0) return 0;
  return (std::uint64_t{info.totalram} + info.totalswap) * info.mem_unit;
}

void check_memory_fits(unsigned memory_mb, std::uint64_t host_bytes) {
  auto host_mb = host_bytes >> 20;
  if (host_bytes == 0 || memory_mb <= host_mb) return;
  throw Error(ErrorCode::invalid_config,
              fmt::format("A memory of {} MiB is more than the {} MiB of this host", memory_mb, host_mb),
              {.hint = "Give the machine less memory."});
}

std::uint64_t address_space_bytes() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::numeric_limits<std::uint64_t>::max();
  }
  return limit.rlim_cur;
}

void check_address_space(unsigned memory_mb, std::uint64_t bytes) {
  // Its libraries, threads and translated code; QEMU itself says when that is too few.
  constexpr std::uint64_t k_qemu_mb = 256;
  if (memory_mb + k_qemu_mb <= bytes >> 20) return;
  throw Error(ErrorCode::limit_exceeded,
              fmt::format("A process may have {} MiB of addresses here, too few for a machine of {} MiB",
                          bytes >> 20, memory_mb),
              {.hint = "Raise that with 'ulimit -v', or give the machine less memory."});
}

}  // namespace holt::machine
