// What somebody who looks for a fault on another host needs to see, without what is nobody's business.
//
//   auto texts = holt::machine_diagnostics(host);
//   texts.push_back({.name = "doctor.json", .text = report});
//   holt::write_bundle("holt-report.tar", texts);
//
// Depends on base/ only.
#pragma once

#include "holt/machine/host_config.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace holt {

/// One file of a bundle.
struct DiagnosticText {
  std::string name;  ///< relative, parts separated by '/': "machines/dev/status.json"
  std::string text;
};

/// Of each machine its record, status, events and the last 64 KiB of the logs of its monitor and of its
/// console. Values of environments and labels are left out; where a log repeats one that has at least four
/// characters,
/// "(redacted)" stands in its place. What else a guest wrote to its console is in there. Thread-safe.
std::vector<DiagnosticText> machine_diagnostics(const HostConfig& host);

/// Writes a tar, mode 0600. Throws Error CONFLICT when something is there already, STORAGE_ERROR,
/// STORAGE_FULL; then no file is left.
void write_bundle(const std::filesystem::path& file, const std::vector<DiagnosticText>& texts);

}  // namespace holt
