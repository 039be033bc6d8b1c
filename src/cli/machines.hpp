// Machines as the command line names and shows them.
#pragma once

#include "cli/session.hpp"
#include "holt/base/json.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace holt::cli {

/// The machine of a name, or of a beginning of at least four characters that only one machine has.
/// Throws Error NOT_FOUND (with a hint), CONFLICT for several.
Machine find_machine(Session& session, const std::string& name_or_prefix);

/// Names of all machines, by their folders: no machine is asked anything.
std::vector<std::string> machine_names(const Directories& directories);
/// NOT_FOUND, with a name that is near.
Error no_such_machine(Session& session, const std::string& name);

/// The machine object (docs/reference.md).
Json machine_json(const Machine& machine);

/// Does something with each name, in order, then prints the results. A failure does not keep the others from
/// their turn: each is shown on standard error, and the last one is thrown at the end. `print` is left out
/// when all failed, so that with --json standard output has one document, the results or the error. An
/// interrupt ends the series.
void for_each_name(Session& session, const std::vector<std::string>& names,
                   const std::function<void(const std::string&)>& action, const std::function<void()>& print);

/// Prints the name of a machine that a verb has succeeded on: bare, or as JSON at the end.
class Successes {
 public:
  explicit Successes(Session& session) : session_(&session) {}
  void add(const std::string& name);
  /// With --json: the array of names.
  void print();

 private:
  Session* session_;
  std::vector<std::string> names_;
};

}  // namespace holt::cli
