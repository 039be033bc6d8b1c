#include "cli/commands/commands.hpp"
#include "cli/errors.hpp"

#include <array>
#include <string>

#include <fmt/format.h>

namespace holt::cli {
namespace {

constexpr std::array<std::string_view, 10> k_later_verbs{
    "fork", "clone", "snapshot", "serve", "mcp", "rename", "port", "config", "agent chat", "agent tools"};

class LaterVerb : public Command {
 public:
  explicit LaterVerb(std::string_view name) : name_(name) {}
  CommandInfo info() const override {
    return {.name = name_,
            .group = Group::host,
            .summary = "Comes with a later version",
            .usage = "",
            .examples = {"holt help"},
            .tail = Tail::anything};
  }
  Outcome run(Session&) override { throw later_error(fmt::format("'holt {}'", name_)); }

 private:
  std::string_view name_;
};

}  // namespace

void add_later_verbs(Commands& commands) {
  for (auto name : k_later_verbs) commands.push_back(std::make_unique<LaterVerb>(name));
}

}  // namespace holt::cli
