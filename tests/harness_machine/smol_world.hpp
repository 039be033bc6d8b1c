// Real machines behind SmolSandbox, in a state directory of a test's own.
#pragma once

#include "holt/base/files.hpp"
#include "holt/harness/smol_sandbox.hpp"
#include "holt/image/engine_files.hpp"
#include "holt/image/store.hpp"
#include "workspace/world.hpp"

#include <cstdlib>
#include <iostream>
#include <optional>

namespace holt::test {

/// The engine of HOLT_HOME with another state directory; nothing, after a line that says why, without one.
inline std::optional<HostConfig> prepared_host(const std::filesystem::path& state) {
  auto skip = [](const char* why) {
    std::cout << why << ": run scripts/test\n";
    return std::optional<HostConfig>();
  };
  if (std::getenv("HOLT_HOME") == nullptr) return skip("HOLT_HOME is not set");
  HostConfig host = HostConfig::from_environment();
  if (!image::EngineFiles::find(host.directories)) return skip("HOLT_HOME holds no engine");
  if (!image::Store(host.directories).find(image::k_default_image))
    return skip("HOLT_HOME holds no default image");
  if (host.monitor.empty()) host.monitor = HOLT_BINARY_DIR "/src/monitor/holt-monitor";
  host.directories.state = state / "state";
  host.directories.runtime = state / "run";
  return host;
}

/// Removes all machines of a state directory.
inline void remove_all_machines(const HostConfig& host) {
  for (const auto& info : Machine::list_all(host)) {
    try {
      Machine::open(info.name, host).remove({.mode = RemoveMode::force});
    } catch (const Error& error) {
      std::cout << "removing " << info.name << ": " << error.what() << "\n";
    }
  }
}

/// Backends for the conformance suite.
class SmolWorld final : public testing_support::World {
 public:
  static testing_support::WorldMaker maker() {
    return {"SmolSandbox", []() -> std::unique_ptr<testing_support::World> {
              auto world = std::unique_ptr<SmolWorld>(new SmolWorld());
              if (!world->host_) return nullptr;
              return world;
            }};
  }
  ~SmolWorld() override {
    if (host_) remove_all_machines(*host_);
  }

  WorkspaceBackendPtr backend() override {
    if (!backend_) backend_ = fresh();
    return backend_;
  }
  WorkspaceBackendPtr fresh() override { return std::make_shared<SmolSandboxBackend>(options()); }
  WorkspaceBackendPtr destructible() override { return fresh(); }
  WorkspaceBackendPtr attach(const WorkspaceRef& ref) override {
    auto attached = options();
    attached.ref = ref;
    return std::make_shared<SmolSandboxBackend>(attached);
  }
  void destroy(WorkspaceBackend& backend) override { SmolSandbox({.host = host_}).destroy(*backend.ref()); }

 private:
  SmolWorld() : host_(prepared_host(directory_.path())) {}
  SmolSandboxBackendOptions options() const {
    SmolSandboxBackendOptions options;
    options.host = host_;
    return options;
  }
  TempDir directory_;
  std::optional<HostConfig> host_;
  WorkspaceBackendPtr backend_;
};

}  // namespace holt::test
