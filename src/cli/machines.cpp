#include "cli/machines.hpp"

#include "cli/errors.hpp"
#include "cli/near_names.hpp"
#include "holt/machine/names.hpp"
#include "machine/record.hpp"

#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace holt::cli {
namespace {

constexpr std::size_t k_shortest_prefix = 4;

std::vector<std::string> names_beginning_with(Session& session, const std::string& prefix) {
  std::vector<std::string> names;
  for (const auto& info : Machine::list_all(session.host())) {
    if (info.name.starts_with(prefix)) names.push_back(info.name);
  }
  return names;
}

/// The only one on standard output is the one that the program ends with.
void show_on_standard_error(Session& session, const Error& error) {
  if (!session.globals.json) return show_error(session.output, error, ErrorStyle::text);
  session.output.err(dump_json(error_json(error)) + "\n");
}

}  // namespace

std::vector<std::string> machine_names(const Directories& directories) {
  return machine::MachineFolders(directories).names();
}

Error no_such_machine(Session& session, const std::string& name) {
  auto meant = did_you_mean(name, machine_names(session.host().directories));
  return Error(ErrorCode::not_found, fmt::format("There is no machine '{}'", printable(name, 130)),
               {.subject = name, .hint = meant + "'holt ls -a' shows all; 'holt create NAME' makes one."});
}

Machine find_machine(Session& session, const std::string& name_or_prefix) {
  if (is_machine_name(name_or_prefix)) {
    try {
      return Machine::open(name_or_prefix, session.host());
    } catch (const Error& error) {
      if (error.code() != ErrorCode::not_found) throw;
    }
  } else if (!is_machine_name(name_or_prefix + "x")) {
    check_machine_name(name_or_prefix);
  }
  if (name_or_prefix.size() < k_shortest_prefix) throw no_such_machine(session, name_or_prefix);
  auto names = names_beginning_with(session, name_or_prefix);
  if (names.empty()) throw no_such_machine(session, name_or_prefix);
  if (names.size() > 1) {
    throw Error(ErrorCode::conflict, fmt::format("'{}' begins several machines", name_or_prefix),
                {.subject = name_or_prefix, .hint = fmt::format("Say which: {}.", fmt::join(names, ", "))});
  }
  return Machine::open(names.front(), session.host());
}

Json machine_json(const Machine& machine) {
  auto json = parse_json(machine.info_json());
  if (!json) throw Error(ErrorCode::internal, "A machine object is no JSON: " + json.error().text());
  return *json;
}

void for_each_name(Session& session, const std::vector<std::string>& names,
                   const std::function<void(const std::string&)>& action,
                   const std::function<void()>& print) {
  std::optional<Error> failure;
  std::size_t succeeded = 0;
  for (const auto& name : names) {
    try {
      action(name);
      succeeded++;
    } catch (const Error& error) {
      if (failure) show_on_standard_error(session, *failure);
      failure = error;
      if (error.code() == ErrorCode::cancelled) break;
    }
  }
  if (succeeded > 0 || !failure) print();
  if (failure) throw *failure;
}

void Successes::add(const std::string& name) {
  names_.push_back(name);
  if (!session_->globals.json) session_->output.line(name);
}

void Successes::print() {
  if (session_->globals.json) session_->output.json(Json(names_));
}

}  // namespace holt::cli
