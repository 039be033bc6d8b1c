#include "agent/agent_data.hpp"
#include "holt/base/error.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace holt::detail {
namespace {

void append_flat(const Capability& capability, std::vector<Capability>& flat) {
  flat.push_back(capability);
  for (const auto& part : capability->parts()) append_flat(part, flat);
}

std::vector<Capability>::iterator find_id(std::vector<Capability>& list, const std::string& id) {
  return std::find_if(list.begin(), list.end(), [&](const Capability& c) { return c->id() == id; });
}

bool contains_id(const std::vector<Capability>& list, const std::string& id) {
  return std::any_of(list.begin(), list.end(), [&](const Capability& c) { return c->id() == id; });
}

/// Two of one id in one list become one, at the place of the first.
std::vector<Capability> combine_equal_ids(const std::vector<Capability>& list) {
  std::vector<Capability> result;
  for (const auto& capability : list) {
    const std::string id = capability->id();
    auto earlier = id.empty() ? result.end() : find_id(result, id);
    if (earlier == result.end()) {
      result.push_back(capability);
      continue;
    }
    CapabilityPtr both = (*earlier)->combine(capability.object());
    if (!both) throw UserError(fmt::format("Two capabilities have the id '{}' and cannot be combined", id));
    *earlier = Capability(both);
  }
  return result;
}

bool stands_before(const Capability& a, const Capability& b) {
  auto names = [](const std::vector<std::string>& ids, const std::string& id) {
    return !id.empty() && std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  return names(a->ordering().wraps, b->id()) || names(b->ordering().wrapped_by, a->id());
}

/// A stable topological order: of those with nothing left in front of them, the first in the list.
std::vector<Capability> order_by_wraps(std::vector<Capability> list) {
  std::vector<Capability> result;
  while (!list.empty()) {
    auto next = std::find_if(list.begin(), list.end(), [&](const Capability& candidate) {
      return std::none_of(list.begin(), list.end(), [&](const Capability& other) {
        return other.object() != candidate.object() && stands_before(other, candidate);
      });
    });
    if (next == list.end())
      throw UserError("The orderings of the agent's capabilities contradict each other");
    result.push_back(*next);
    list.erase(next);
  }
  return result;
}

void check_requirements(const std::vector<Capability>& list) {
  for (const auto& capability : list)
    for (const auto& id : capability->ordering().requires_ids)
      if (!contains_id(list, id))
        throw UserError(
            fmt::format("Capability '{}' needs a capability '{}', and there is none", capability->id(), id));
}

}  // namespace

std::vector<Capability> flatten_capabilities(const std::vector<Capability>& capabilities) {
  std::vector<Capability> flat;
  for (const auto& capability : capabilities) append_flat(capability, flat);
  return flat;
}

std::vector<Capability> arrange_capabilities(const std::vector<Capability>& of_agent,
                                             const std::vector<Capability>& of_run) {
  std::vector<Capability> list = combine_equal_ids(flatten_capabilities(of_agent));
  for (const auto& capability : combine_equal_ids(flatten_capabilities(of_run))) {
    const std::string id = capability->id();
    auto same = id.empty() ? list.end() : find_id(list, id);
    if (same == list.end())
      list.push_back(capability);
    else
      *same = capability;
  }
  check_requirements(list);
  using Position = CapabilityOrdering::Position;
  std::vector<Capability> placed;
  for (Position position : {Position::outermost, Position::listed, Position::innermost})
    for (const auto& capability : list)
      if (capability->ordering().position == position) placed.push_back(capability);
  return order_by_wraps(std::move(placed));
}

}  // namespace holt::detail
