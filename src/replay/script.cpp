#include "replay/script.hpp"

#include "holt/base/error.hpp"
#include "holt/base/files.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

namespace holt {
namespace {

using Check = std::function<bool(const Json&)>;

bool is_text(const Json& value) {
  return value.is_string();
}

bool is_list_of_texts(const Json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), is_text);
}

bool is_count(const Json& value) {
  return value.is_number_integer() && value.get<std::int64_t>() >= 0;
}

bool is_list_of_calls(const Json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& call) {
           return call.is_object() && call.contains("name") && call["name"].is_string() &&
                  call.value("arguments", Json::object()).is_object() &&
                  call.value("id", Json("")).is_string();
         });
}

bool is_rising_list(const Json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), is_count) &&
         std::is_sorted(value.begin(), value.end());
}

bool is_status(const Json& value) {
  return value.is_number_integer() && value.get<std::int64_t>() >= 200 && value.get<std::int64_t>() <= 599;
}

bool is_map_of_texts(const Json& value) {
  return value.is_object() && std::all_of(value.begin(), value.end(), is_text);
}

const std::map<std::string, Check>& expect_keys() {
  static const std::map<std::string, Check> keys{
      {"path", is_text},
      {"model", is_text},
      {"stream", [](const Json& value) { return value.is_boolean(); }},
      {"user", is_text},
      {"results", is_list_of_texts},
      {"tools", is_list_of_texts},
  };
  return keys;
}

const std::map<std::string, Check>& reply_keys() {
  static const std::map<std::string, Check> keys{
      {"text", is_text},
      {"tool_calls", is_list_of_calls},
      {"finish", is_text},
      {"usage", [](const Json& value) { return value.is_object(); }},
      {"status", is_status},
      {"headers", is_map_of_texts},
      {"body", [](const Json&) { return true; }},
      {"chunks", is_rising_list},
      {"delay_ms", [](const Json& value) { return is_count(value) && value.get<std::int64_t>() <= 600'000; }},
      {"cut", [](const Json& value) { return value.is_boolean() || is_count(value); }},
  };
  return keys;
}

[[noreturn]] void refuse(std::size_t line, const std::string& why) {
  throw Error(ErrorCode::invalid_config, fmt::format("The replay script, line {}: {}", line, why));
}

void check_keys(std::size_t line, const char* name, const Json& object,
                const std::map<std::string, Check>& keys) {
  if (!object.is_object()) refuse(line, fmt::format("`{}` is no object", name));
  for (const auto& [key, value] : object.items()) {
    auto it = keys.find(key);
    if (it == keys.end()) refuse(line, fmt::format("`{}` has no key `{}`", name, printable(key, 100)));
    if (!it->second(value)) refuse(line, fmt::format("`{}.{}` has a value of the wrong kind", name, key));
  }
}

ReplayEntry read_entry(std::size_t line, std::string_view text) {
  auto value = parse_json(text);
  if (!value) refuse(line, "Not JSON: " + value.error().text());
  if (!value->is_object()) refuse(line, "no object");
  for (const auto& [key, child] : value->items()) {
    if (key != "expect" && key != "reply") refuse(line, fmt::format("unknown key `{}`", printable(key, 100)));
  }
  if (!value->contains("reply")) refuse(line, "no `reply`");
  ReplayEntry entry{
      .line = line, .expect = value->value("expect", Json::object()), .reply = (*value)["reply"]};
  check_keys(line, "expect", entry.expect, expect_keys());
  check_keys(line, "reply", entry.reply, reply_keys());
  return entry;
}

}  // namespace

ReplayScript ReplayScript::parse(std::string_view text) {
  ReplayScript script;
  std::size_t line = 0;
  while (!text.empty()) {
    ++line;
    auto end = text.find('\n');
    auto one = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    script.entries.push_back(read_entry(line, one));
  }
  return script;
}

ReplayScript ReplayScript::load(const std::filesystem::path& path) {
  constexpr std::size_t k_limit = std::size_t{64} << 20;
  return parse(read_file(path, k_limit));
}

}  // namespace holt

namespace holt::replay {
namespace {

std::string in_quotes(std::string_view text) {
  return "'" + printable(text, 200) + "'";
}

std::optional<std::string> results_mismatch(const Json& wanted, const std::vector<std::string>& results) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    auto text = wanted[i].get<std::string>();
    if (i >= results.size()) {
      return fmt::format("tool result {} should hold {}, but there are only {} new results", i + 1,
                         in_quotes(text), results.size());
    }
    if (results[i].find(text) == std::string::npos) {
      return fmt::format("tool result {} should hold {}, but is {}", i + 1, in_quotes(text),
                         in_quotes(results[i]));
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> mismatch(const Json& expect, const Request& request) {
  auto differs = [&](const char* key, const std::string& actual) -> std::optional<std::string> {
    auto wanted = expect.value(key, actual);
    if (wanted == actual) return std::nullopt;
    return fmt::format("{} should be {}, but is {}", key, in_quotes(wanted), in_quotes(actual));
  };
  if (auto found = differs("path", request.path)) return found;
  if (auto found = differs("model", request.model)) return found;
  if (expect.value("stream", request.stream) != request.stream) {
    return fmt::format("stream should be {}", !request.stream);
  }
  auto user = expect.value("user", std::string());
  if (request.last_user.find(user) == std::string::npos) {
    return fmt::format("the last user message should hold {}, but is {}", in_quotes(user),
                       in_quotes(request.last_user));
  }
  if (auto found = results_mismatch(expect.value("results", Json::array()), request.new_results))
    return found;
  for (const auto& tool : expect.value("tools", Json::array())) {
    auto name = tool.get<std::string>();
    if (std::find(request.tools.begin(), request.tools.end(), name) == request.tools.end()) {
      return fmt::format("the tool {} should be on offer", in_quotes(name));
    }
  }
  return std::nullopt;
}

Player::Player(ReplayScript script) : script_(std::move(script)), used_(script_.entries.size(), false) {}

const ReplayEntry& Player::take(const Request& request) {
  auto& next = next_of_[request.first_user];
  std::optional<std::string> first_reason;
  for (auto i = next; i < script_.entries.size(); ++i) {
    if (used_[i]) continue;
    auto reason = mismatch(script_.entries[i].expect, request);
    if (!reason) {
      used_[i] = true;
      ++used_count_;
      next = i + 1;
      return script_.entries[i];
    }
    if (!first_reason) first_reason = fmt::format("line {}: {}", script_.entries[i].line, *reason);
  }
  throw Misfit(first_reason ? *first_reason : "the script has no entry left for this conversation");
}

std::vector<std::size_t> Player::unused_lines() const {
  std::vector<std::size_t> lines;
  for (std::size_t i = 0; i < used_.size(); ++i) {
    if (!used_[i]) lines.push_back(script_.entries[i].line);
  }
  return lines;
}

}  // namespace holt::replay
