#include "holt/machine/repair.hpp"

#include "holt/base/disk_usage.hpp"
#include "holt/base/error.hpp"
#include "holt/base/log.hpp"
#include "holt/machine/availability.hpp"
#include "machine/ending.hpp"
#include "machine/host_facts.hpp"
#include "machine/lifecycle.hpp"
#include "machine/template.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace holt {

using namespace machine;

namespace {

using namespace std::chrono_literals;

constexpr auto k_kill_deadline = 5s;

std::set<std::string> entries_of(const std::filesystem::path& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    names.insert(entry.path().filename().string());
  return names;
}

/// One run of repair().
class Repairing {
 public:
  explicit Repairing(const HostConfig& host) : host_(host), folders_(host.directories) {}

  std::vector<Repair> run() {
    make_folders();
    attempt([&] { close_to_others(folders_.root()); });
    attempt([&] { sweep(); });
    for (const auto& name : folders_.names()) {
      attempt([&] { clear_dead(name); });
    }
    attempt([&] { repair_templates(); });
    attempt([&] { forget_verdict(); });
    return std::move(done_);
  }

 private:
  void note(const char* what, const std::string& subject) {
    done_.push_back({.what = what, .subject = subject});
  }

  template <class Action>
  static void attempt(Action action) {
    try {
      action();
    } catch (const Error& e) {
      // A machine that has just gone needs nothing, and one fault must not keep the others.
      if (e.code() != ErrorCode::not_found) logger("machine")->warn("{}", e.what());
    }
  }

  void make_folders() {
    for (const auto& folder : {host_.directories.state, host_.directories.cache, host_.directories.data}) {
      if (std::filesystem::exists(folder)) continue;
      make_private_directory(folder);
      note("made a folder", folder.string());
    }
  }

  void close_to_others(const std::filesystem::path& folder) {
    struct stat info{};
    if (::stat(folder.c_str(), &info) != 0 || info.st_uid != ::geteuid() || (info.st_mode & 077) == 0) return;
    if (::chmod(folder.c_str(), 0700) != 0) throw system_error(errno, "close the machines' folder", folder);
    note("closed a folder to other users", folder.string());
  }

  void sweep() {
    auto before = entries_of(folders_.root());
    sweep_machines(folders_);
    auto after = entries_of(folders_.root());
    for (const auto& name : before) {
      if (!after.contains(name)) note("removed what a dead process left", name);
    }
  }

  void clear_dead(const std::string& name) {
    auto folder = folders_.of(name);
    auto lock = FileLock::try_acquire_existing(folder.lock_file());
    if (!lock) return;
    auto status = folder.read_status();
    bool runs_on = status.vmm && status.host_boot_id == host_boot_id() && is_alive(*status.vmm);
    if (runs_on && end_vmm(folder, Deadline::after(k_kill_deadline)))
      note("ended the VMM of a dead monitor", name);
    if (::unlink((folder.path() / "monitor.sock").c_str()) == 0)
      note("removed the socket of a dead monitor", name);
  }

  void repair_templates() {
    for (const auto& name : TemplateStore(host_.directories.cache / "templates").repair())
      note("removed a template that was damaged or half-made", name);
  }

  void forget_verdict() {
    if (forget_accelerator(host_)) note("forgot that KVM did not work", "/dev/kvm");
  }

  const HostConfig& host_;
  MachineFolders folders_;
  std::vector<Repair> done_;
};

/// Why no start can bring it back; nothing when one might.
std::string damage_of(const MachineFolder& folder) {
  try {
    folder.read_record();
    return std::filesystem::exists(folder.disk()) ? "" : "its disk is gone";
  } catch (const Error& e) {
    return e.code() == ErrorCode::not_found ? "" : e.what();
  }
}

}  // namespace

std::vector<Repair> repair(const HostConfig& host) {
  return Repairing(host).run();
}

std::vector<BrokenMachine> broken_machines(const HostConfig& host) {
  MachineFolders folders(host.directories);
  std::vector<BrokenMachine> broken;
  for (const auto& name : folders.names()) {
    auto folder = folders.of(name);
    auto reason = damage_of(folder);
    if (!reason.empty())
      broken.push_back({.name = name, .reason = reason, .bytes = disk_bytes_below(folder.path())});
  }
  return broken;
}

}  // namespace holt
