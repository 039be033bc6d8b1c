#include "workspace/conformance.hpp"

#include "holt/base/files.hpp"
#include "holt/workspace/local.hpp"

#include <filesystem>

namespace holt::testing_support {
namespace {

/// Hides the files of a backend, so that file operations are derived from its commands.
class CommandsOnly final : public WorkspaceBackend, public SupportsCommands {
 public:
  explicit CommandsOnly(WorkspaceBackendPtr inner) : inner_(std::move(inner)) {}
  std::optional<WorkspaceRef> ref() const override { return inner_->ref(); }
  Task<std::string> working_dir() override { return inner_->working_dir(); }
  Task<CommandResult> run(WorkspaceCommand command, CommandOptions options) override {
    return inner_->commands()->run(std::move(command), std::move(options));
  }

 private:
  WorkspaceBackendPtr inner_;
};

enum class Files { native, derived };

class LocalWorld final : public World {
 public:
  explicit LocalWorld(Files files) : files_(files) {}

  WorkspaceBackendPtr backend() override { return at(directory_.path()); }
  WorkspaceBackendPtr destructible() override {
    std::filesystem::create_directory(directory_.path() / "doomed");
    return at(directory_.path() / "doomed");
  }
  WorkspaceBackendPtr attach(const WorkspaceRef& ref) override { return at(ref.id); }
  void destroy(WorkspaceBackend& backend) override { remove_tree(backend.ref()->id); }

 private:
  WorkspaceBackendPtr at(const std::filesystem::path& path) const {
    auto local = std::make_shared<LocalWorkspaceBackend>(path.string());
    if (files_ == Files::native) return local;
    return std::make_shared<CommandsOnly>(local);
  }
  Files files_;
  TempDir directory_;
};

WorldMaker local_world(const std::string& name, Files files) {
  return {name, [files] { return std::make_unique<LocalWorld>(files); }};
}

INSTANTIATE_TEST_SUITE_P(Backends, WorkspaceConformance,
                         testing::Values(local_world("Local", Files::native),
                                         local_world("CommandsOnly", Files::derived)),
                         world_name);

}  // namespace
}  // namespace holt::testing_support
