// Facts of host files that are dear to find out (a hash, a version), remembered while the file stays the
// same.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace holt::machine {

/// Random id of this boot of the host's kernel, random(4). Empty when it cannot be read.
std::string host_boot_id();
/// Release of the host's kernel, uname(2).
std::string host_kernel_release();

/// Model and features of the host's processor as CPUID tells them, whatever the kernel makes of them; what a
/// guest under KVM sees and may use. For comparisons only.
std::string host_processor();

/// Device, inode, size and times of a file as one word. Throws Error NOT_FOUND.
std::string file_identity(const std::filesystem::path& path);

/// The fact `name` of a file: what `find` says, remembered below `cache`/facts by the file's identity.
std::string cached_fact(const std::filesystem::path& cache, std::string_view name,
                        const std::filesystem::path& file, const std::function<std::string()>& find);

/// SHA-256 of a file's content, as a cached fact.
std::string file_sha256(const std::filesystem::path& cache, const std::filesystem::path& file);

}  // namespace holt::machine
