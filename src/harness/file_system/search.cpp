#include "harness/file_system/search.hpp"

#include "harness/wording.hpp"

#include <algorithm>

namespace holt::file_tools {
namespace {

constexpr std::size_t k_named = 5;

}  // namespace

std::string answer_text(const SearchAnswer& answer, std::string_view nothing, std::string_view what) {
  std::string text;
  std::size_t shown = std::min(answer.lines.size(), k_max_found);
  for (std::size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : "\n") + answer.lines[i];
  if (shown == 0) text = nothing;
  if (answer.lines.size() > k_max_found) text += "\n" + wording::search_truncated(k_max_found, what);
  for (const auto& note : answer.notes) text += "\n" + note;
  return text;
}

void UnreadablePaths::add(std::string reason, std::string path) {
  auto known = std::ranges::find(reasons_, reason, &Reason::text);
  if (known == reasons_.end()) known = reasons_.insert(reasons_.end(), Reason{std::move(reason), {}});
  known->paths.push_back(std::move(path));
}

std::vector<std::string> UnreadablePaths::notes(const SearchScope& scope) const {
  std::vector<std::string> notes;
  for (const auto& reason : reasons_) {
    std::string names;
    for (std::size_t i = 0; i < std::min(reason.paths.size(), k_named); ++i) {
      names += (i == 0 ? "" : ", ") + scope.prefix + reason.paths[i];
    }
    if (reason.paths.size() > k_named) names += ", ...";
    notes.push_back(wording::search_unreadable(reason.paths.size(), reason.text, names));
  }
  return notes;
}

}  // namespace holt::file_tools
