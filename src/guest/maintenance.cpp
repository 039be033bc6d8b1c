#include "guest/maintenance.hpp"

#include "holt/base/fd.hpp"

#include <array>
#include <charconv>
#include <csignal>
#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <memory>
#include <string_view>
#include <sys/ioctl.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace holt::guest {
namespace {

using namespace std::chrono_literals;
constexpr auto k_poll = 2ms;
constexpr auto k_kill_limit = 2s;

std::string read_text(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t count = 0; fd && (count = ::read(fd.get(), buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return text;
}

bool is_populated(const std::string& folder) {
  return read_text(folder + "/cgroup.events").find("populated 1") != std::string::npos;
}

/// To every process in the groups of a folder: `signal_number`, or what `own` says of its group.
void signal_all(const std::string& folder, int signal_number, const StopSignals& own = {}) {
  std::unique_ptr<DIR, int (*)(DIR*)> groups(::opendir(folder.c_str()), ::closedir);
  if (groups == nullptr) return;
  while (auto* entry = ::readdir(groups.get())) {
    if (entry->d_type != DT_DIR || entry->d_name[0] == '.') continue;
    auto group = folder + "/" + entry->d_name;
    auto found = own.find(group);
    auto number = found == own.end() ? signal_number : found->second;
    auto text = read_text(group + "/cgroup.procs");
    std::string_view rest = text;
    while (!rest.empty()) {
      auto line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      pid_t pid = 0;
      std::from_chars(line.data(), line.data() + line.size(), pid);
      if (pid > 1) ::kill(pid, number);
    }
  }
}

void wait_until_empty(const std::string& folder, std::chrono::steady_clock::duration limit) {
  auto end = std::chrono::steady_clock::now() + limit;
  while (is_populated(folder) && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(k_poll);
}

/// Returns when no process lives, 2 s after the grace at the latest.
void end_all_commands(const std::string& cgroup_folder, const StopSignals& stop_signals,
                      std::chrono::milliseconds grace) {
  if (grace > 0ms) {
    signal_all(cgroup_folder, SIGTERM, stop_signals);
    // A stopped process would not see its signal.
    signal_all(cgroup_folder, SIGCONT);
    wait_until_empty(cgroup_folder, grace);
  }
  Fd kill(::open((cgroup_folder + "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
  if (kill) [[maybe_unused]]
    auto written = ::write(kill.get(), "1", 1);
  wait_until_empty(cgroup_folder, k_kill_limit);
}

}  // namespace

Outcome<protocol::Done> shut_down(const std::string& cgroup_folder, const StopSignals& stop_signals,
                                  std::chrono::milliseconds grace, protocol::Freeze freeze) {
  if (!cgroup_folder.empty() && is_populated(cgroup_folder)) {
    // What is written by now is safe before anything can use up the time that the monitor gives.
    if (auto synced = sync_root(protocol::Freeze::no); !synced) return synced;
    end_all_commands(cgroup_folder, stop_signals, grace);
  }
  return sync_root(freeze);
}

Outcome<protocol::Done> sync_root(protocol::Freeze freeze) {
  Fd root(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) return refuse_errno(errno, "open", "/");
  if (freeze == protocol::Freeze::thaw) {
    if (::ioctl(root.get(), FITHAW, 0) != 0 && errno != EINVAL) return refuse_errno(errno, "thaw", "/");
    return protocol::Done{};
  }
  if (::syncfs(root.get()) != 0) return refuse_errno(errno, "sync", "/");
  bool frozen = freeze == protocol::Freeze::no || ::ioctl(root.get(), FIFREEZE, 0) == 0 || errno == EBUSY;
  if (!frozen) return refuse_errno(errno, "freeze", "/");
  return protocol::Done{};
}

std::uint64_t monotonic_milliseconds() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

KernelMemory memory_of_kernel() {
  constexpr std::uint64_t k_unit = 1024;  // "kB"
  auto text = read_text("/proc/meminfo");
  auto number_behind = [&](std::string_view key) {
    std::uint64_t value = 0;
    if (auto at = text.find(key); at != std::string::npos) {
      at = text.find_first_not_of(' ', at + key.size());
      if (at != std::string::npos) std::from_chars(text.data() + at, text.data() + text.size(), value);
    }
    return value * k_unit;
  };
  return {.total = number_behind("MemTotal:"), .available = number_behind("MemAvailable:")};
}

}  // namespace holt::guest
