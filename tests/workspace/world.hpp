// What the conformance suite needs to know of a backend, and a wait for what nothing announces.
#pragma once

#include "holt/workspace/workspace.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace holt::testing_support {

/// What the suite needs to know of one kind of backend.
class World {
 public:
  virtual ~World() = default;
  /// A backend for one test; its environment may be shared with other tests.
  virtual WorkspaceBackendPtr backend() = 0;
  /// A backend whose environment does not exist yet; null where there is no such thing.
  virtual WorkspaceBackendPtr fresh() { return nullptr; }
  /// A backend whose environment destroy() may end; null where that cannot be tested.
  virtual WorkspaceBackendPtr destructible() { return nullptr; }
  virtual WorkspaceBackendPtr attach(const WorkspaceRef&) { return nullptr; }
  virtual void destroy(WorkspaceBackend&) {}
};

struct WorldMaker {
  std::string name;
  std::function<std::unique_ptr<World>()> make;  ///< null world: skip, `make` has printed why
};
inline void PrintTo(const WorldMaker& maker, std::ostream* out) {
  *out << maker.name;
}
inline std::string world_name(const testing::TestParamInfo<WorldMaker>& info) {
  return info.param.name;
}

/// Looks until `condition` holds; false after a minute.
inline bool eventually(const std::function<bool()>& condition) {
  Deadline deadline = Deadline::after(std::chrono::seconds(60));
  while (!deadline.passed()) {
    if (condition()) return true;
    std::this_thread::yield();
  }
  return false;
}

}  // namespace holt::testing_support
