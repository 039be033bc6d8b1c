#include "holt/base/error.hpp"
#include "holt/base/ids.hpp"
#include "holt/base/json.hpp"
#include "holt/base/log.hpp"
#include "holt/machine/names.hpp"
#include "machine/host_facts.hpp"
#include "machine/record.hpp"
#include "machine/suspension.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::machine {
namespace {

constexpr std::size_t k_record_limit = std::size_t{1} << 20;
constexpr std::string_view k_staging = ".staging-";
constexpr std::string_view k_removing = ".removing-";

// Far more than the making of a lock file takes, or the rest of a removal behind that of the lock, on any
// host.
constexpr auto k_sweep_grace = std::chrono::seconds(10);

bool is_older_than(const std::filesystem::path& path, std::chrono::seconds age) {
  std::error_code error;
  auto changed = std::filesystem::last_write_time(path, error);
  return !error && std::filesystem::file_time_type::clock::now() - changed > age;
}

/// Removes a folder that nobody works on. Its lock is never made anew: whoever removes it may have done away
/// with that before the rest, and still holds it.
void sweep_left_over(const std::filesystem::path& path) {
  try {
    if (auto lock = FileLock::try_acquire_existing(path / "lock")) remove_tree(path);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::not_found) throw;
    if (is_older_than(path, k_sweep_grace)) remove_tree(path);
  }
}

int rename_without_replacing(const std::filesystem::path& from, const std::filesystem::path& to) {
  return static_cast<int>(
      ::syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE));
}

constexpr std::size_t k_status_block = 4096;

/// Temporary file and rename, without waiting for the disk.
void replace_quickly(const std::filesystem::path& file, const std::string& text) {
  auto temporary = file.parent_path() / fmt::format(".status.{}", random_hex(8));
  Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) throw system_error(errno, fmt::format("write {}", file.string()), file);
  try {
    write_all(fd.get(), text);
    if (::rename(temporary.c_str(), file.c_str()) != 0) throw system_error(errno, "rename");
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

/// In place, with the blocks the file has. False when it is smaller.
bool write_over(const std::filesystem::path& file, const std::string& text) {
  Fd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  return fd && ::lseek(fd.get(), 0, SEEK_END) == static_cast<off_t>(text.size()) &&
         ::pwrite(fd.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

}  // namespace

bool MachineFolder::exists() const {
  return ::access(path_.c_str(), F_OK) == 0;
}

bool MachineFolder::is_suspended() const {
  return ::access((suspended() / k_suspension_name).c_str(), F_OK) == 0;
}

MachineRecord MachineFolder::read_record() const {
  auto text = read_file_if_exists(record_file(), k_record_limit);
  auto name = path_.filename().string();
  if (!text && !exists()) {
    throw Error(ErrorCode::not_found, fmt::format("There is no machine {}", name),
                {.subject = name, .hint = "See holt ls -a for those there are."});
  }
  auto record = decode_record(text.value_or(""));
  if (record.config.name != name) {
    throw Error(ErrorCode::invalid_state,
                fmt::format("The record in the folder of {} is of another machine", name), {.subject = name});
  }
  return record;
}

std::map<std::string, std::string> MachineFolder::read_env() const {
  std::map<std::string, std::string> env;
  auto text = read_file_if_exists(env_file(), k_record_limit);
  if (!text) return env;
  auto json = parse_json(*text);
  if (!json || !json->is_object()) {
    throw Error(ErrorCode::invalid_state, "The machine's environment file is damaged",
                {.subject = env_file()});
  }
  for (const auto& [name, value] : json->items()) {
    if (value.is_string()) env[name] = value.get<std::string>();
  }
  return env;
}

void MachineFolder::write_env(const std::map<std::string, std::string>& env) const {
  Json json = Json::object();
  for (const auto& [name, value] : env) json[name] = value;
  write_file_atomically(env_file(), dump_json(json));
}

MachineStatus MachineFolder::read_status() const {
  auto text = read_file_if_exists(status_file(), k_record_limit);
  return text ? decode_status(*text) : MachineStatus{.host_boot_id = {}};
}

void MachineFolder::write_status(const MachineStatus& status) const {
  auto text = encode_status(status);
  // Room for any later status, so that one can be written over this where the disk is full.
  text.resize((text.size() / k_status_block + 1) * k_status_block, ' ');
  try {
    replace_quickly(status_file(), text);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::storage_full || !write_over(status_file(), text)) throw;
  }
}

MachineFolder MachineFolders::of(const std::string& name) const {
  check_machine_name(name);
  return MachineFolder(root_ / name);
}

std::vector<std::string> MachineFolders::names() const {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root_, error)) {
    auto name = entry.path().filename().string();
    if (is_machine_name(name)) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

MachineFolders::Staged MachineFolders::stage() const {
  make_private_directory(root_);
  TempDir folder(root_, k_staging);
  auto lock = FileLock::acquire(folder.path() / "lock", Deadline::after(std::chrono::seconds(1)));
  return {std::move(folder), std::move(lock)};
}

FileLock MachineFolders::publish(Staged staged, const std::string& name) const {
  auto target = of(name).path();
  if (rename_without_replacing(staged.folder.path(), target) != 0) {
    if (errno == EEXIST || errno == ENOTEMPTY) {
      throw Error(ErrorCode::conflict, fmt::format("There is already a machine {}", name),
                  {.subject = name, .hint = "Choose another name, or remove that machine."});
    }
    throw system_error(errno, fmt::format("make the machine's folder {}", target.string()), target);
  }
  staged.folder.release();
  return std::move(staged.lock);
}

void MachineFolders::erase(const MachineFolder& folder) const {
  auto doomed = root_ / fmt::format("{}{}", k_removing, random_hex(16));
  if (::rename(folder.path().c_str(), doomed.c_str()) != 0) {
    throw system_error(errno, fmt::format("remove {}", folder.path().string()), folder.path());
  }
  try {
    remove_tree(doomed);
  } catch (const Error& e) {
    // The machine is gone by its rename; a later sweep takes the rest.
    logger("machine")->warn("{}", e.what());
  }
}

void MachineFolders::sweep() const {
  std::error_code error;
  std::vector<std::filesystem::path> left;
  for (const auto& entry : std::filesystem::directory_iterator(root_, error)) {
    auto name = entry.path().filename().string();
    if (name.starts_with(k_staging) || name.starts_with(k_removing)) left.push_back(entry.path());
  }
  for (const auto& path : left) {
    try {
      // Whoever works on it holds its lock, but for the moment in which a new folder gets one.
      if (path.filename().string().starts_with(k_staging) && !is_older_than(path, k_sweep_grace)) continue;
      sweep_left_over(path);
    } catch (const Error& e) {
      // Another sweep was faster.
      logger("machine")->debug("{}", e.what());
    }
  }
}

Observed observe(const MachineFolder& folder) {
  Observed observed{.status = folder.read_status()};
  auto& status = observed.status;
  for (;;) {
    observed.monitored = FileLock::holder(folder.lock_file()).has_value();
    if (observed.monitored) return observed;
    // A monitor writes its last word before it lets go of the lock: what was read before that may be older.
    auto last = folder.read_status();
    bool was_last = last.state == status.state && last.monitor == status.monitor;
    status = std::move(last);
    if (was_last) break;
  }
  if (folder.is_suspended()) {
    // The files decide: its monitor may have been killed behind its last word.
    status.state = MachineState::suspended;
    status.failure.reset();
    return observed;
  }
  bool was_alive = status.state == MachineState::starting || status.state == MachineState::running ||
                   status.state == MachineState::stopping || status.state == MachineState::paused;
  if (!was_alive) return observed;
  bool host_restarted = status.host_boot_id != host_boot_id();
  status.state = MachineState::failed;
  status.failure = MachineFailure{.code = ErrorCode::guest_lost,
                                  .message = host_restarted ? "The host was restarted while the machine ran"
                                                            : "The machine's monitor was killed",
                                  .at = wall_now()};
  return observed;
}

}  // namespace holt::machine
