// Flags of verbs that may fetch an image: how its registry is talked to.
#pragma once

#include "cli/options.hpp"
#include "holt/image/pull.hpp"

#include <optional>
#include <string>

namespace holt::cli {

/// --insecure, --ca-file, --auth-file, over what the environment says.
class RegistryFlags {
 public:
  void declare(Options& options);
  /// Throws Error for a file of credentials that cannot be used.
  void apply(image::RegistryOptions& registry) const;

 private:
  bool insecure_ = false;
  std::optional<std::string> ca_file_;
  std::optional<std::string> auth_file_;
};

/// The policy of --pull. Throws Error USAGE.
image::PullPolicy parse_pull_policy(const std::string& flag, const std::string& word);
/// The platform of --platform; that of machines where there is none. Throws Error USAGE.
image::Platform parse_platform_flag(const std::optional<std::string>& text);

}  // namespace holt::cli
