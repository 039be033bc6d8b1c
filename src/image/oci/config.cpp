// The configuration of an image.
#include "holt/base/error.hpp"
#include "image/oci/documents.hpp"
#include "image/oci/strict_json.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr std::string_view k_config_name = "the image's configuration";
constexpr std::size_t k_path_limit = 4095;
constexpr std::size_t k_user_limit = 255;
constexpr std::size_t k_signal_limit = 16;
constexpr std::size_t k_created_limit = 64;

/// Refuses members of a configuration that no process could be given and that would be held in memory for
/// every machine: as execve(2) counts, each string with a NUL and a pointer.
class MemberBudget {
 public:
  explicit MemberBudget(std::string_view member) : member_(member) {}
  void add(std::size_t bytes) {
    constexpr std::size_t k_each = 1 + sizeof(char*);
    bytes_ += bytes + k_each;
    if (bytes_ <= k_member_bytes) return;
    throw Error(ErrorCode::limit_exceeded,
                fmt::format("read {}: '{}' has more than {} bytes", k_config_name, member_, k_member_bytes));
  }

 private:
  std::string_view member_;
  std::size_t bytes_ = 0;
};

std::vector<std::string> strings(const Fields& fields, const char* member) {
  auto all = fields.strings(member);
  MemberBudget budget(member);
  for (const auto& entry : all) budget.add(entry.size());
  return all;
}

/// "NAME=VALUE" each, the last of equal names at the place of the first.
std::vector<std::string> environment(const Fields& fields) {
  std::vector<std::string> all;
  std::map<std::string, std::size_t, std::less<>> places;
  for (std::string& entry : strings(fields, "Env")) {
    std::size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    auto [place, fresh] = places.emplace(entry.substr(0, equals), all.size());
    if (fresh) {
      all.push_back(std::move(entry));
    } else {
      all[place->second] = std::move(entry);
    }
  }
  return all;
}

/// An absolute path without "." and ".."; what would lead above "/" stays there.
std::string clean_path(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    std::size_t slash = path.find('/');
    std::string_view part = path.substr(0, slash);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
  }
  return fmt::format("/{}", fmt::join(parts, "/"));
}

std::string working_dir(const Fields& fields) {
  std::string path = fields.string("WorkingDir");
  if (path.size() > k_path_limit) fields.refuse("'WorkingDir' is longer than 4,095 bytes");
  return path.empty() ? path : clean_path(path);
}

std::string user(const Fields& fields) {
  std::string name = fields.string("User");
  if (name.size() > k_user_limit) fields.refuse("'User' is longer than 255 bytes");
  return name;
}

/// "SIGTERM", "RTMIN+3", "15"; empty for what is no signal's name.
std::string stop_signal(const Fields& fields) {
  std::string name = fields.string("StopSignal");
  bool sane = name.size() <= k_signal_limit && std::ranges::all_of(name, [](char c) {
                return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' || c == '-';
              });
  return sane ? name : std::string();
}

bool is_port(std::string_view text) {
  unsigned port = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port >= 1 && port <= 65535;
}

/// PORT[-PORT][/PROTOCOL].
bool is_port_range(std::string_view text) {
  std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    std::string_view protocol = text.substr(slash + 1);
    if (protocol != "tcp" && protocol != "udp" && protocol != "sctp") return false;
    text = text.substr(0, slash);
  }
  std::size_t dash = text.find('-');
  return is_port(text.substr(0, dash)) && (dash == std::string_view::npos || is_port(text.substr(dash + 1)));
}

std::vector<std::string> exposed_ports(const Fields& fields) {
  std::vector<std::string> ports;
  const Json* json = fields.object("ExposedPorts");
  if (!json) return ports;
  MemberBudget budget("ExposedPorts");
  for (const auto& [port, nothing] : json->items()) {
    budget.add(port.size());
    if (is_port_range(port)) ports.push_back(port);
  }
  return ports;
}

std::vector<std::string> volumes(const Fields& fields) {
  std::vector<std::string> paths;
  const Json* json = fields.object("Volumes");
  if (!json) return paths;
  MemberBudget budget("Volumes");
  for (const auto& [path, nothing] : json->items()) {
    budget.add(path.size());
    if (path.size() > k_path_limit || path.find('\0') != std::string::npos) {
      fields.refuse("'Volumes' holds what is no path");
    }
    paths.push_back(clean_path(path));
  }
  return paths;
}

std::map<std::string, std::string> labels(const Fields& fields) {
  std::map<std::string, std::string> all;
  const Json* json = fields.object("Labels");
  if (!json) return all;
  MemberBudget budget("Labels");
  for (const auto& [name, value] : json->items()) {
    if (!value.is_string()) fields.refuse("'Labels' holds what is not a string");
    const auto& text = value.get_ref<const std::string&>();
    budget.add(name.size() + text.size());
    all.emplace(name, text);
  }
  return all;
}

ImageConfig process_config(const Json& json) {
  Fields fields(json, k_config_name);
  return {.env = environment(fields),
          .working_dir = working_dir(fields),
          .user = user(fields),
          .entrypoint = strings(fields, "Entrypoint"),
          .cmd = strings(fields, "Cmd"),
          .stop_signal = stop_signal(fields),
          .exposed_ports = exposed_ports(fields),
          .volumes = volumes(fields),
          .labels = labels(fields)};
}

Platform platform_of(const Fields& fields) {
  Platform platform;
  std::string os = fields.string("os");
  std::string architecture = fields.string("architecture");
  std::string variant = fields.string("variant");
  std::string text = fmt::format("{}/{}", os.empty() ? platform.os : os,
                                 architecture.empty() ? platform.architecture : architecture);
  if (!variant.empty()) text += "/" + variant;
  auto parsed = parse_platform(text);
  if ((os + architecture + variant).find('/') != std::string::npos) {
    parsed = std::unexpected("its words have a '/' in them");
  }
  if (!parsed) fields.refuse(fmt::format("its platform '{}': {}", printable(text, 100), parsed.error()));
  return *parsed;
}

std::vector<std::string> diff_ids(const Fields& fields) {
  const Json* json = fields.object("rootfs");
  if (!json) fields.refuse("'rootfs' is missing");
  Fields rootfs(*json, k_config_name);
  if (rootfs.string("type") != "layers") fields.refuse("the type of its 'rootfs' is not \"layers\"");
  auto digests = rootfs.strings("diff_ids");
  if (digests.size() > k_layers) {
    throw Error(ErrorCode::limit_exceeded, fmt::format("read {}: it has {} layers, at most {} are read",
                                                       k_config_name, digests.size(), k_layers));
  }
  if (!std::ranges::all_of(digests, is_digest)) {
    fields.refuse("one of 'diff_ids' is not \"sha256:\" and 64 lower-case hexadecimal digits");
  }
  return digests;
}

}  // namespace

ConfigDocument parse_config(std::string_view bytes) {
  if (bytes.size() > k_config_bytes) {
    throw Error(ErrorCode::limit_exceeded, fmt::format("read {}: it has {} bytes, at most {} are read",
                                                       k_config_name, bytes.size(), k_config_bytes));
  }
  Json json = parse_strict_object(bytes, k_config_name);
  Fields fields(json, k_config_name);
  ConfigDocument document;
  document.platform = platform_of(fields);
  document.created = fields.string("created");
  if (document.created.size() > k_created_limit) document.created.clear();
  document.diff_ids = diff_ids(fields);
  if (const Json* process = fields.object("config")) document.config = process_config(*process);
  return document;
}

}  // namespace holt::image
