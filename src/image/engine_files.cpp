#include "holt/image/engine_files.hpp"

#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "holt/base/json.hpp"
#include "image/byte_source.hpp"
#include "image/cpio.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

namespace holt::image {
namespace fs = std::filesystem;
namespace {

/// What the machine's devices need, in an order in which each finds what it builds on.
constexpr std::array<std::string_view, 9> k_modules{"virtio_ring",  "virtio",         "virtio_mmio",
                                                    "virtio_blk",   "virtio_console", "failover",
                                                    "net_failover", "virtio_net",     "virtio_rng"};
constexpr std::size_t k_file_bytes = std::size_t{256} << 20;
constexpr std::size_t k_record_bytes = std::size_t{64} << 10;
constexpr int k_record_version = 1;
constexpr std::string_view k_record = "engine.json";
constexpr std::string_view k_hint = "Run scripts/setup; it makes the engine files.";

fs::path engine_folder(const Directories& directories) {
  return directories.data / "engine";
}

[[noreturn]] void not_installed(std::string_view reason) {
  throw Error(ErrorCode::runtime_not_installed, fmt::format("read the engine files: {}", reason),
              {.hint = std::string(k_hint)});
}

/// Modules' names as the kernel sees them: '-' and '_' are one.
std::string module_name(const fs::path& file) {
  std::string name = file.filename().string();
  name = name.substr(0, name.find('.'));
  std::ranges::replace(name, '-', '_');
  return name;
}

/// Paths of the wanted modules, by name.
std::map<std::string, fs::path> find_modules(const fs::path& folder) {
  std::map<std::string, fs::path> found;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::string file = it->path().filename().string();
    if (file.find(".ko") == std::string::npos) continue;
    std::string name = module_name(it->path());
    if (std::ranges::find(k_modules, name) != k_modules.end()) found[name] = it->path();
  }
  if (error) throw system_error(error.value(), "look for the kernel's modules", folder.string());
  return found;
}

std::string unpack(const std::string& bytes) {
  MemorySource packed(bytes);
  DecompressedSource unpacked(packed, Compressions::kernel);
  return read_all(unpacked, k_file_bytes);
}

struct Initramfs {
  std::string bytes;
  std::vector<std::string> modules;
};

/// /init and the modules, numbered in load order. A module that is not there is built into that kernel.
Initramfs pack_initramfs(const std::string& guest, const fs::path& modules_folder) {
  std::map<std::string, fs::path> files = find_modules(modules_folder);
  if (files.empty()) {
    throw Error(ErrorCode::not_found,
                fmt::format("look for virtio modules below {}: none is there", modules_folder.string()));
  }
  Initramfs result;
  CpioWriter cpio;
  cpio.add_directory("dev");
  // The kernel opens it for the first process before that can mount anything.
  cpio.add_character_device("dev/console", 0600, 5, 1);
  cpio.add_directory("modules");
  for (std::string_view name : k_modules) {
    auto file = files.find(std::string(name));
    if (file == files.end()) continue;
    cpio.add_file(fmt::format("modules/{:02}-{}.ko", result.modules.size(), name), 0644,
                  unpack(read_file(file->second, k_file_bytes)));
    result.modules.emplace_back(name);
  }
  cpio.add_file("init", 0755, guest);
  result.bytes = cpio.finish();
  return result;
}

/// Writes content under a name made of its digest, unless it is there already.
fs::path keep(const fs::path& folder, std::string_view stem, std::string_view extension,
              const std::string& content, const std::string& digest) {
  fs::path path = folder / fmt::format("{}-{}{}", stem, digest.substr(0, 16), extension);
  std::error_code error;
  if (fs::file_size(path, error) != content.size() || error)
    write_file_atomically(path, content, {.mode = 0644});
  return path;
}

Json record_of(const EngineFiles& files) {
  auto file = [](const fs::path& path, const std::string& digest) {
    return Json{{"file", path.filename().string()}, {"sha256", digest}, {"bytes", fs::file_size(path)}};
  };
  Json record{{"version", k_record_version},
              {"kernel", file(files.kernel, files.kernel_sha256)},
              {"initramfs", file(files.initramfs, files.initramfs_sha256)},
              {"modules", files.modules}};
  record["kernel"]["release"] = files.kernel_release;
  record["initramfs"]["guestSha256"] = files.guest_sha256;
  return record;
}

fs::path recorded_file(const fs::path& folder, const Json& record) {
  fs::path name = record.at("file").get<std::string>();
  if (name.has_parent_path() || !name.has_filename()) not_installed("engine.json names a file elsewhere");
  std::error_code error;
  std::uintmax_t size = fs::file_size(folder / name, error);
  if (error) not_installed(fmt::format("{} is missing", (folder / name).string()));
  if (json_integer<std::uintmax_t>(record.at("bytes")) != size) {
    not_installed(fmt::format("{} has another size than recorded", (folder / name).string()));
  }
  return folder / name;
}

EngineFiles files_of(const fs::path& folder, const Json& record) {
  if (record.at("version") != k_record_version) not_installed("engine.json is of another version of holt");
  return {.kernel = recorded_file(folder, record.at("kernel")),
          .kernel_sha256 = record.at("kernel").at("sha256"),
          .kernel_release = record.at("kernel").at("release"),
          .initramfs = recorded_file(folder, record.at("initramfs")),
          .initramfs_sha256 = record.at("initramfs").at("sha256"),
          .guest_sha256 = record.at("initramfs").at("guestSha256"),
          .modules = record.at("modules")};
}

void remove_old(const fs::path& folder, const EngineFiles& current) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    std::string name = entry.path().filename().string();
    bool ours = name.starts_with("vmlinux-") || name.starts_with("initramfs-");
    if (ours && entry.path() != current.kernel && entry.path() != current.initramfs) {
      fs::remove(entry.path(), ignored);
    }
  }
}

}  // namespace

EngineFiles EngineFiles::load(const Directories& directories) {
  fs::path folder = engine_folder(directories);
  auto text = read_file_if_exists(folder / k_record, k_record_bytes);
  if (!text) not_installed(fmt::format("none are installed below {}", folder.string()));
  auto record = parse_json(*text);
  if (!record) not_installed(fmt::format("engine.json is damaged: {}", record.error().text()));
  try {
    return files_of(folder, *record);
  } catch (const Json::exception&) {
    not_installed("engine.json is damaged");
  }
}

std::optional<EngineFiles> EngineFiles::find(const Directories& directories) {
  try {
    return load(directories);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::runtime_not_installed) throw;
    return std::nullopt;
  }
}

bool EngineFiles::verify() const {
  return sha256_hex(read_file(kernel, k_file_bytes)) == kernel_sha256 &&
         sha256_hex(read_file(initramfs, k_file_bytes)) == initramfs_sha256;
}

EngineFiles install_engine(const Directories& directories, const EngineSource& source) {
  std::string kernel = unpack_kernel(read_file(source.kernel, k_file_bytes));
  std::string guest = read_file(source.guest, k_file_bytes);
  Initramfs initramfs = pack_initramfs(guest, source.modules);

  fs::path folder = engine_folder(directories);
  make_private_directory(folder);
  FileLock lock = FileLock::acquire(folder / "lock", Deadline::after(std::chrono::seconds(60)));
  EngineFiles files{.kernel = {},
                    .kernel_sha256 = sha256_hex(kernel),
                    .kernel_release = source.kernel_release,
                    .initramfs = {},
                    .initramfs_sha256 = sha256_hex(initramfs.bytes),
                    .guest_sha256 = sha256_hex(guest),
                    .modules = initramfs.modules};
  files.kernel = keep(folder, "vmlinux", "", kernel, files.kernel_sha256);
  files.initramfs = keep(folder, "initramfs", ".cpio", initramfs.bytes, files.initramfs_sha256);
  write_file_atomically(folder / k_record, dump_json(record_of(files), {.indent = 2}) + "\n", {.mode = 0644});
  remove_old(folder, files);
  return files;
}

}  // namespace holt::image
