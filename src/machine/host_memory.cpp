#include "machine/host_memory.hpp"

#include "holt/base/error.hpp"

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

}  // namespace holt::machine
