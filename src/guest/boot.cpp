#include "guest/boot.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace holt::guest {
namespace {

using namespace std::chrono_literals;

constexpr const char* k_cgroup_root = "/sys/fs/cgroup";
/// What the kernel leaves to this program when commands eat the rest: its own size and room for transfers.
constexpr std::string_view k_own_memory = "33554432";
/// Processes that commands may not use up, so that this program can start one more.
constexpr long k_reserved_pids = 256;
/// What dockerd gives containers; programs' soft limit stays at 1024.
constexpr rlim_t k_open_files = 1048576;

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(folder.c_str()), ::closedir);
  if (stream == nullptr) return names;
  while (auto* entry = ::readdir(stream.get())) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  std::ranges::sort(names);
  return names;
}

void mount_at(const char* type, const char* target, unsigned long flags, const char* data) {
  ::mkdir(target, 0755);
  if (::mount(type, target, type, flags, data) != 0 && errno != EBUSY) {
    console(std::string("cannot mount ") + type + " at " + target + ": " + std::string(error_text(errno)));
  }
}

std::string read_line(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 256> buffer{};
  auto count = fd ? ::read(fd.get(), buffer.data(), buffer.size()) : -1;
  std::string text(buffer.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
  return text.substr(0, text.find('\n'));
}

long read_number(const std::string& path) {
  auto text = read_line(path);
  long value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

void use_console() {
  Fd fd(::open("/dev/console", O_RDWR | O_NOCTTY));
  if (!fd) {
    ::mknod("/dev/null", S_IFCHR | 0666, ::makedev(1, 3));
    fd.reset(::open("/dev/null", O_RDWR));
  }
  for (int target = 0; target <= 2; ++target) {
    if (fd && fd.get() != target) ::dup2(fd.get(), target);
  }
  if (fd.get() <= 2) fd.release();
}

}  // namespace

void console(std::string_view line) {
  std::string text = "holt-guest: " + std::string(line) + "\n";
  [[maybe_unused]] auto written = ::write(2, text.data(), text.size());
}

bool write_kernel_file(const std::string& path, std::string_view text) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

void mount_kernel_file_systems() {
  mount_at("devtmpfs", "/dev", MS_NOSUID, "mode=0755");
  use_console();
  mount_at("proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr);
  mount_at("sysfs", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr);
  mount_at("devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, "gid=5,mode=620,ptmxmode=666");
  mount_at("tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV, "mode=1777,size=50%");
  mount_at("cgroup2", k_cgroup_root, MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr);
  for (auto [name, target] : {std::pair("/dev/fd", "/proc/self/fd"),
                              {"/dev/stdin", "/proc/self/fd/0"},
                              {"/dev/stdout", "/proc/self/fd/1"},
                              {"/dev/stderr", "/proc/self/fd/2"}}) {
    [[maybe_unused]] int linked = ::symlink(target, name);
  }
}

void load_modules() {
  for (const auto& name : names_in("/modules")) {
    Fd fd(::open(("/modules/" + name).c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd || ::syscall(SYS_finit_module, fd.get(), "", 0) == 0 || errno == EEXIST) continue;
    console("module " + name + ": " + std::string(error_text(errno)));
  }
}

std::string set_up_cgroups() {
  std::string root = k_cgroup_root;
  if (::access((root + "/cgroup.controllers").c_str(), F_OK) != 0) return {};
  for (const char* controller : {"+memory", "+pids", "+cpu"}) {
    write_kernel_file(root + "/cgroup.subtree_control", controller);
  }
  ::mkdir((root + "/guest").c_str(), 0755);
  write_kernel_file(root + "/guest/cgroup.procs", "1");
  write_kernel_file(root + "/guest/memory.min", k_own_memory);
  auto commands = root + "/commands";
  ::mkdir(commands.c_str(), 0755);
  auto limit = std::min(read_number("/proc/sys/kernel/pid_max"), read_number("/proc/sys/kernel/threads-max"));
  write_kernel_file(commands + "/pids.max", std::to_string(limit - k_reserved_pids));
  // So that each command's group tells whether the kernel killed in it for want of memory, and can have
  // limits of its own.
  // With "cpu" a command that forks without end takes time from its own processes, and from others an equal
  // share.
  for (const char* controller : {"+memory", "+pids", "+cpu"}) {
    write_kernel_file(commands + "/cgroup.subtree_control", controller);
  }
  return commands;
}

void protect_self() {
  write_kernel_file("/proc/self/oom_score_adj", "-1000");
  rlimit files{.rlim_cur = k_open_files, .rlim_max = k_open_files};
  ::setrlimit(RLIMIT_NOFILE, &files);
}

Outcome<Fd> open_port(std::string_view name, std::chrono::milliseconds limit) {
  constexpr auto k_poll = 1ms;
  const std::string ports = "/sys/class/virtio-ports";
  for (auto end = std::chrono::steady_clock::now() + limit; std::chrono::steady_clock::now() < end;) {
    for (const auto& port : names_in(ports)) {
      if (read_line(ports + "/" + port + "/name") != name) continue;
      Fd fd(::open(("/dev/" + port).c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
      if (fd) return fd;
    }
    std::this_thread::sleep_for(k_poll);
  }
  return refuse(ErrorCode::not_found, "there is no virtio-serial port named " + std::string(name));
}

}  // namespace holt::guest
