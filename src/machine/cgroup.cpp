#include "machine/cgroup.hpp"

#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "holt/base/ids.hpp"
#include "holt/base/log.hpp"
#include "holt/base/process.hpp"

#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <sstream>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

namespace holt::machine {
namespace {

constexpr std::string_view k_prefix = "holt-vm-";
constexpr std::size_t k_proc_file = std::size_t{1} << 20;

// Beyond guest RAM: QEMU itself, its translations of guest code (up to 1 GiB under TCG), page cache of the
// disk.
constexpr std::uint64_t k_overhead = std::uint64_t{2} << 30;
constexpr unsigned k_threads = 256;
constexpr unsigned k_period_us = 100'000;

std::string text_of(const std::filesystem::path& file) {
  return read_file_if_exists(file, k_proc_file).value_or("");
}

/// Where the v2 hierarchy is mounted; nothing on hosts without one.
std::optional<std::filesystem::path> mount_point() {
  // "36 35 98:0 /root /mount/point options... - type source options", proc(5).
  std::istringstream mounts(text_of("/proc/self/mountinfo"));
  for (std::string line; std::getline(mounts, line);) {
    if (line.find(" - cgroup2 ") == std::string::npos) continue;
    std::istringstream words(line);
    std::string skip;
    std::string root;
    std::string target;
    if (words >> skip >> skip >> skip >> root >> target && root == "/") return target;
  }
  return std::nullopt;
}

/// This process's cgroup below the mount point, without its leading slash.
std::optional<std::string> own_group() {
  std::istringstream groups(text_of("/proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {
    if (line.starts_with("0::/")) return line.substr(4);
  }
  return std::nullopt;
}

bool has_word(const std::string& text, std::string_view word) {
  std::istringstream words(text);
  for (std::string each; words >> each;) {
    if (each == word) return true;
  }
  return false;
}

bool is_marked_delegated(const std::filesystem::path& group) {
  for (const auto* name : {"trusted.delegate", "user.delegate"}) {
    char value = 0;
    if (::getxattr(group.c_str(), name, &value, 1) == 1 && value == '1') return true;
  }
  return false;
}

/// To write here is not enough for root, which may write anywhere: systemd's own cgroups are not ours to
/// change.
bool is_ours(const std::filesystem::path& top, const std::filesystem::path& group) {
  if (::access(group.c_str(), W_OK) != 0 || ::access((group / "cgroup.procs").c_str(), W_OK) != 0)
    return false;
  if (::geteuid() != 0 || ::access("/run/systemd/system", F_OK) != 0) return true;
  for (auto at = group; at != top && at.has_relative_path(); at = at.parent_path()) {
    if (is_marked_delegated(at)) return true;
  }
  return false;
}

std::optional<std::filesystem::path> delegated_parent() {
  auto top = mount_point();
  auto own = own_group();
  if (!top || !own || own->starts_with("..")) return std::nullopt;
  for (auto at = *top / *own;; at = at.parent_path()) {
    if (at.filename().empty()) at = at.parent_path();
    auto enabled = text_of(at / "cgroup.subtree_control");
    if (has_word(enabled, "memory") && has_word(enabled, "pids") && is_ours(*top, at)) return at;
    if (at == *top || !at.has_relative_path()) return std::nullopt;
  }
}

bool put(const std::filesystem::path& group, const char* file, const std::string& value) {
  Fd fd(::open((group / file).c_str(), O_WRONLY | O_CLOEXEC));
  return fd && ::write(fd.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size());
}

/// "holt-vm-PID-START-RANDOM": whose it is, so that what a dead one left can be told.
std::string new_name() {
  auto self = identify_process(::getpid()).value_or(ProcessIdentity{});
  return fmt::format("{}{}-{}-{}", k_prefix, self.pid, self.start_ticks, random_hex(8));
}

bool maker_is_alive(std::string_view name) {
  ProcessIdentity maker;
  std::string rest(name.substr(k_prefix.size()));
  const char* end = rest.data() + rest.size();
  auto pid = std::from_chars(rest.data(), end, maker.pid);
  if (pid.ec != std::errc() || pid.ptr == end) return true;
  auto ticks = std::from_chars(pid.ptr + 1, end, maker.start_ticks);
  return ticks.ec != std::errc() || is_alive(maker);
}

/// Removes those whose makers were killed. The kernel refuses for one that has processes.
void sweep(const std::filesystem::path& parent) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(parent, error)) {
    auto name = entry.path().filename().string();
    if (name.starts_with(k_prefix) && !maker_is_alive(name)) ::rmdir(entry.path().c_str());
  }
}

}  // namespace

std::optional<Cgroup> Cgroup::make(const JailLimits& limits) {
  auto parent = delegated_parent();
  if (!parent) return std::nullopt;
  sweep(*parent);
  auto path = *parent / new_name();
  if (::mkdir(path.c_str(), 0755) != 0) return std::nullopt;
  Cgroup made(path, Fd(::open((path / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC)));
  bool bounded = made.procs_ &&
                 put(path, "memory.max", fmt::format("{}", limits.guest_memory + k_overhead)) &&
                 put(path, "pids.max", fmt::format("{}", k_threads));
  if (!bounded) {
    logger("machine")->debug("{} takes no limits: {}", path.string(), errno);
    return std::nullopt;
  }
  // One CPU more than the guest has, for disk and devices. Hosts often delegate no CPU controller.
  put(path, "cpu.max", fmt::format("{} {}", (limits.cpus + 1) * k_period_us, k_period_us));
  return made;
}

Cgroup::Cgroup(Cgroup&& other) noexcept
    : path_(std::exchange(other.path_, {})), procs_(std::move(other.procs_)) {}

Cgroup& Cgroup::operator=(Cgroup&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(procs_, other.procs_);
  return *this;
}

Cgroup::~Cgroup() {
  procs_.reset();
  if (!path_.empty()) ::rmdir(path_.c_str());
}

}  // namespace holt::machine
