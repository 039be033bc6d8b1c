#include "cli/registry_flags.hpp"

#include "cli/errors.hpp"
#include "holt/image/auth_file.hpp"

#include <fmt/format.h>

namespace holt::cli {

void RegistryFlags::declare(Options& options) {
  options.flag("--insecure", insecure_,
               "Talk to registries without checking their certificates, or by plain http");
  options.text("--ca-file", "FILE", ca_file_, "More certificates to trust, PEM");
  options.text("--auth-file", "FILE", auth_file_, "Credentials, in the form of docker's config.json");
}

void RegistryFlags::apply(image::RegistryOptions& registry) const {
  if (insecure_) registry.insecure = true;
  if (ca_file_) registry.ca_file = *ca_file_;
  if (auth_file_) {
    try {
      image::check_auth_file(*auth_file_);
    } catch (const Error& error) {
      throw file_error("--auth-file", error, "'docker login' and 'podman login' write such files.");
    }
    registry.auth_file = *auth_file_;
  }
}

image::PullPolicy parse_pull_policy(const std::string& flag, const std::string& word) {
  if (auto policy = image::pull_policy_from(word)) return *policy;
  throw usage_error(fmt::format("{}: '{}' is no policy", flag, printable(word, 80)),
                    "Use missing, always or never.");
}

image::Platform parse_platform_flag(const std::optional<std::string>& text) {
  if (!text) return image::Platform::of_machines();
  auto platform = image::parse_platform(*text);
  if (!platform) {
    throw usage_error(fmt::format("--platform: '{}': {}", printable(*text, 80), platform.error()),
                      "Write it as linux/amd64.");
  }
  return *platform;
}

}  // namespace holt::cli
