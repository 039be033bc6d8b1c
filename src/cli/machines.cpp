#include "cli/machines.hpp"

#include "cli/errors.hpp"
#include "holt/machine/names.hpp"

#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace holt::cli {
namespace {

constexpr std::size_t k_shortest_prefix = 4;

Error no_such_machine(const std::string& name) {
  return Error(ErrorCode::not_found, fmt::format("There is no machine '{}'", printable(name, 130)),
               {.subject = name, .hint = "'holt ls -a' shows all; 'holt create NAME' makes one."});
}

std::vector<std::string> names_beginning_with(Session& session, const std::string& prefix) {
  std::vector<std::string> names;
  for (const auto& info : Machine::list_all(session.host())) {
    if (info.name.starts_with(prefix)) names.push_back(info.name);
  }
  return names;
}

}  // namespace

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
  if (name_or_prefix.size() < k_shortest_prefix) throw no_such_machine(name_or_prefix);
  auto names = names_beginning_with(session, name_or_prefix);
  if (names.empty()) throw no_such_machine(name_or_prefix);
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
                   const std::function<void(const std::string&)>& action) {
  std::optional<Error> failure;
  for (const auto& name : names) {
    try {
      action(name);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;
      if (failure)
        show_error(session.output, *failure, session.globals.json ? ErrorStyle::json : ErrorStyle::text);
      failure = error;
    }
  }
  if (failure) throw *failure;
}

void Successes::add(const std::string& name) {
  names_.push_back(name);
  if (!session_->globals.json) session_->output.line(name);
}

void Successes::finish() {
  if (session_->globals.json) session_->output.json(Json(names_));
}

}  // namespace holt::cli
