// A microVM of this host as the workspace of an agent: made at the first use, kept after the run, found again
// by the ref in the run's messages.
//
//   holt::Agent agent("anthropic:claude-opus-5-5", {.capabilities = {SmolSandbox(), Coder()}});
//   auto result = agent.run_sync("Write a script that prints the first 10 primes, and run it.");
//   SmolSandbox().destroy(*result.workspace().ref());
//
// The machine is the boundary: its own kernel and file system, nothing of the host in it, no host
// environment, no network. Inside, the agent may change everything. Depends on agent/, workspace/ and
// machine/.
#pragma once

#include "holt/agent/capability.hpp"
#include "holt/machine/machine.hpp"
#include "holt/workspace/backend.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace holt {

/// The first four shape a new machine only; attaching never changes a machine.
struct SmolSandboxOptions {
  std::optional<std::string> image = std::nullopt;  ///< none: the default image
  std::optional<int> cpus = std::nullopt;           ///< above 0; none: the engine's default
  std::optional<int> memory_mb = std::nullopt;      ///< MiB, above 0; none: the engine's default
  /// Refused with NOT_SUPPORTED when set, until machines can have a network.
  bool allow_internet_access = false;
  /// Absolute directory in which commands start, made when it is missing. None: the machine's own.
  std::optional<std::string> working_dir = "/workspace";
  std::map<std::string, std::string> env = {};  ///< of every command, also in a machine attached to
  /// A new machine stops, flushed, after so long without client and user process; the next use starts it
  /// again. None: never.
  std::optional<Duration> idle_stop = std::chrono::minutes(15);
  /// Folders and programs of the engine; none: from the environment, at the first use.
  std::optional<HostConfig> host = std::nullopt;
  /// Hears of the boot, on a thread of its own.
  std::function<void(const StartProgress&)> on_progress = nullptr;
};

/// Supplies a run's workspace. Refs reach only machines named "pydantic-ai-" and 32 hexadecimal digits, as
/// this capability names them: a history cannot reach a machine that somebody made for another purpose.
class SmolSandbox : public CapabilityBase {
 public:
  /// Does nothing yet. Throws UserError for cpus or memory_mb below 1 and a relative working_dir,
  /// InvalidArgument for an environment that no process can have, Error NOT_SUPPORTED for
  /// allow_internet_access.
  explicit SmolSandbox(SmolSandboxOptions options = {});

  std::string id() const override { return "smol_sandbox"; }
  CapabilityPtr combine(CapabilityPtr later) const override { return later; }
  bool supplies_workspace() const override { return true; }
  /// Null for a ref of another provider. Throws InvalidArgument for a name of another form.
  WorkspaceBackendPtr get_workspace(const RunContext& context,
                                    const std::optional<WorkspaceRef>& ref) const override;

  /// A backend that attaches at its first use. Throws InvalidArgument for a ref of another provider or form.
  WorkspaceBackendPtr backend(const WorkspaceRef& ref) const;
  /// Removes the machine, disk and all, without starting it; quiet when it is gone. Waits for a boot of it
  /// that is under way. Blocks; in a coroutine use holt::blocking(). Throws as backend() and
  /// Machine::remove().
  void destroy(const WorkspaceRef& ref) const;

 private:
  SmolSandboxOptions options_;
};

/// As SmolSandboxOptions, for a program that names the machine itself.
struct SmolSandboxBackendOptions : SmolSandboxOptions {
  std::optional<Machine> sandbox = std::nullopt;   ///< use this machine
  std::optional<WorkspaceRef> ref = std::nullopt;  ///< attach to this one, whatever its name
};

/// Commands and files of a machine. Files go through the machine's file channel, so they need no shell and no
/// programs in the image. Any number of coroutines and threads may use it, on any event loops.
class SmolSandboxBackend final : public WorkspaceBackend,
                                 public SupportsCommands,
                                 public SupportsFilesystem,
                                 public SupportsRealpath {
 public:
  /// Does nothing yet. Throws as SmolSandbox, InvalidArgument in place of UserError; also for a ref of
  /// another provider and for both `sandbox` and `ref`.
  explicit SmolSandboxBackend(SmolSandboxBackendOptions options = {});
  /// Waits for a boot that is under way.
  ~SmolSandboxBackend() override;

  /// Of a new machine: set before its boot starts, gone again when that fails.
  std::optional<WorkspaceRef> ref() const override;
  Task<std::string> working_dir() override;
  /// At most 10 MiB of output, both streams together.
  Task<CommandResult> run(WorkspaceCommand command, CommandOptions options) override;
  /// At most 1 GiB.
  Task<std::string> read_bytes(std::string path) override;
  Task<void> write_bytes(std::string path, std::string data) override;
  Task<FileEntry> stat(std::string path) override;
  Task<std::vector<FileEntry>> list_dir(std::string path) override;
  Task<void> make_dir(std::string path) override;
  Task<void> remove(std::string path) override;
  Task<bool> exists(std::string path) override;
  Task<std::string> realpath(std::string path) override;

  /// The machine, booted or attached first where that is still to be done.
  Task<Machine> get_sandbox();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace holt
