// What a client hands to the monitor that it starts: everything the monitor needs and must not look for
// itself.
#pragma once

#include "holt/base/process.hpp"
#include "machine/template.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holt::machine {

/// Descriptors of a monitor at its start.
inline constexpr int k_lock_fd = 3;  ///< the machine's lock, already held
inline constexpr int k_control_fd =
    4;  ///< socket to the client: one report of the start; its end is the owner's end
inline constexpr int k_launch_fd = 5;  ///< the Launch, read to its end

/// What the machine does when the client at the other end of the control socket closes it or ends.
enum class Ownership {
  independent,
  killed,   ///< it ends at once
  stopped,  ///< it is flushed and stopped
  removed,  ///< it ends at once and is erased
};

/// From template or kernel, or from the machine's own suspended memory.
enum class LaunchKind { start, resume };

/// Not on any disk: it holds the values of the environment.
struct Launch {
  LaunchKind kind = LaunchKind::start;
  TemplateShape shape = {};
  std::optional<Template> start_from = std::nullopt;  ///< nothing: cold boot
  std::filesystem::path machines = {};                ///< root of MachineFolders
  std::map<std::string, std::string> env = {};
  Ownership ownership = Ownership::independent;
  std::optional<ProcessIdentity> owner = std::nullopt;  ///< the client's process
};
std::string encode_launch(const Launch& launch);
/// Throws Error NOT_SUPPORTED for one of another version, INTERNAL for a damaged one: it comes from our own
/// client.
Launch decode_launch(std::string_view text);

/// The one report of a monitor about a start.
struct StartReport {
  bool started = false;
  ErrorCode code = ErrorCode::internal;
  std::string message = {};
  std::string hint = {};
  std::vector<std::string> causes = {};
  std::string console = {};   ///< last lines, for a failure
  bool template_bad = false;  ///< the template did not start a machine: build it anew
};
std::string encode_report(const StartReport& report);
/// Anything unreadable is a start that failed.
StartReport decode_report(std::string_view text);

}  // namespace holt::machine
