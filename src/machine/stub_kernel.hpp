// A kernel of a dozen instructions: proves that an accelerator runs guest code, and stands in for the real
// kernel where QEMU wants one but restores a guest that has its own.
#pragma once

#include <string>
#include <string_view>

namespace holt::machine {

/// What the stub writes to the serial port before it halts.
inline constexpr std::string_view k_stub_sign = "holt";

/// An ELF file with a PVH entry (Xen's docs/misc/pvh.pandoc), for -kernel.
std::string stub_kernel();

}  // namespace holt::machine
