#include "cli/version.hpp"

#include "build_info.hpp"

namespace holt::cli {

std::string version() {
  return HOLT_VERSION;
}

std::string commit() {
  return HOLT_COMMIT;
}

}  // namespace holt::cli
