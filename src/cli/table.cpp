#include "cli/table.hpp"

#include "cli/errors.hpp"
#include "holt/base/encoding.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace holt::cli {
namespace {

constexpr std::size_t k_gap = 3;
constexpr std::string_view k_open_map = "labels";

std::string format_row(const Row& row, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) {
    line += row[i];
    if (i + 1 < row.size()) line.append(widths[i] - utf8_length(row[i]) + k_gap, ' ');
  }
  while (line.ends_with(' ')) line.pop_back();
  return line + "\n";
}

Error unknown_key(const Json& object, const std::string& parent, const std::string& key) {
  std::vector<std::string> keys;
  if (object.is_object())
    for (const auto& [name, value] : object.items()) keys.push_back(name);
  auto whose = parent.empty() ? "there is no key" : fmt::format("'{}' has no key", parent);
  return usage_error(fmt::format("--format: {} '{}'", whose, printable(key, 60)),
                     keys.empty() ? "" : fmt::format("Keys: {}.", fmt::join(keys, ", ")));
}

std::string value_at(const Json& object, std::string_view path, UnknownKey unknown) {
  const Json* value = &object;
  std::string parent;
  while (!path.empty() && !value->is_null()) {
    bool open = parent == k_open_map;
    auto dot = open ? path.size() : std::min(path.find('.'), path.size());
    auto key = std::string(path.substr(0, dot));
    if (!value->is_object() || !value->contains(key)) {
      if (open || unknown == UnknownKey::empty) return {};
      throw unknown_key(*value, parent, key);
    }
    value = &(*value)[key];
    parent = key;
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  if (value->is_null()) return {};
  return value->is_string() ? value->get<std::string>() : dump_json(*value);
}

std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    bool escape = text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == 'n' || text[i + 1] == 't');
    out += escape ? (text[i + 1] == 'n' ? '\n' : '\t') : text[i];
    if (escape) ++i;
  }
  return out;
}

std::string_view trim(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

std::string format_table(const Row& header, const std::vector<Row>& rows) {
  std::vector<Row> lines{header};
  for (const auto& row : rows) {
    auto& line = lines.emplace_back();
    for (const auto& cell : row) line.push_back(printable(cell));
  }
  std::vector<std::size_t> widths(header.size());
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], utf8_length(line[i]));
  }
  std::string text;
  for (const auto& line : lines) text += format_row(line, widths);
  return text;
}

std::string format_template(std::string_view text, const Json& object, UnknownKey unknown) {
  static const std::string k_hint = "Write keys of the JSON form, e.g. '{{.name}} {{.state}}'.";
  std::string out;
  while (true) {
    auto open = text.find("{{");
    out += unescape(text.substr(0, open));
    if (open == std::string_view::npos) return out;
    auto close = text.find("}}", open);
    if (close == std::string_view::npos) throw usage_error("--format: '{{' is not closed", k_hint);
    auto key = trim(text.substr(open + 2, close - open - 2));
    if (!key.starts_with('.')) {
      throw usage_error("--format: '" + printable(key, 60) + "' is no key", k_hint);
    }
    out += value_at(object, key.substr(1), unknown);
    text.remove_prefix(close + 2);
  }
}

}  // namespace holt::cli
