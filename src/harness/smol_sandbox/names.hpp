// What a ref may name, and the turns of those who make and destroy one machine.
#pragma once

#include "holt/base/files.hpp"
#include "holt/harness/smol_sandbox.hpp"

#include <string>

namespace holt::smol {

inline constexpr const char* k_provider = "smol";

/// "pydantic-ai-" and 32 random hexadecimal digits.
std::string new_name();
/// Throws InvalidArgument for another provider than "smol".
void check_provider(const WorkspaceRef& ref);
/// check_provider(), and InvalidArgument for a name that SmolSandbox does not give.
void check_ref(const WorkspaceRef& ref);
/// Throws InvalidArgument with the text `check` gives; see SmolSandbox.
void check_options(const SmolSandboxOptions& options);

HostConfig host_of(const SmolSandboxOptions& options);

/// Held while a machine is made or destroyed, so that one waits for the other, in this process and others.
class NameTurn {
 public:
  NameTurn(const HostConfig& host, const std::string& name);
  ~NameTurn();
  NameTurn(const NameTurn&) = delete;
  NameTurn& operator=(const NameTurn&) = delete;

 private:
  std::filesystem::path path_;
  std::optional<FileLock> lock_;
};

}  // namespace holt::smol
