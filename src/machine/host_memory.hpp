// How much memory this host can give to one machine.
#pragma once

#include <cstdint>

namespace holt::machine {

/// Bytes of RAM and swap of this host, sysinfo(2); 0 when the kernel does not say.
std::uint64_t host_memory_bytes();

/// Throws INVALID_CONFIG when a machine of that size can never fit into `host_bytes`. Memory is lent as the
/// guest touches it, so what others use at the moment does not count. Without it, such a boot would only end
/// by its deadline, or by the host's out-of-memory killer. `host_bytes` of 0 refuses nothing.
void check_memory_fits(unsigned memory_mb, std::uint64_t host_bytes);

/// Bytes of addresses that a process started here may have, RLIMIT_AS of getrlimit(2); the largest number for
/// no limit.
std::uint64_t address_space_bytes();

/// Throws LIMIT_EXCEEDED when the memory of a machine of that size does not fit into `bytes` of addresses.
void check_address_space(unsigned memory_mb, std::uint64_t bytes);

}  // namespace holt::machine
