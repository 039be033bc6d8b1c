#include "holt/harness/coder.hpp"

#include "harness/text.hpp"
#include "harness/wording.hpp"
#include "holt/agent/run_context.hpp"
#include "holt/base/encoding.hpp"
#include "holt/harness/file_system.hpp"
#include "holt/harness/repo_context.hpp"
#include "holt/harness/shell.hpp"
#include "holt/workspace/wrappers.hpp"

#include <variant>

#include <fmt/format.h>

namespace holt {
namespace {

constexpr std::size_t k_max_result_chars = 64000;

constexpr const char* k_guidance =
    "You are a software engineer with a workspace of your own: a file system and a shell. Carry the task "
    "through yourself until it is done.\n"
    "- Look before you change anything: read the files that matter and follow the conventions and the rules "
    "that the repository states.\n"
    "- Keep every change focused. Mend the cause of a fault, not its symptom. Write code that is simple, "
    "explicit and free of repetition, and build nothing that nobody asked for.\n"
    "- Ask only for what you cannot find out: missing requirements, credentials, a real ambiguity, or leave "
    "for "
    "a step that cannot be undone.\n"
    "- Run the tests and checks that concern your change, and report only what you have really seen.\n"
    "- Leave behind the change and nothing else. Try things out with inline scripts instead of new files, "
    "add "
    "tests only where the project has tests, and delete what you made for your own use.\n"
    "- When something has to finish before you can answer, look at it until it has. A server may stay up "
    "once "
    "you have seen it work.";

/// What the file tools accept, in words.
std::string project_sentence(const std::string& directory, CoderOptions::Files files) {
  if (files == CoderOptions::Files::unrestricted) {
    return fmt::format(
        "The project is the working directory `{}`: commands start there, and relative paths of the file "
        "tools start there.",
        directory);
  }
  return fmt::format(
      "The project is the working directory `{}`: commands start there, and the file tools accept only paths "
      "inside it.",
      directory);
}

/// The ref of the newest response in a history.
std::optional<WorkspaceRef> last_ref(const MessageHistory& messages) {
  for (auto message = messages.rbegin(); message != messages.rend(); ++message) {
    if (const auto* response = std::get_if<ModelResponse>(&*message)) return response->workspace_ref;
  }
  return std::nullopt;
}

[[noreturn]] void throw_no_workspace(const RunContext& context) {
  std::string text =
      "Coder needs a workspace, and this run has none. Give the agent a capability that supplies one, such "
      "as "
      "SmolSandbox() or LocalWorkspace(\".\"), or pass `workspace` to the run.";
  if (auto ref = last_ref(context.messages())) {
    text += fmt::format(" The history's workspace was {}:{}.", ref->provider, ref->id);
  }
  throw UserError(text);
}

bool holds_media(const Json& value) {
  if (!value.is_array()) return false;
  for (const auto& item : value) {
    if (item.is_object() && item.contains("kind")) return true;
  }
  return false;
}

/// The first 2/5 and the last 3/5 of what fits beside the mark between them.
std::string cut_in_the_middle(const std::string& text, std::size_t total) {
  std::size_t kept = k_max_result_chars;
  for (;;) {
    std::size_t head = kept * 2 / 5;
    std::size_t tail = kept - head;
    std::string mark = "\n\n" +
                       wording::tool_output_cut(with_commas(total - kept), with_commas(total),
                                                with_commas(head), with_commas(tail)) +
                       "\n\n";
    if (kept + mark.size() <= k_max_result_chars) {
      return std::string(first_characters(text, head)) + mark + std::string(last_characters(text, tail));
    }
    kept = k_max_result_chars - mark.size();
  }
}

}  // namespace

Instructions Coder::instructions() const {
  std::string guidance = k_guidance;
  if (!options_.instructions.empty()) guidance += "\n" + options_.instructions;
  return Instructions(Instruction(std::move(guidance)));
}

SettingsSource Coder::model_settings() const {
  if (options_.caching == CoderOptions::Caching::off) return {};
  return SettingsSource([](const RunContext& context) {
    Json settings = Json::object();
    if (!context.model_settings().contains("cache")) settings["cache"] = true;
    return settings;
  });
}

namespace {

/// Names the project, behind what the repository says of itself.
class ProjectSentence : public CapabilityBase {
 public:
  explicit ProjectSentence(CoderOptions::Files files) : files_(files) {}
  std::string id() const override { return "coder_project"; }
  Instructions instructions() const override {
    return Instructions(Instruction(
        [files = files_](const RunContext& context) { return text(context.workspace(), files); }));
  }

 private:
  static Task<std::optional<std::string>> text(Workspace workspace, CoderOptions::Files files) {
    co_return project_sentence(co_await workspace.working_dir(), files);
  }
  CoderOptions::Files files_;
};

}  // namespace

std::vector<Capability> Coder::parts() const {
  FileSystemOptions files;
  if (options_.files == CoderOptions::Files::unrestricted) {
    files.root_dir = "/";
    files.read_only_patterns = std::vector<std::string>();
  }
  std::vector<Capability> parts{FileSystem(files), Shell()};
  if (options_.repo_context == CoderOptions::RepositoryContext::read) {
    parts.push_back(RepoContext());
    parts.push_back(ProjectSentence(options_.files));
  }
  return parts;
}

Task<void> Coder::before_run(RunContext& context) const {
  const Workspace& workspace = context.workspace();
  if (workspace.attached()) co_return;
  if (workspace.is_placeholder()) throw_no_workspace(context);
  auto unavailable = std::dynamic_pointer_cast<UnavailableWorkspace>(workspace.backend());
  throw UserError("Coder needs a workspace: " + unavailable->reason());
}

Task<ToolValue> Coder::after_tool_execute(RunContext&, ToolCallInfo, ToolValue result) const {
  auto* answer = std::get_if<ToolReturn>(&result);
  if (answer == nullptr || holds_media(answer->return_value)) co_return result;
  const Json& value = answer->return_value;
  std::string text = value.is_string() ? value.get<std::string>() : dump_json(value);
  std::size_t total = utf8_length(text);
  if (total >= k_max_result_chars) answer->return_value = cut_in_the_middle(text, total);
  co_return result;
}

}  // namespace holt
