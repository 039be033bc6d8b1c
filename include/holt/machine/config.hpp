// What a machine shall be.
#pragma once

#include "holt/image/pull.hpp"
#include "holt/machine/types.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holt {

/// Whether a machine outlives its creator. An ephemeral one ends, disk and all, with the Machine objects that
/// share its creation (or with their process, however that ends).
enum class Lifetime { persistent, ephemeral };

struct MachineConfig {
  std::string name = {};  ///< empty: new_machine_name()
  /// Name or digest of an image, or a file or folder of this machine (image::is_local_image). Empty: the
  /// default image.
  std::string image = {};
  image::PullPolicy pull = image::PullPolicy::missing;
  Resources resources = {};
  NetworkConfig network = {};
  std::map<std::string, std::string> env = {};  ///< of all its commands, over the image's
  std::string working_dir = {};                 ///< of its commands; empty: the image's, else "/"
  std::string user = {};                        ///< of its commands; empty: the image's, else root
  std::vector<std::string> make_dirs = {};      ///< absolute folders that shall be there after each start
  std::map<std::string, std::string> labels = {};
  Lifetime lifetime = Lifetime::persistent;
  std::optional<Duration> idle_stop =
      std::nullopt;  ///< stop after so long without client and user process; null: never
  /// Suspend after so long without a client, whatever runs inside; null: never.
  std::optional<Duration> idle_suspend = std::nullopt;
};

/// Checks names, ranges and what this version supports. Throws Error INVALID_CONFIG or NOT_SUPPORTED.
void check_machine_config(const MachineConfig& config);

}  // namespace holt
