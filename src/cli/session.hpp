// What every verb gets: the global flags, the streams, the interrupts and the host.
#pragma once

#include "cli/interrupts.hpp"
#include "cli/output.hpp"
#include "holt/machine/availability.hpp"
#include "holt/machine/host_config.hpp"
#include "holt/machine/machine.hpp"

#include <optional>
#include <string>

namespace holt::cli {

/// Flags that stand before or behind any verb.
struct GlobalOptions {
  bool json = false;
  bool quiet = false;
  bool no_input = false;
  int verbose = 0;
  std::optional<std::string> format = std::nullopt;
  std::optional<std::string> color = std::nullopt;
  std::optional<std::string> home = std::nullopt;
};

/// Lives in main for the length of one verb.
class Session {
 public:
  Session(Output& streams, Interrupts& signals) : output(streams), interrupts(signals) {}

  GlobalOptions globals;
  Output& output;
  Interrupts& interrupts;

  /// The host as the environment describes it; looked up on the first call, so that help needs no HOME.
  const HostConfig& host();
  /// Options of a boot that show its progress and end with an interrupt.
  StartOptions start_options();
  /// For calls that an interrupt ends.
  CallOptions call() const;
  /// On a software-emulated machine: says once a process that it is no isolation boundary.
  void warn_of(Accelerator accelerator);
  /// A note for people, left out under --quiet.
  void note(std::string_view text);
  /// An array of objects as an inspecting verb prints it: one line each by --format, else the JSON, indented
  /// for people unless --json is given.
  void print_objects(const Json& list);

 private:
  std::optional<HostConfig> host_;
  bool warned_ = false;
};

}  // namespace holt::cli
