#include "agent/workspace_selection.hpp"

#include "holt/base/error.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace holt::detail {
namespace {

/// Only the last response counts: a history whose last run had no workspace has none.
std::optional<WorkspaceRef> ref_of_history(const MessageHistory& history) {
  for (auto message = history.rbegin(); message != history.rend(); ++message)
    if (const auto* response = std::get_if<ModelResponse>(&*message)) return response->workspace_ref;
  return std::nullopt;
}

std::string text_of(const WorkspaceRef& ref) {
  return printable(fmt::format("{}:{}", ref.provider, ref.id), 256);
}

class Selection {
 public:
  Selection(const RunPtr& run, const std::vector<Capability>& of_run, const std::vector<Capability>& of_agent)
      : run_(run) {
    for (const auto* list : {&of_run, &of_agent})
      for (const auto& capability : *list)
        if (capability->supplies_workspace()) suppliers_.push_back(capability);
  }

  void select() {
    const auto& choice = run_->options.workspace.value();
    if (const auto* given = std::get_if<Workspace>(&choice); given && !given->is_placeholder()) {
      run_->workspace = *given;
    } else if (const auto* ref = std::get_if<WorkspaceRef>(&choice)) {
      select_explicit(*ref);
    } else if (std::holds_alternative<NewWorkspace>(choice)) {
      select_new();
    } else {
      select_from_history();
    }
  }

 private:
  /// The first answer for the ref (none: a fresh environment); nothing when nobody answers.
  std::optional<Workspace> ask(const std::optional<WorkspaceRef>& ref) const {
    const RunContext context = context_of(run_);
    for (const auto& capability : suppliers_) {
      WorkspaceBackendPtr backend = capability->get_workspace(context, ref);
      if (!backend) continue;
      if (ref && backend->ref() != ref)
        throw UserError(fmt::format("Asked for the workspace {}, a capability answered with {}",
                                    text_of(*ref),
                                    backend->ref() ? text_of(*backend->ref()) : "one without a ref"));
      return Workspace(std::move(backend));
    }
    return std::nullopt;
  }

  void select_explicit(const WorkspaceRef& ref) {
    auto workspace = ask(ref);
    if (workspace) {
      run_->workspace = *workspace;
      return;
    }
    if (suppliers_.empty())
      throw UserError(
          fmt::format("The run was given the workspace {}, and neither the agent nor the run has a "
                      "capability that supplies workspaces. Add the one that made it.",
                      text_of(ref)));
    throw UserError(
        fmt::format("No capability of the agent or the run recognises the workspace {}. Add the one "
                    "that made it, or pass a backend.",
                    text_of(ref)));
  }

  void select_new() {
    auto workspace = ask(std::nullopt);
    if (!workspace)
      throw UserError(
          "A new workspace was asked for, and no capability of the agent or the run can make one");
    run_->workspace = *workspace;
  }

  void select_from_history() {
    const auto ref = ref_of_history(run_->messages);
    if (auto workspace = ask(ref)) {
      run_->workspace = *workspace;
      return;
    }
    if (!ref) return;
    if (!suppliers_.empty())
      throw UserError(
          fmt::format("The history names the workspace {}, and no capability of the agent or the "
                      "run recognises it. Add the one that made it, pass a backend as `workspace`, "
                      "or ask for a new workspace.",
                      text_of(*ref)));
    run_->carried_ref = ref;
  }

  const RunPtr& run_;
  std::vector<Capability> suppliers_;
};

}  // namespace

void select_workspace(const RunPtr& run, const std::vector<Capability>& of_run,
                      const std::vector<Capability>& of_agent) {
  Selection(run, of_run, of_agent).select();
}

}  // namespace holt::detail
