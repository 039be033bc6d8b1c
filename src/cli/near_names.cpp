#include "cli/near_names.hpp"

#include "holt/base/error.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace holt::cli {
namespace {

constexpr std::size_t k_longest = 80;  // a slip of more is no slip, and the table below has that side

/// Optimal string alignment: edits of one letter and swaps of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      auto substituted = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({substituted, cost[i - 1][j] + 1, cost[i][j - 1] + 1});
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& names) {
  if (word.size() < 2 || word.size() > k_longest || std::ranges::find(names, word) != names.end()) return {};
  auto begun = [&](const std::string& name) { return name.starts_with(word); };
  if (std::ranges::count_if(names, begun) == 1) return *std::ranges::find_if(names, begun);
  std::string found;
  std::size_t best = std::max<std::size_t>(word.size() / 3, 1) + 1;
  for (const auto& name : names) {
    if (name.size() >= word.size() + best) continue;
    auto distance = edit_distance(word, name);
    if (distance < best) {
      best = distance;
      found = name;
    }
  }
  return found;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  auto near = nearest(word, names);
  return near.empty() ? "" : fmt::format("Did you mean '{}'? ", printable(near, 130));
}

}  // namespace holt::cli
