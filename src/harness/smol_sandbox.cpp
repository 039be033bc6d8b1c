#include "holt/harness/smol_sandbox.hpp"

#include "harness/smol_sandbox/names.hpp"

namespace holt {

using namespace smol;

SmolSandbox::SmolSandbox(SmolSandboxOptions options) : options_(std::move(options)) {
  try {
    check_options(options_);
  } catch (const InvalidArgument& error) {
    throw UserError(error.what());
  }
}

WorkspaceBackendPtr SmolSandbox::get_workspace(const RunContext&,
                                               const std::optional<WorkspaceRef>& ref) const {
  if (ref && ref->provider != k_provider) return nullptr;
  if (ref) return backend(*ref);
  return std::make_shared<SmolSandboxBackend>(SmolSandboxBackendOptions{options_});
}

WorkspaceBackendPtr SmolSandbox::backend(const WorkspaceRef& ref) const {
  check_ref(ref);
  SmolSandboxBackendOptions options{options_};
  options.ref = ref;
  return std::make_shared<SmolSandboxBackend>(std::move(options));
}

void SmolSandbox::destroy(const WorkspaceRef& ref) const {
  check_ref(ref);
  HostConfig host = host_of(options_);
  NameTurn turn(host, ref.id);
  try {
    Machine::open(ref.id, host).remove({.mode = RemoveMode::force});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found) throw;
  }
}

}  // namespace holt
