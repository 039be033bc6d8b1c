#include "guest/cgroup.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <set>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace holt::guest {
namespace {

std::string read_small(int directory, const char* name) {
  Fd fd(::openat(directory, name, O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> buffer{};
  auto count = fd ? ::read(fd.get(), buffer.data(), buffer.size()) : -1;
  return count > 0 ? std::string(buffer.data(), static_cast<std::size_t>(count)) : std::string();
}

bool write_number(int directory, const char* name, std::uint64_t number) {
  auto text = std::to_string(number);
  Fd fd(::openat(directory, name, O_WRONLY | O_CLOEXEC));
  return fd && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// The number behind "KEY " at the start of a line.
std::uint64_t value_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ' ') continue;
    std::uint64_t value = 0;
    std::from_chars(line.data() + key.size() + 1, line.data() + line.size(), value);
    return value;
  }
  return 0;
}

struct ProcessLine {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;
};

/// proc(5): the name in parentheses may hold anything, the fields behind its last ')' are plain.
bool parse_stat(pid_t pid, std::string_view text, ProcessLine& out) {
  auto close = text.rfind(')');
  if (close == std::string_view::npos || close + 4 > text.size()) return false;
  std::array<long, 3> fields{};
  const char* at = text.data() + close + 4;
  for (auto& field : fields) {
    auto [end, error] = std::from_chars(at, text.data() + text.size(), field);
    if (error != std::errc()) return false;
    at = end + 1;
  }
  out = {pid, static_cast<pid_t>(fields[0]), static_cast<pid_t>(fields[2])};
  return true;
}

std::vector<ProcessLine> all_processes() {
  std::vector<ProcessLine> processes;
  std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  if (proc == nullptr) return processes;
  while (auto* entry = ::readdir(proc.get())) {
    pid_t pid = 0;
    std::string_view name = entry->d_name;
    auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    ProcessLine line;
    auto file = std::string(name) + "/stat";
    if (parse_stat(pid, read_small(::dirfd(proc.get()), file.c_str()), line)) processes.push_back(line);
  }
  return processes;
}

}  // namespace

void Cgroup::kill() {
  killed_ = true;
  Fd fd(::openat(directory_.get(), "cgroup.kill", O_WRONLY | O_CLOEXEC));
  if (fd) [[maybe_unused]]
    auto written = ::write(fd.get(), "1", 1);
}

bool Cgroup::limit(std::optional<std::uint64_t> processes, std::optional<std::uint64_t> memory_bytes) {
  limited_ = true;
  return (!processes || write_number(directory_.get(), "pids.max", *processes)) &&
         (!memory_bytes || write_number(directory_.get(), "memory.max", *memory_bytes));
}

bool Cgroup::empty() const {
  return value_of(read_small(directory_.get(), "cgroup.events"), "populated") == 0;
}

std::uint64_t Cgroup::oom_kills() const {
  return value_of(read_small(directory_.get(), "memory.events"), "oom_kill");
}

void Cgroup::remove() const {
  ::rmdir(path_.c_str());
}

void CgroupTree::give_back(Cgroup group) {
  constexpr std::size_t k_max_idle = 8;
  if (idle_.size() < k_max_idle && group.reusable()) {
    idle_.push_back(std::move(group));
  } else {
    group.remove();
  }
}

std::optional<Cgroup> CgroupTree::take() {
  if (folder_.empty()) return std::nullopt;
  while (!idle_.empty()) {
    auto group = std::move(idle_.back());
    idle_.pop_back();
    // Root in the machine may have moved a process into it.
    if (group.empty()) return group;
    group.remove();
  }
  auto path = folder_ + "/" + std::to_string(next_++);
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) return std::nullopt;
  Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return std::nullopt;
  return Cgroup(std::move(path), std::move(directory));
}

std::optional<std::uint64_t> CgroupTree::processes() const {
  if (folder_.empty()) return std::nullopt;
  std::unique_ptr<DIR, int (*)(DIR*)> groups(::opendir(folder_.c_str()), ::closedir);
  if (groups == nullptr) return std::nullopt;
  std::uint64_t count = 0;
  while (auto* entry = ::readdir(groups.get())) {
    if (entry->d_type != DT_DIR || entry->d_name[0] == '.') continue;
    auto list = read_small(::dirfd(groups.get()), (std::string(entry->d_name) + "/cgroup.procs").c_str());
    count += static_cast<std::uint64_t>(std::ranges::count(list, '\n'));
  }
  return count;
}

void kill_descendants(pid_t root, int signal_number) {
  std::set<pid_t> victims = {root};
  // A fork between two looks is caught by the next one, since its parent has been killed by then.
  for (int round = 0; round < 3; ++round) {
    auto processes = all_processes();
    for (bool grew = true; grew;) {
      grew = false;
      for (const auto& process : processes) {
        if (victims.contains(process.parent) || process.session == root) {
          grew |= victims.insert(process.pid).second;
        }
      }
    }
    for (pid_t pid : victims) ::kill(pid, signal_number);
  }
}

}  // namespace holt::guest
