// Runs the recorded cases of the coding tools: an agent with Coder on a folder of this host, with a model
// that makes the recorded calls.
#include "harness/golden_tree.hpp"
#include "holt/agent/agent.hpp"
#include "holt/agent/local_workspace.hpp"
#include "holt/base/encoding.hpp"
#include "holt/harness/coder.hpp"
#include "holt/models/test_model.hpp"
#include "support/fixtures.hpp"

#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace holt::test {
namespace {

namespace fs = std::filesystem;

/// Why a case is not one of this version's; nothing when it is.
std::optional<std::string> belongs_to_later(const Json& example) {
  std::string id = example["id"];
  for (const auto& call : example["calls"]) {
    if (call["tool"] == "delegate_task") return "delegate_task";
    if (call.contains("arguments") && call["arguments"].value("mode", "") == "background")
      return "background jobs";
  }
  if (id.starts_with("args-") && id != "args-empty-string") return "argument repair";
  std::string text = dump_json(example["calls"]);
  if (text.find("There is no tool") != std::string::npos) return "the list of tools holds delegate_task";
  return std::nullopt;
}

/// Names of a case that stand for what differs from run to run.
class Placeholders {
 public:
  explicit Placeholders(const fs::path& directory) : directory_(directory) {}

  /// Real values as placeholders. Job names count in order of appearance.
  std::string put(std::string text) {
    static const std::regex job("shell/([0-9a-f]{32})");
    for (std::sregex_iterator found(text.begin(), text.end(), job), end; found != end; ++found)
      name_job((*found)[1]);
    for (const auto& [name, placeholder] : jobs_) text = replace(text, name, placeholder);
    static const std::regex pid("(PID: |kill -- -|\"pid\": )[0-9]+");
    text = std::regex_replace(text, pid, "$1<PID>");
    text = replace(text, directory_.string(), "<WORKDIR>");
    return replace(text, directory_.parent_path().string(), "<PARENT>");
  }
  std::string fill(std::string text) const { return replace(text, "<WORKDIR>", directory_.string()); }

 private:
  static std::string replace(std::string text, const std::string& from, const std::string& to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
    return text;
  }
  void name_job(const std::string& name) {
    for (const auto& [known, placeholder] : jobs_) {
      if (known == name) return;
    }
    std::string number = jobs_.empty() ? "" : std::to_string(jobs_.size() + 1);
    jobs_.emplace_back(name, "<JOB" + number + ">");
  }
  fs::path directory_;
  std::vector<std::pair<std::string, std::string>> jobs_;
};

Json filled(const Json& value, const Placeholders& names) {
  if (value.is_string()) return names.fill(value.get<std::string>());
  if (!value.is_structured()) return value;
  Json out = value;
  for (auto& item : out) item = filled(item, names);
  return out;
}

/// The arguments of a call; long ones are recorded as "<echo zzz... 200005 chars>".
Json arguments_of(const Json& call, const Placeholders& names) {
  if (call.contains("arguments_text")) return call["arguments_text"];
  Json arguments = filled(call["arguments"], names);
  if (!call.value("arguments_abridged", false)) return arguments;
  for (auto& value : arguments) {
    std::smatch found;
    std::string text = value.is_string() ? value.get<std::string>() : "";
    if (!std::regex_match(text, found, std::regex("<(.*)(.)\\.\\.\\. ([0-9]+) chars>"))) continue;
    std::string start = found[1].str() + found[2].str();
    value = start + std::string(std::stoul(found[3]) - start.size(), found[2].str()[0]);
  }
  return arguments;
}

std::string call_id(std::size_t index) {
  return fmt::format("call-{}", index);
}

/// Makes the calls of each turn, then says "done".
ModelPtr scripted_model(const Json& calls, const Placeholders& names) {
  auto turn = std::make_shared<int>(0);
  return make_function_model([&calls, &names, turn](const MessageHistory&, const FunctionInfo&) {
    std::vector<ToolCallPart> parts;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (calls[i]["turn"] != *turn) continue;
      ToolCallPart part;
      part.tool_name = calls[i]["tool"];
      part.args = arguments_of(calls[i], names);
      part.tool_call_id = call_id(i);
      parts.push_back(std::move(part));
    }
    ++*turn;
    return parts.empty() ? text_response("done") : tool_call_response(std::move(parts));
  });
}

std::map<std::string, ToolReturnPart> results_in(const MessageHistory& history) {
  std::map<std::string, ToolReturnPart> results;
  for (const auto& message : history) {
    const auto* request = std::get_if<ModelRequest>(&message);
    if (request == nullptr) continue;
    for (const auto& part : request->parts) {
      if (const auto* result = std::get_if<ToolReturnPart>(&part)) results[result->tool_call_id] = *result;
    }
  }
  return results;
}

/// Content as the cases record it: files as media type, size and digest; names in place of real values.
Json recorded_content(const Json& content, Placeholders& names) {
  if (content.is_string()) return names.put(content.get<std::string>());
  if (!content.is_array()) return content;
  Json out = Json::array();
  for (const auto& item : content) {
    if (item.is_object() && item.value("kind", "") == "binary") {
      std::string bytes = base64_decode(item["data"].get<std::string>()).value_or("");
      out.push_back({{"kind", "binary"},
                     {"media_type", item["media_type"]},
                     {"bytes", bytes.size()},
                     {"sha256", sha256_hex(bytes)}});
    } else {
      out.push_back(item.is_string() ? Json(names.put(item.get<std::string>())) : item);
    }
  }
  return out;
}

Json recorded_result(const ToolReturnPart& part, Placeholders& names) {
  Json recorded =
      parse_json(dump_json(message_to_json_value(ModelRequest{.parts = {part}})["parts"][0])).value();
  Json result = {{"part_kind", recorded["part_kind"]}, {"outcome", recorded["outcome"]}};
  if (!recorded["tool_kind"].is_null()) result["tool_kind"] = recorded["tool_kind"];
  if (!recorded["retry"].is_null()) result["retry"] = recorded["retry"];
  result["content"] = recorded_content(recorded["content"], names);
  return result;
}

/// A difference in words, nothing when the result is as recorded.
std::optional<std::string> difference(const Json& expected, const Json& actual) {
  Json wanted = expected;
  Json found = actual;
  if (wanted.contains("content_digest")) {
    Json digest = wanted["content_digest"];
    wanted.erase("content_digest");
    std::string content = found["content"].is_string() ? found["content"].get<std::string>() : "";
    found.erase("content");
    if (sha256_hex(content) != digest["sha256"].get<std::string>()) {
      return fmt::format("digest of {} characters for {}: {} ... {}", utf8_length(content),
                         dump_json(digest["chars"]), content.substr(0, 100),
                         content.substr(content.size() - std::min<std::size_t>(400, content.size())));
    }
  }
  if (json_equal(wanted, found)) return std::nullopt;
  return "wanted " + dump_json(wanted) + "\n   found " + dump_json(found);
}

/// A PATH without some programs, or with ripgrep in front that marks its error lines as version 14 does.
std::string special_path(const Json& config, const fs::path& directory) {
  fs::create_directories(directory);
  std::string path = std::getenv("PATH");
  for (const auto& folder : std::vector<std::string>{"/usr/bin", "/bin", "/usr/local/bin"}) {
    std::error_code ignored;
    for (const auto& program : fs::directory_iterator(folder, ignored)) {
      fs::path link = directory / program.path().filename();
      if (!fs::exists(fs::symlink_status(link))) fs::create_symlink(program.path(), link, ignored);
    }
  }
  for (const auto& name : config.value("path_lacks", Json::array()))
    fs::remove(directory / name.get<std::string>());
  if (config.value("rg_error_prefix", false)) {
    fs::path real = fs::read_symlink(directory / "rg");
    fs::remove(directory / "rg");
    std::ofstream(directory / "rg") << "#!/bin/sh\nexec 3>&1\n{ " << real.string()
                                    << " \"$@\" 2>&1 >&3; echo $? > \"$0.$$\"; } | sed 's/^/rg: /' >&2\n"
                                       "read -r code < \"$0.$$\"; rm -f \"$0.$$\"; exit \"$code\"\n";
    fs::permissions(directory / "rg", fs::perms::owner_all | fs::perms::others_exec | fs::perms::others_read);
  }
  return directory.string();
}

struct Outcome {
  MessageHistory messages;
  std::optional<std::string> error;
};

Outcome run_case(const Json& example, const fs::path& directory, const fs::path& programs,
                 const Placeholders& names) {
  Json config = example.value("config", Json::object());
  LocalWorkspaceSettings settings;
  settings.read_only = config.value("read_only", false);
  for (const auto& [name, value] : config.value("env", Json::object()).items()) settings.env[name] = value;
  if (config.contains("path_lacks") || config.contains("rg_error_prefix")) {
    settings.env["PATH"] = special_path(config, programs);
  }
  Agent agent(scripted_model(example["calls"], names),
              {.capabilities = {LocalWorkspace(directory.string(), settings), Coder()}});
  Outcome outcome;
  RunOptions options;
  options.on_end = [&](const RunRecord& record) { outcome.messages = record.all_messages(); };
  try {
    agent.run_sync("GO", options);
  } catch (const std::exception& error) {
    outcome.error = error.what();
  }
  return outcome;
}

/// Everything in which a run differs from its recording.
std::vector<std::string> differences(const Json& example, const Json& trees) {
  TempDir home(fs::temp_directory_path(), "holt-golden-");
  fs::path directory = fs::canonical(home.path()) / "beside" / "work";
  fs::create_directories(directory);
  make_tree(trees[example["tree"].get<std::string>()], directory);
  Snapshot before = snapshot(directory);
  Placeholders names(directory);
  Outcome outcome = run_case(example, directory, home.path() / "bin", names);
  Snapshot after = snapshot(directory);
  unlock_tree(home.path());

  std::vector<std::string> found;
  auto results = results_in(outcome.messages);
  for (std::size_t i = 0; i < example["calls"].size(); ++i) {
    const Json& expected = example["calls"][i]["result"];
    auto result = results.find(call_id(i));
    if (expected.is_null() || result == results.end()) {
      if (expected.is_null() != (result == results.end()))
        found.push_back(fmt::format("call {}: answered or not", i));
      continue;
    }
    if (auto text = difference(expected, recorded_result(result->second, names))) {
      found.push_back(fmt::format("call {}: {}", i, *text));
    }
  }
  std::string error = names.put(outcome.error.value_or(""));
  std::string expected_error =
      example.contains("aborted") ? example["aborted"]["message"].get<std::string>() : "";
  if (error != expected_error) found.push_back("error: '" + error + "', wanted '" + expected_error + "'");
  Json changes = changes_between(before, after);
  if (!json_equal(changes, example.value("changes", Json::object())))
    found.push_back("changes: " + dump_json(changes));
  return found;
}

TEST(Golden, RecordedCasesGiveTheRecordedAnswers) {
  ::setenv("LANG", "C.UTF-8", 1);
  ::setenv("LC_ALL", "C.UTF-8", 1);
  ::unsetenv("LC_CTYPE");
  fs::path folder = fixtures_directory() / "coder";
  Json trees = read_fixture(folder / "trees.json");
  std::ifstream cases(folder / "golden.jsonl");
  ASSERT_TRUE(cases) << "no recorded cases in " << folder;
  const char* only = std::getenv("HOLT_GOLDEN_CASE");
  Tally tally("golden cases of the coding tools");
  std::size_t skipped = 0;
  for (std::string line; std::getline(cases, line);) {
    Json example = parse_json(line).value();
    if (only != nullptr && example["id"] != only) continue;
    if (belongs_to_later(example)) {
      tally.later();
      continue;
    }
    if (example.value("needs", "") == "non-root" && ::geteuid() == 0) {
      ++skipped;
      continue;
    }
    std::vector<std::string> found = differences(example, trees);
    tally.count(found.empty());
    for (const auto& text : found) ADD_FAILURE() << example["id"].get<std::string>() << ": " << text;
  }
  if (skipped > 0) std::cout << skipped << " cases skipped: root passes every file permission\n";
}

}  // namespace
}  // namespace holt::test
