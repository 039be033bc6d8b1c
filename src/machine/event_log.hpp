// What happened to a machine: a bounded file of JSON lines in its folder, which outlives every life of it.
//
//   EventLog(folder.event_log()).append({.kind = "started", .message = "Restored from its template"});
//
// Written by the monitor and by the calls that act without one; a line is one write, so they do not mix. What
// cannot be written (a full disk) is left out: no machine fails for its diary.
#pragma once

#include "holt/machine/types.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace holt::machine {

/// Written before a monitor is killed: those who wait for it learn from it why it has gone.
inline constexpr std::string_view k_removing_event = "removing";
inline constexpr std::string_view k_killed_event = "killed";

/// A value; opens the file for each call.
class EventLog {
 public:
  explicit EventLog(std::filesystem::path file) : file_(std::move(file)) {}

  /// Adds an event; its time is now unless it has one.
  void append(MachineEvent event) const noexcept;
  /// All that is kept, oldest first; lines that are no event are left out.
  std::vector<MachineEvent> read() const;

 private:
  std::filesystem::path older() const;

  std::filesystem::path file_;
};

std::string encode_event(const MachineEvent& event);
std::optional<MachineEvent> decode_event(std::string_view line);

}  // namespace holt::machine
