#include "cli/host_facts.hpp"

#include "holt/base/disk_space.hpp"
#include "holt/base/process.hpp"
#include "holt/image/engine_files.hpp"

#include <cstdlib>
#include <unistd.h>

namespace holt::cli {
namespace {

constexpr auto k_patience = std::chrono::seconds(3);

std::optional<std::filesystem::path> on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string folders = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  std::size_t at = 0;
  while (at <= folders.size()) {
    auto end = std::min(folders.find(':', at), folders.size());
    auto candidate = std::filesystem::path(folders.substr(at, end - at)) / program;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    at = end + 1;
  }
  return std::nullopt;
}

std::filesystem::path nearest_existing(std::filesystem::path path) {
  std::error_code ignored;
  while (!std::filesystem::exists(path, ignored) && path.has_relative_path()) path = path.parent_path();
  return path;
}

}  // namespace

std::optional<std::filesystem::path> find_qemu(const HostConfig& host) {
  if (!host.qemu.empty()) {
    if (::access(host.qemu.c_str(), X_OK) != 0) return std::nullopt;
    return host.qemu;
  }
  return on_path("qemu-system-x86_64");
}

std::optional<std::string> qemu_version(const std::filesystem::path& qemu) {
  try {
    auto result =
        run_process({.argv = {qemu.string(), "--version"}}, {.deadline = Deadline::after(k_patience)});
    static constexpr std::string_view k_lead = "version ";
    auto at = result.out.find(k_lead);
    if (result.status.exit_code != 0 || at == std::string::npos) return std::nullopt;
    auto text = result.out.substr(at + k_lead.size());
    return printable(text.substr(0, text.find_first_of(" \n")), 40);
  } catch (const Error&) {
    return std::nullopt;
  }
}

Json engine_versions(Session& session) {
  Json versions{{"qemu", nullptr}, {"kernel", nullptr}};
  try {
    const auto& host = session.host();
    if (auto qemu = find_qemu(host)) {
      if (auto version = qemu_version(*qemu)) versions["qemu"] = *version;
    }
    auto engine = image::EngineFiles::find(host.directories);
    if (engine && !engine->kernel_release.empty()) versions["kernel"] = engine->kernel_release;
  } catch (const Error&) {  // versions are told also where nothing else works
  }
  return versions;
}

std::optional<std::uint64_t> free_bytes(std::filesystem::path path) {
  return free_disk_bytes(nearest_existing(std::move(path)));
}

bool is_writable(std::filesystem::path path) {
  return ::access(nearest_existing(std::move(path)).c_str(), W_OK | X_OK) == 0;
}

}  // namespace holt::cli
