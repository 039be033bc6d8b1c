#include "image/registry/credentials.hpp"

#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "holt/base/json.hpp"
#include "holt/image/auth_file.hpp"
#include "image/registry/credential_helper.hpp"

#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr std::size_t k_file_bytes = std::size_t{1} << 20;
constexpr std::string_view k_docker_hub = "docker.io";
constexpr const char* k_docker_hub_key = "https://index.docker.io/v1/";

std::string text_of(const Json& object, const char* key) {
  auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

const Json* object_of(const Json& object, const char* key) {
  auto it = object.find(key);
  return it != object.end() && it->is_object() ? &*it : nullptr;
}

/// What a key of `auths` means: REGISTRY[/PATH]. One with a scheme is Docker's and means the host.
std::string key_meaning(std::string_view key) {
  bool is_url = false;
  for (std::string_view scheme : {"https://", "http://"}) {
    if (key.starts_with(scheme)) {
      key.remove_prefix(scheme.size());
      is_url = true;
    }
  }
  if (is_url) key = key.substr(0, key.find('/'));
  while (key.ends_with('/')) key.remove_suffix(1);
  if (key == "index.docker.io" || key == "registry-1.docker.io") key = k_docker_hub;
  return std::string(key);
}

/// Nothing for an entry without a secret: Docker leaves such ones where a helper keeps it.
std::optional<Credentials> credentials_of(const Json& entry) {
  if (!entry.is_object()) return std::nullopt;
  Credentials found{.user = text_of(entry, "username"),
                    .password = text_of(entry, "password"),
                    .identity_token = text_of(entry, "identitytoken")};
  if (auto decoded = base64_decode(text_of(entry, "auth")); decoded && !decoded->empty()) {
    auto colon = decoded->find(':');
    if (colon != std::string::npos) {
      found.user = decoded->substr(0, colon);
      found.password = decoded->substr(colon + 1);
      // Old versions of Docker filled up with zeros.
      while (found.password.ends_with('\0')) found.password.pop_back();
    }
  }
  if (found.password.empty() && found.identity_token.empty()) return std::nullopt;
  return found;
}

class AuthFile {
 public:
  AuthFile(const std::filesystem::path& path, std::string_view text) {
    auto json = parse_json(text);
    if (!json || !json->is_object()) {
      throw Error(ErrorCode::invalid_config,
                  fmt::format("read credentials from {}: it is not a JSON object", path.string()),
                  {.subject = path.string()});
    }
    json_ = std::move(*json);
  }

  std::string helper_of(const std::string& registry) const {
    const auto* helpers = object_of(json_, "credHelpers");
    if (helpers == nullptr) return {};
    for (const auto& [key, value] : helpers->items()) {
      if (key_meaning(key) == registry && value.is_string()) return value.get<std::string>();
    }
    return {};
  }
  std::string store() const { return text_of(json_, "credsStore"); }

  std::optional<Credentials> find(const std::string& registry, const std::string& repository) const {
    const auto* auths = object_of(json_, "auths");
    if (auths == nullptr) return std::nullopt;
    for (auto name = fmt::format("{}/{}", registry, repository);; name.resize(name.rfind('/'))) {
      for (const auto& [key, value] : auths->items()) {
        if (key_meaning(key) != name) continue;
        if (auto found = credentials_of(value)) return found;
      }
      if (name.size() <= registry.size()) return std::nullopt;
    }
  }

 private:
  Json json_;
};

std::vector<std::filesystem::path> usual_places(const Directories::Lookup& environment) {
  std::vector<std::filesystem::path> out;
  auto add = [&](const char* variable, const char* below) {
    auto value = environment(variable);
    if (!value || value->empty()) return false;
    out.push_back(*below != '\0' ? std::filesystem::path(*value) / below : std::filesystem::path(*value));
    return true;
  };
  add("REGISTRY_AUTH_FILE", "");
  add("XDG_RUNTIME_DIR", "containers/auth.json");
  if (!add("XDG_CONFIG_HOME", "containers/auth.json")) add("HOME", ".config/containers/auth.json");
  if (!add("DOCKER_CONFIG", "config.json")) add("HOME", ".docker/config.json");
  return out;
}

AuthFile load_auth_file(const std::filesystem::path& path) {
  return AuthFile(path, read_file(path, k_file_bytes));
}

}  // namespace

void check_auth_file(const std::filesystem::path& file) {
  load_auth_file(file);
}

std::optional<Credentials> find_credentials(const std::string& registry, const std::string& repository,
                                            const RegistryOptions& options, const Surroundings& surroundings,
                                            const std::optional<CancellationToken>& cancel) {
  if (options.credentials) return options.credentials;
  auto look_into = [&](const AuthFile& file) -> std::optional<Credentials> {
    auto ask = [&](const std::string& helper) -> std::optional<Credentials> {
      if (helper.empty()) return std::nullopt;
      return ask_credential_helper(helper, registry == k_docker_hub ? k_docker_hub_key : registry,
                                   surroundings, cancel);
    };
    if (auto found = ask(file.helper_of(registry))) return found;
    if (auto found = file.find(registry, repository)) return found;
    return ask(file.store());
  };
  if (options.auth_file) return look_into(load_auth_file(*options.auth_file));
  for (const auto& path : usual_places(surroundings.environment)) {
    auto text = read_file_if_exists(path, k_file_bytes);
    if (!text) continue;
    if (auto found = look_into(AuthFile(path, *text))) return found;
  }
  return std::nullopt;
}

}  // namespace holt::image
