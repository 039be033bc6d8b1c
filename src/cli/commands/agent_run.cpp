#include "cli/agent_progress.hpp"
#include "cli/commands/commands.hpp"
#include "cli/errors.hpp"
#include "cli/machines.hpp"
#include "cli/output_file.hpp"
#include "cli/stdin_reader.hpp"
#include "holt/agent/agent.hpp"
#include "holt/base/files.hpp"
#include "holt/harness/coder.hpp"
#include "holt/harness/smol_sandbox.hpp"
#include "holt/workspace/errors.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>

namespace holt::cli {
namespace {

constexpr std::size_t k_longest_prompt = std::size_t{4} << 20;
constexpr std::size_t k_longest_history = std::size_t{256} << 20;
constexpr std::string_view k_default_model = "anthropic:claude-opus-5-5";
// After an interrupt: the machine's job is asked to end, then killed; messages are saved; a machine goes.
constexpr auto k_patience = std::chrono::seconds(15);
constexpr std::string_view k_own_prefix = "pydantic-ai-";

/// True for the names that SmolSandbox gives its machines; only these are taken from a history.
bool is_sandbox_id(const std::string& name) {
  return name.starts_with(k_own_prefix) && name.size() == k_own_prefix.size() + 32 &&
         name.find_first_not_of("0123456789abcdef", k_own_prefix.size()) == std::string::npos;
}

/// 124 for a budget that ran out, 125 where the engine failed, else 1.
int code_of(const Error& error) {
  if (dynamic_cast<const RunTimedOut*>(&error) != nullptr) return k_exit_timeout;
  if (dynamic_cast<const UsageLimitExceeded*>(&error) != nullptr) return k_exit_timeout;
  // Before the codes: a model that its provider does not have is NOT_FOUND as a machine is.
  if (dynamic_cast<const AgentRunError*>(&error) != nullptr) return k_exit_failed;
  if (dynamic_cast<const WorkspaceUnavailableError*>(&error) != nullptr) return k_exit_engine;
  switch (error.code()) {
    case ErrorCode::kvm_unavailable:
    case ErrorCode::hypervisor_unavailable:
    case ErrorCode::unsupported_platform:
    case ErrorCode::runtime_not_installed:
    case ErrorCode::guest_lost:
    case ErrorCode::guest_protocol:
    case ErrorCode::outcome_unknown:
    case ErrorCode::storage_full:
    case ErrorCode::not_found:
    case ErrorCode::image_invalid:
      return k_exit_engine;
    default:
      return k_exit_failed;
  }
}

/// What is known once the model's part is over.
struct Ending {
  std::set<std::string> known = {};  ///< ids of machines that somebody else names
  std::optional<RunRecord> record = std::nullopt;
  std::optional<Error> save_failure = std::nullopt;
};

Json usage_json(const RunUsage& usage) {
  return {{"requests", usage.requests},
          {"toolCalls", usage.tool_calls},
          {"inputTokens", usage.input_tokens},
          {"outputTokens", usage.output_tokens}};
}

Json workspace_json(const RunRecord& record) {
  auto ref = record.workspace().ref();
  if (!ref) return nullptr;
  return {{"provider", ref->provider}, {"id", ref->id}};
}

class AgentRunCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "agent run",
            .group = Group::agents,
            .summary = "Let a model work in a machine until it has an answer",
            .usage = "[flags] PROMPT|-",
            .examples = {
                "holt agent run --save h.json 'Write a script that prints the first 10 primes, and run it.'",
                "holt agent run --history h.json --save h.json 'Now make it print the first 100.'",
                "git diff | holt agent run --workspace dev --max-requests 20 --timeout 10m -"}};
  }

  void declare(Options& options) override {
    options.argument("PROMPT", prompt_, "What to do; - reads it from standard input");
    options.text("--model", "MODEL", model_,
                 fmt::format("Model, PROVIDER:NAME (default {})", k_default_model));
    options.text("--image", "IMAGE", image_, "Image of a new machine (default: the default image)");
    options.text("--workspace", "ID|NAME|new", workspace_,
                 "Machine to work in (default: the history's, else a new one)");
    options.text("--history", "FILE", history_, "Go on with the messages of this file");
    options.text("--save", "FILE", save_, "Write all messages there, also after a failure");
    options.flag("--events", events_, "Print each event as one line of JSON, the result last");
    options.number("--max-requests", "N", max_requests_,
                   "Requests to the model (default 50); more end with 124");
    options.duration("--timeout", timeout_, "End the run after so long (exit code 124)");
    options.later_flag("--allow-internet-access", "a network in the machine");
    options.later_value("--tools", "choosing tools");
    options.later_value("--max-tokens", "a budget of tokens");
    options.later_value("-f,--file", "a Holtfile");
  }

  Outcome run(Session& session) override {
    if (events_ && session.globals.json) throw usage_error("--events and --json exclude each other");
    auto prompt = read_prompt(session);
    auto history = read_history();
    if (save_) check_output_file("--save", *save_);  // before the model is paid for
    if (auto verdict = cached_accelerator(session.host())) session.warn_of(verdict->accelerator);
    session.interrupts.set_patience(k_patience);
    Ending ending;
    try {
      work(session, prompt, std::move(history), ending);
    } catch (const Error& error) {
      wind_up(session, ending);
      throw CodedError(error, code_of(error));
    } catch (...) {  // standard output's reader has gone, or a fault
      wind_up(session, ending);
      throw;
    }
    if (ending.save_failure) throw CodedError(*ending.save_failure, k_exit_failed);
    return ToolExit{};
  }

 private:
  void work(Session& session, const std::string& prompt, MessageHistory history, Ending& ending) const {
    AgentProgress progress(session);
    auto options = run_options(session, progress, std::move(history));
    ending.known = named_workspaces(options);
    options.on_end = [this, &ending](const RunRecord& record) {
      ending.record = record;
      ending.save_failure = save(record);
    };
    Agent agent(model_.value_or(std::string(k_default_model)), {.capabilities = {sandbox(session), Coder()}});
    auto result = agent.run_sync(prompt, std::move(options));
    session.output.clear_progress();
    print(session, result);
  }

  /// Writes the messages. A failure is returned: neither the answer nor the run's own error gives way to it.
  std::optional<Error> save(const RunRecord& record) const {
    if (!save_ || record.all_messages().empty()) return std::nullopt;
    auto failure = [this](ErrorCode code, const char* reason) {
      return Error(code, fmt::format("--save {}: {}", printable(*save_, 200), reason));
    };
    try {
      auto text = record.all_messages_json() + "\n";
      if (auto special = open_special_file(*save_)) {
        write_all(special->get(), text);
      } else {
        write_file_atomically(*save_, text);
      }
      return std::nullopt;
    } catch (const Error& error) {
      return failure(error.code(), error.what());
    } catch (const std::exception& error) {
      return failure(ErrorCode::internal, error.what());
    }
  }

  std::string read_prompt(Session& session) const {
    if (prompt_ != "-") {
      if (prompt_.empty()) throw usage_error("the prompt is empty");
      return prompt_;
    }
    auto text = read_all_input(session.interrupts, k_longest_prompt);
    if (text.empty()) throw usage_error("there is no prompt on standard input");
    if (text.size() > k_longest_prompt) throw usage_error("the prompt is longer than 4 MiB");
    return text;
  }

  MessageHistory read_history() const {
    if (!history_) return {};
    try {
      return messages_from_json(read_file(*history_, k_longest_history));
    } catch (const Error& error) {
      throw file_error(
          fmt::format("--history {}", printable(*history_, 200)), error,
          "It must be a file that 'holt agent run --save' has written, or a history of Pydantic AI.");
    }
  }

  SmolSandboxOptions sandbox_options(Session& session) const {
    return {.image = image_, .host = session.host(), .on_progress = session.start_options().on_progress};
  }
  SmolSandbox sandbox(Session& session) const { return SmolSandbox(sandbox_options(session)); }

  WorkspaceChoice workspace_choice(Session& session) const {
    if (!workspace_) return {};
    if (*workspace_ == "new") return new_workspace;
    if (is_sandbox_id(*workspace_)) return WorkspaceRef{.provider = "smol", .id = *workspace_};
    // A machine that the user names may be any; only histories are held to the sandbox's own names.
    SmolSandboxBackendOptions options;
    static_cast<SmolSandboxOptions&>(options) = sandbox_options(session);
    options.ref = WorkspaceRef{.provider = "smol", .id = find_machine(session, *workspace_).name()};
    return std::make_shared<SmolSandboxBackend>(std::move(options));
  }

  RunOptions run_options(Session& session, AgentProgress& progress, MessageHistory history) const {
    RunOptions options;
    options.message_history = std::move(history);
    options.workspace = workspace_choice(session);
    options.cancellation_token = session.interrupts.token();
    if (max_requests_) options.usage_limits.request_limit = *max_requests_;
    if (timeout_) options.timeout = std::chrono::duration<double>(*timeout_);
    options.event_stream_handler = [&session, &progress, this](const RunContext&, const AgentEvent& event) {
      if (events_) {
        session.output.json(event_to_json(event));
      } else {
        progress.show(event);
      }
    };
    return options;
  }

  /// Ids of machines that somebody knows of: those of the history, and the one that was named.
  std::set<std::string> named_workspaces(const RunOptions& options) const {
    std::set<std::string> ids;
    if (workspace_) ids.insert(*workspace_);
    for (const auto& message : options.message_history) {
      const auto* response = std::get_if<ModelResponse>(&message);
      if (response != nullptr && response->workspace_ref) ids.insert(response->workspace_ref->id);
    }
    return ids;
  }

  /// After a failure: what else went wrong, and what stays.
  void wind_up(Session& session, const Ending& ending) const {
    session.output.clear_progress();
    if (ending.record) leave_behind(session, *ending.record, ending.known);
    if (ending.save_failure) session.output.note(printable(ending.save_failure->what()));
  }

  /// A machine made for this run in which the model has not done anything goes, since no
  /// history names it; another one is named, so that the user can look into it.
  void leave_behind(Session& session, const RunRecord& record, const std::set<std::string>& known) const {
    auto ref = record.workspace().ref();
    if (!ref || !is_sandbox_id(ref->id)) return;
    bool unused =
        !known.contains(ref->id) && std::ranges::none_of(record.new_messages(), [](const auto& message) {
          return std::holds_alternative<ModelResponse>(message);
        });
    if (!unused) return session.note(fmt::format("workspace {} is kept", ref->id));
    session.note(fmt::format("removing workspace {}, in which nothing was done", ref->id));
    try {
      sandbox(session).destroy(*ref);
    } catch (const std::exception& error) {
      session.note(fmt::format("workspace {} is kept: {}", ref->id, error.what()));
    }
  }

  void print(Session& session, const RunResult<>& result) const {
    if (events_) {
      session.output.json({{"event_kind", "agent_run_result"},
                           {"output", result.output()},
                           {"usage", usage_json(result.usage())},
                           {"workspace", workspace_json(result)}});
    } else if (session.globals.json) {
      session.output.json({{"output", result.output()},
                           {"usage", usage_json(result.usage())},
                           {"workspace", workspace_json(result)},
                           {"messages", messages_to_json_value(result.all_messages())}});
    } else {
      session.output.line(result.output());
      if (auto ref = result.workspace().ref()) session.note(fmt::format("workspace {}", ref->id));
    }
  }

  std::string prompt_;
  std::optional<std::string> model_;
  std::optional<std::string> image_;
  std::optional<std::string> workspace_;
  std::optional<std::string> history_;
  std::optional<std::string> save_;
  bool events_ = false;
  std::optional<unsigned> max_requests_;
  std::optional<Duration> timeout_;
};

}  // namespace

std::unique_ptr<Command> make_agent_run() {
  return std::make_unique<AgentRunCommand>();
}

}  // namespace holt::cli
