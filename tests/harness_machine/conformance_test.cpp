#include "workspace/conformance.hpp"

#include "harness_machine/smol_world.hpp"

namespace holt::testing_support {

INSTANTIATE_TEST_SUITE_P(Backends, WorkspaceConformance, testing::Values(test::SmolWorld::maker()),
                         world_name);

}  // namespace holt::testing_support
