#include "machine/template.hpp"

#include "holt/base/disk_space.hpp"
#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "holt/base/json.hpp"
#include "holt/base/log.hpp"
#include "machine/console.hpp"
#include "machine/guest_link.hpp"
#include "machine/sparse_file.hpp"
#include "machine/stub_kernel.hpp"
#include "machine/vmm.hpp"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::machine {
namespace {

using namespace std::chrono_literals;

// Raised whenever what a template holds, or the argv that it is restored with, changes.
constexpr int k_format = 1;
// Measured at 3-4 s on an idle host; a loaded one may take several times that.
constexpr auto k_boot_deadline = 30s;
constexpr std::size_t k_state_limit = std::size_t{16} << 20;

constexpr std::string_view k_staging = ".staging";
// Templates of an older kernel, QEMU or guest program are never asked for again; each takes 70 MB and more.
constexpr auto k_unused = std::chrono::hours(24 * 14);

bool is_unused(const std::filesystem::path& folder) {
  std::error_code error;
  auto used = std::filesystem::last_write_time(folder / "template.json", error);
  return !error && std::filesystem::file_time_type::clock::now() - used > k_unused;
}

/// Of a template's folder, also of one that is being built.
std::string key_of(const std::string& folder) {
  if (!folder.starts_with('.') || !folder.ends_with(k_staging)) return folder;
  return folder.substr(1, folder.size() - 1 - k_staging.size());
}

std::string describe(const TemplateShape& shape) {
  auto text = fmt::format(
      "format {}\nqemu {} {}\naccelerator {}\ncpus {}\nmemory {}\ntsc {}\nkernel {}\ninitramfs {}\n",
      k_format, shape.vmm.path.string(), shape.vmm.version, to_string(shape.accelerator), shape.cpus,
      shape.memory_mb, shape.tsc_khz, shape.boot.kernel_sha256, shape.boot.initramfs_sha256);
  if (!shape.processor.empty()) text += fmt::format("processor {}\n", shape.processor);
  return text;
}

Fd open_state(const std::filesystem::path& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) throw system_error(errno, fmt::format("write {}", path.string()), path);
  return fd;
}

void make_memory_file(const std::filesystem::path& path, unsigned memory_mb) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(memory_mb) << 20) != 0) {
    throw system_error(errno, fmt::format("make {}", path.string()), path);
  }
}

/// QEMU writes into a mapping of a file: where that finds no room for a page, it is killed without a word.
bool is_full(const std::filesystem::path& folder) {
  constexpr std::uint64_t k_pages = std::uint64_t{64} << 10;
  return free_disk_bytes(folder).value_or(k_pages) < k_pages;
}

/// Boots, waits for the guest program and writes both files.
void boot_and_save(const TemplateShape& shape, const Template& made, Deadline limit) {
  auto command = shape.command();
  command.memory = {.kind = GuestMemory::Kind::template_writer, .file = made.memory()};
  auto deadline = Deadline::after(k_boot_deadline).earlier(limit);
  auto vmm = Vmm::start(command);
  ConsoleReader console(std::move(vmm.console()), made.folder / "console.log");
  try {
    vmm.qmp().greet(deadline);
    GuestLink link(std::move(vmm.agent()));
    link.await_hello(deadline);
    Fd state = open_state(made.state());
    vmm.save_state(state.get(), deadline);
    if (!vmm.quit(5s)) throw Error(ErrorCode::timeout, "QEMU did not end");
  } catch (const Error& e) {
    vmm.quit(1s);
    throw Error(
        e.code(), fmt::format("Could not boot a template: {}", e.what()),
        {.hint = e.hint(), .causes = {fmt::format("The console's last lines: {}", console.last_lines())}});
  }
}

/// The digest of what it writes.
std::string write_record(const TemplateShape& shape, const Template& made) {
  Json record{{"format", k_format},
              {"shape", describe(shape)},
              {"memory", sampled_digest(made.memory())},
              {"state", sha256_hex(read_file(made.state(), k_state_limit))}};
  auto text = dump_json(record, {.indent = 2});
  write_file_atomically(made.folder / "template.json", text, {.mode = 0400});
  return sha256_hex(text);
}

std::optional<std::string> read_record(const Template& found) {
  return read_file_if_exists(found.folder / "template.json", std::size_t{64} * 1024);
}

std::string member_of(const std::string& record, const char* name) {
  auto json = parse_json(record);
  if (!json || !json->is_object()) return {};
  auto value = json->value(name, Json());
  return value.is_string() ? value.get<std::string>() : std::string();
}

/// Its files are those that its record was written for. Throws Error when one is missing.
bool is_whole(const Template& found, const std::string& record) {
  return member_of(record, "memory") == sampled_digest(found.memory()) &&
         member_of(record, "state") == sha256_hex(read_file(found.state(), k_state_limit));
}

bool is_intact(const TemplateShape& shape, const Template& found, const std::string& record) {
  return member_of(record, "shape") == describe(shape) && is_whole(found, record);
}

bool is_damaged(const Template& found) {
  try {
    auto record = read_record(found);
    return !record || !is_whole(found, *record);
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

std::string TemplateShape::key() const {
  return sha256_hex(describe(*this)).substr(0, 32);
}

QemuCommand TemplateShape::command() const {
  return {.qemu = vmm.path,
          .shim = shim,
          .accelerator = accelerator,
          .cpus = cpus,
          .memory_mb = memory_mb,
          .tsc_khz = tsc_khz,
          .guard = vmm.guard,
          .kernel = boot.kernel,
          .initramfs = boot.initramfs,
          .jail = jail};
}

std::optional<Template> TemplateStore::find(const TemplateShape& shape) const {
  Template found{folder_ / shape.key()};
  try {
    auto record = read_record(found);
    if (record && is_intact(shape, found, *record)) {
      found.record = sha256_hex(*record);
      // The time of the last use, for sweep().
      ::utimensat(AT_FDCWD, (found.folder / "template.json").c_str(), nullptr, 0);
      return found;
    }
  } catch (const Error& e) {
    // A file of it is missing or no file: not intact.
    logger("machine")->debug("{}", e.what());
  }
  return std::nullopt;
}

Template TemplateStore::get(const TemplateShape& shape, const TemplateProgress& progress) const {
  if (auto found = find(shape)) return *found;
  make_private_directory(folder_);
  auto lock_file = folder_ / (shape.key() + ".lock");
  auto lock = FileLock::try_acquire(lock_file);
  if (!lock && progress.on_wait) progress.on_wait();
  while (!lock) {
    // In slices, to see a cancellation. A builder that dies gives its lock back at once.
    if (progress.cancel) progress.cancel->throw_if_cancelled();
    try {
      lock = FileLock::acquire(lock_file, Deadline::after(100ms).earlier(progress.deadline));
    } catch (const Error& e) {
      if (e.code() != ErrorCode::timeout || progress.deadline.passed()) throw;
    }
  }
  if (auto found = find(shape)) return *found;
  if (progress.on_build) progress.on_build();
  return build(shape, progress);
}

void TemplateStore::discard(const TemplateShape& shape, const Template& used) const {
  try {
    auto lock = FileLock::try_acquire(folder_ / (shape.key() + ".lock"));
    if (!lock) return;
    Template present{folder_ / shape.key()};
    auto record = read_record(present);
    if (record && sha256_hex(*record) == used.record) remove_tree(present.folder);
  } catch (const Error& e) {
    logger("machine")->warn("The template {} could not be thrown away: {}", shape.key(), e.what());
  }
}

std::vector<std::filesystem::path> TemplateStore::all() const {
  std::vector<std::filesystem::path> folders;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    if (entry.is_directory(error) && !entry.path().filename().string().starts_with('.'))
      folders.push_back(entry.path());
  }
  return folders;
}

void TemplateStore::remove(const std::filesystem::path& folder) const {
  auto lock = FileLock::try_acquire(folder_ / (folder.filename().string() + ".lock"));
  if (!lock) throw Error(ErrorCode::conflict, "The template is in use", {.subject = folder});
  remove_tree(folder);
}

void TemplateStore::sweep() const {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    auto name = entry.path().filename().string();
    auto key = key_of(name);
    bool staging = key != name;
    if (!entry.is_directory(error) || (!staging && !is_unused(entry.path()))) continue;
    try {
      // A machine that runs from it has the files open and goes on.
      if (auto lock = FileLock::try_acquire(folder_ / (key + ".lock"))) remove_tree(entry.path());
    } catch (const Error& e) {
      logger("machine")->debug("a template was not swept: {}", e.what());
    }
  }
}

std::vector<std::string> TemplateStore::repair() const {
  std::vector<std::string> removed;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    if (!entry.is_directory(error)) continue;
    auto name = entry.path().filename().string();
    auto key = key_of(name);
    bool staging = key != name;
    try {
      auto lock = FileLock::try_acquire(folder_ / (key + ".lock"));
      if (!lock || (!staging && !is_damaged({entry.path()}))) continue;
      remove_tree(entry.path());
      removed.push_back(name);
    } catch (const Error& e) {
      logger("machine")->warn("The template {} could not be removed: {}", name, e.what());
    }
  }
  return removed;
}

Template TemplateStore::build(const TemplateShape& shape, const TemplateProgress& progress) const {
  Template finished{folder_ / shape.key()};
  if (std::filesystem::exists(finished.folder)) {
    logger("machine")->warn("The template {} is damaged and is built again", shape.key());
    remove_tree(finished.folder);
  }
  sweep();
  // Left by a builder that died: the lock is ours.
  auto staging_name = fmt::format(".{}{}", shape.key(), k_staging);
  remove_tree(folder_ / staging_name);
  Template staging{folder_ / staging_name};
  make_private_directory(staging.folder);
  try {
    // One retry: a boot on an overloaded host may miss its deadline.
    for (int attempt = 1;; attempt++) {
      if (progress.cancel) progress.cancel->throw_if_cancelled();
      try {
        make_memory_file(staging.memory(), shape.memory_mb);
        boot_and_save(shape, staging, progress.deadline);
        break;
      } catch (const Error& e) {
        if (e.code() != ErrorCode::storage_full && is_full(staging.folder)) {
          throw Error(ErrorCode::storage_full, fmt::format("No room for a template in {}", folder_.string()),
                      {.subject = folder_.string(),
                       .hint = "Make room there, for example with 'holt prune'.",
                       .causes = {e.what()}});
        }
        bool final = attempt > 1 || e.code() == ErrorCode::storage_full || progress.deadline.passed();
        if (final) throw;
        remove_tree(staging.memory());
      }
    }
    // The jail's user owned it while QEMU wrote it.
    if (::chown(staging.memory().c_str(), ::geteuid(), ::getegid()) != 0) {
      throw system_error(errno, "take the template back", staging.memory());
    }
    punch_zero_pages(staging.memory());
    write_file_atomically(staging.kernel(), stub_kernel(), {.mode = 0444});
    write_file_atomically(staging.initramfs(), std::string(1, '\0'), {.mode = 0444});
    ::chmod(staging.memory().c_str(), 0444);
    ::chmod(staging.state().c_str(), 0444);
    finished.record = write_record(shape, staging);
    std::filesystem::rename(staging.folder, finished.folder);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove_all(staging.folder, ignored);
    throw;
  }
  return finished;
}

}  // namespace holt::machine
