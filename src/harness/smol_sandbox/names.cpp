#include "harness/smol_sandbox/names.hpp"

#include "harness/wording.hpp"
#include "holt/base/ids.hpp"
#include "holt/workspace/rules.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

namespace holt::smol {
namespace {

constexpr std::string_view k_prefix = "pydantic-ai-";
constexpr std::size_t k_digits = 32;
// A boot may have to build a template first.
constexpr std::chrono::minutes k_turn_timeout{3};

bool is_our_name(std::string_view name) {
  if (!name.starts_with(k_prefix) || name.size() != k_prefix.size() + k_digits) return false;
  return std::ranges::all_of(name.substr(k_prefix.size()),
                             [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

void check_number(const char* name, const std::optional<int>& value) {
  if (value && *value < 1) throw InvalidArgument(wording::smol_number(name, *value));
}

}  // namespace

std::string new_name() {
  return std::string(k_prefix) + random_hex(k_digits);
}

void check_provider(const WorkspaceRef& ref) {
  if (ref.provider != k_provider) throw InvalidArgument(wording::smol_provider(printable(ref.provider)));
}

void check_ref(const WorkspaceRef& ref) {
  check_provider(ref);
  if (is_our_name(ref.id)) return;
  throw InvalidArgument(fmt::format(
      "'{}' is no machine of SmolSandbox: those are named {} and {} hexadecimal digits. For another machine "
      "pass "
      "a SmolSandboxBackend with `sandbox` or `ref` as the run's workspace, or ask for a new one with "
      "workspace='new' (holt::new_workspace).",
      printable(ref.id, 200), k_prefix, k_digits));
}

void check_options(const SmolSandboxOptions& options) {
  check_number("cpus", options.cpus);
  check_number("memory_mb", options.memory_mb);
  if (options.working_dir && !options.working_dir->starts_with('/')) {
    throw InvalidArgument(wording::smol_working_dir(printable(*options.working_dir)));
  }
  if (options.working_dir && options.working_dir->find('\0') != std::string::npos) {
    throw InvalidArgument("embedded null byte");
  }
  check_environment(options.env);
  if (options.allow_internet_access) {
    throw Error(ErrorCode::not_supported, "Machines have no network in this version",
                {.hint = "Leave allow_internet_access unset."});
  }
}

HostConfig host_of(const SmolSandboxOptions& options) {
  return options.host ? *options.host : HostConfig::from_environment();
}

NameTurn::NameTurn(const HostConfig& host, const std::string& name)
    : path_(host.directories.runtime / (name + ".turn")) {
  make_private_directory(path_.parent_path());
  lock_ = FileLock::acquire(path_, Deadline::after(k_turn_timeout));
}

NameTurn::~NameTurn() {
  // Names are never used twice, so nobody waits for this file's successor.
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace holt::smol
