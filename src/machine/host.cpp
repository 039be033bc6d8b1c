#include "machine/host.hpp"

#include "holt/base/error.hpp"
#include "holt/base/process.hpp"
#include "holt/image/engine_files.hpp"
#include "machine/host_facts.hpp"

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace holt {
namespace {

std::filesystem::path path_variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::filesystem::path(value) : std::filesystem::path();
}

AcceleratorChoice accelerator_variable() {
  const char* value = std::getenv("HOLT_ACCELERATOR");
  std::string word = value != nullptr ? value : "";
  if (word.empty() || word == "auto") return AcceleratorChoice::automatic;
  if (word == "kvm") return AcceleratorChoice::require_kvm;
  if (word == "tcg") return AcceleratorChoice::tcg;
  throw Error(ErrorCode::invalid_config,
              fmt::format("HOLT_ACCELERATOR=\"{}\" is no accelerator", printable(word, 100)),
              {.subject = "HOLT_ACCELERATOR", .hint = "Use auto, kvm or tcg."});
}

JailChoice jail_variable() {
  const char* value = std::getenv("HOLT_JAIL");
  std::string word = value != nullptr ? value : "";
  if (word.empty() || word == "auto") return JailChoice::automatic;
  if (word == "require") return JailChoice::required;
  if (word == "off") return JailChoice::off;
  throw Error(ErrorCode::invalid_config,
              fmt::format("HOLT_JAIL=\"{}\" is no choice of a jail", printable(word, 100)),
              {.subject = "HOLT_JAIL", .hint = "Use auto, require or off."});
}

std::optional<std::filesystem::path> optional_path(const char* name) {
  auto path = path_variable(name);
  return path.empty() ? std::nullopt : std::optional(std::move(path));
}

bool switch_variable(const char* name) {
  const char* value = std::getenv(name);
  std::string word = value != nullptr ? value : "";
  if (word.empty() || word == "0" || word == "false" || word == "no" || word == "off") return false;
  if (word == "1" || word == "true" || word == "yes" || word == "on") return true;
  throw Error(ErrorCode::invalid_config,
              fmt::format("{}=\"{}\" is neither 1 nor 0", name, printable(word, 100)),
              {.subject = name, .hint = "Use 1 or 0."});
}

std::optional<std::uint64_t> number_variable(const char* name, std::uint64_t most) {
  const char* value = std::getenv(name);
  std::string_view word = value != nullptr ? value : "";
  if (word.empty()) return std::nullopt;
  std::uint64_t number = 0;
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error == std::errc() && end == word.data() + word.size() && number >= 1 && number <= most)
    return number;
  throw Error(ErrorCode::invalid_config,
              fmt::format("{}=\"{}\" is no number from 1 to {}", name, printable(word, 100), most),
              {.subject = name, .hint = "Write it in digits alone."});
}

image::Limits image_limits_variables() {
  constexpr std::uint64_t k_most_bytes = std::uint64_t{1} << 40;
  constexpr std::uint64_t k_most_entries = 10'000'000;
  image::Limits limits;
  if (auto bytes = number_variable("HOLT_IMAGE_MAX_BYTES", k_most_bytes))
    limits.unpacked_bytes = limits.file_bytes = *bytes;
  if (auto entries = number_variable("HOLT_IMAGE_MAX_ENTRIES", k_most_entries)) {
    std::uint64_t usual = std::exchange(limits.entries, *entries);
    if (*entries > usual) {
      limits.tree_bytes = limits.tree_bytes / usual * *entries;
      limits.walk_steps = limits.walk_steps / usual * *entries;
    }
  }
  return limits;
}

std::map<std::string, std::vector<std::string>> mirrors_variable() {
  const char* value = std::getenv("HOLT_MIRROR");
  std::istringstream words(value != nullptr ? value : "");
  std::map<std::string, std::vector<std::string>> mirrors;
  for (std::string word; words >> word;) {
    auto equals = word.find('=');
    if (equals == 0 || equals == std::string::npos || word.find("://", equals) == std::string::npos) {
      throw Error(ErrorCode::invalid_config,
                  fmt::format("HOLT_MIRROR: \"{}\" is no mirror", printable(word.substr(0, equals), 100)),
                  {.subject = "HOLT_MIRROR",
                   .hint = "Write docker.io=https://mirror.example, with spaces between several."});
    }
    mirrors[word.substr(0, equals)].push_back(word.substr(equals + 1));
  }
  return mirrors;
}

}  // namespace

HostConfig HostConfig::from_environment() {
  return {.directories = Directories::from_environment(),
          .qemu = path_variable("HOLT_QEMU"),
          .monitor = path_variable("HOLT_MONITOR"),
          .shim = path_variable("HOLT_SHIM"),
          .kernel = path_variable("HOLT_KERNEL"),
          .initramfs = path_variable("HOLT_INITRAMFS"),
          .accelerator = accelerator_variable(),
          .jail = jail_variable(),
          .registry = {.insecure = switch_variable("HOLT_INSECURE"),
                       .ca_file = optional_path("HOLT_CA_FILE"),
                       .auth_file = optional_path("HOLT_AUTH_FILE"),
                       .mirrors = mirrors_variable()},
          .image_limits = image_limits_variables()};
}

namespace machine {
namespace {

using namespace std::chrono_literals;

std::filesystem::path on_path(const std::string& name) {
  const char* variable = std::getenv("PATH");
  std::string path = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  for (std::size_t at = 0; at <= path.size();) {
    std::size_t end = std::min(path.find(':', at), path.size());
    auto candidate = std::filesystem::path(path.substr(at, end - at)) / name;
    if (candidate.is_absolute() && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    at = end + 1;
  }
  return {};
}

std::string ask(const std::filesystem::path& qemu, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), qemu.string());
  ProcessResult result;
  try {
    result = run_process({.argv = arguments, .env = {{"LC_ALL", "C"}}}, {.deadline = Deadline::after(10s)});
  } catch (const Error& e) {
    if (e.code() != ErrorCode::storage_error && e.code() != ErrorCode::permission_denied) throw;
    throw Error(ErrorCode::hypervisor_unavailable, fmt::format("Could not start QEMU: {}", e.what()),
                {.subject = qemu.string(), .hint = "Install qemu-system-x86, or set HOLT_QEMU."});
  }
  if (result.status.exit_code != 0) {
    throw Error(ErrorCode::hypervisor_unavailable,
                fmt::format("{} {} failed: {}", qemu.string(), arguments[1], printable(result.err, 400)),
                {.subject = qemu.string()});
  }
  return result.out;
}

/// Debian's small variant is built without QEMU's system call filter, and ends when it is asked for it.
bool has_sandbox(const HostConfig& host, const std::filesystem::path& qemu) {
  auto answer = cached_fact(host.directories.cache, "sandbox", qemu, [&] {
    try {
      ask(qemu, {"-sandbox", "on", "--version"});
      return std::string("yes");
    } catch (const Error&) {
      return std::string("no");
    }
  });
  return answer == "yes";
}

std::filesystem::path vmm_path(const HostConfig& host, Accelerator accelerator) {
  if (!host.qemu.empty()) {
    if (::access(host.qemu.c_str(), X_OK) == 0) return host.qemu;
  } else {
    if (accelerator == Accelerator::kvm) {
      auto small = on_path("qemu-system-x86_64-microvm");
      if (!small.empty() && has_sandbox(host, small)) return small;
    }
    if (auto path = on_path("qemu-system-x86_64"); !path.empty()) return path;
  }
  throw Error(
      ErrorCode::hypervisor_unavailable,
      host.qemu.empty() ? "qemu-system-x86_64 is not on the PATH"
                        : fmt::format("{} cannot be executed", host.qemu.string()),
      {.subject = host.qemu.string(), .hint = "Install the package qemu-system-x86, or set HOLT_QEMU."});
}

std::filesystem::path required(const std::filesystem::path& path, const char* what) {
  if (::access(path.c_str(), R_OK) == 0) return path;
  throw Error(ErrorCode::runtime_not_installed,
              fmt::format("{} is not installed: no {}", what, path.string()),
              {.subject = path.string(), .hint = "Run scripts/setup."});
}

}  // namespace

std::filesystem::path program_folder() {
  std::error_code error;
  auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path() : self.parent_path();
}

VmmProgram find_vmm(const HostConfig& host, Accelerator accelerator) {
  VmmProgram vmm{.path = vmm_path(host, accelerator), .version = {}};
  const auto& cache = host.directories.cache;
  vmm.version = cached_fact(cache, "version", vmm.path, [&] {
    auto text = ask(vmm.path, {"--version"});
    return text.substr(0, text.find('\n'));
  });
  auto guard = cached_fact(cache, "template-guard", vmm.path, [&] {
    // QEMU lists the properties of a backend, one a line: "  rom=<OnOffAuto> - ...".
    auto properties = ask(vmm.path, {"-object", "memory-backend-file,help"});
    return std::string(properties.find("  rom=") != std::string::npos ? "rom" : "shim");
  });
  vmm.guard = guard == "rom" ? TemplateGuard::rom_off : TemplateGuard::shim;
  return vmm;
}

BootFiles find_boot_files(const HostConfig& host) {
  BootFiles files{
      .kernel = host.kernel, .kernel_sha256 = {}, .initramfs = host.initramfs, .initramfs_sha256 = {}};
  if (files.kernel.empty() || files.initramfs.empty()) {
    auto engine = image::EngineFiles::load(host.directories);
    if (files.kernel.empty()) {
      files.kernel = engine.kernel;
      files.kernel_sha256 = engine.kernel_sha256;
    }
    if (files.initramfs.empty()) {
      files.initramfs = engine.initramfs;
      files.initramfs_sha256 = engine.initramfs_sha256;
    }
  }
  required(files.kernel, "The kernel");
  required(files.initramfs, "The guest program");
  const auto& cache = host.directories.cache;
  if (files.kernel_sha256.empty()) files.kernel_sha256 = file_sha256(cache, files.kernel);
  if (files.initramfs_sha256.empty()) files.initramfs_sha256 = file_sha256(cache, files.initramfs);
  return files;
}

std::filesystem::path find_monitor(const HostConfig& host) {
  if (!host.monitor.empty()) return required(host.monitor, "The monitor program");
  const auto beside = program_folder();
  for (const auto& candidate :
       {beside / "holt-monitor", beside / "src/monitor/holt-monitor", beside / "../src/monitor/holt-monitor",
        beside / "../monitor/holt-monitor", beside / "../libexec/holt/holt-monitor",
        std::filesystem::path("/usr/local/libexec/holt/holt-monitor"),
        std::filesystem::path("/usr/libexec/holt/holt-monitor")}) {
    if (::access(candidate.c_str(), X_OK) == 0) return std::filesystem::weakly_canonical(candidate);
  }
  throw Error(ErrorCode::runtime_not_installed, "The program holt-monitor is not installed",
              {.hint = "Run scripts/setup, or set HOLT_MONITOR to its path."});
}

std::filesystem::path find_shim(const HostConfig& host) {
  if (!host.shim.empty()) return required(host.shim, "The template guard");
  return required(find_monitor(host).parent_path() / "holt-memro.so", "The template guard");
}

}  // namespace machine
}  // namespace holt
