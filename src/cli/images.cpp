#include "cli/images.hpp"

#include "cli/near_names.hpp"
#include "holt/machine/machine_image.hpp"

#include <algorithm>

namespace holt::cli {
namespace {

/// As people write it.
std::string without_latest(const std::string& reference) {
  constexpr std::string_view k_latest = ":latest";
  return reference.ends_with(k_latest) ? reference.substr(0, reference.size() - k_latest.size()) : reference;
}

}  // namespace

ImageUsers image_users(Session& session) {
  ImageUsers users;
  for (const auto& info : Machine::list_all(session.host())) {
    if (!info.image_digest.empty()) users[info.image_digest].push_back(info.name);
  }
  return users;
}

std::function<bool(const image::Image&)> used_by_machines(Session& session) {
  return [&session](const image::Image& image) { return image_users(session).contains(image.digest); };
}

std::vector<std::string> image_names(const Directories& directories) {
  std::vector<std::string> references;
  for (const auto& image : image::Store(directories).list()) references.push_back(image.reference);
  return references;
}

void with_near_image(Session& session, const std::string& name, const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    bool unknown = error.code() == ErrorCode::not_found || error.code() == ErrorCode::unauthorized ||
                   error.code() == ErrorCode::network_error;
    if (!unknown) throw;
    auto known = image_names(session.host().directories);
    std::ranges::transform(known, known.begin(), without_latest);
    auto meant = did_you_mean(without_latest(name), known);
    if (meant.empty()) throw;
    if (error.hint().empty()) meant.pop_back();
    throw Error(error.code(), error.what(),
                {.subject = error.subject(),
                 .hint = meant + error.hint(),
                 .retryable = error.retryable(),
                 .causes = error.causes()});
  }
}

Json image_json(const image::Image& image, const ImageUsers& users) {
  auto found = users.find(image.digest);
  return {
      {"reference", image.reference}, {"digest", image.digest},
      {"size", image.size},           {"created", image.created},
      {"platform", image.platform},   {"usedBy", found != users.end() ? Json(found->second) : Json::array()}};
}

Json whole_image_json(const image::Image& image, const ImageUsers& users) {
  const auto& config = image.config;
  Json json = image_json(image, users);
  json["manifestDigest"] = image.manifest_digest.empty() ? Json() : Json(image.manifest_digest);
  json["layers"] = image.layers;
  json["diskBytes"] = image.disk_bytes;
  json["path"] = image.ext4.string();
  json["config"] = {{"env", config.env},
                    {"workingDir", config.working_dir},
                    {"user", config.user},
                    {"entrypoint", config.entrypoint},
                    {"cmd", config.cmd},
                    {"stopSignal", config.stop_signal},
                    {"exposedPorts", config.exposed_ports},
                    {"volumes", config.volumes},
                    {"labels", Json(config.labels)}};
  return json;
}

PullProgress::Kind kind_of(const std::string& name) {
  return image::is_local_image(name) ? PullProgress::Kind::import : PullProgress::Kind::pull;
}

image::Image with_progress(Session& session, PullProgress& progress,
                           const std::function<image::Image()>& fetch) {
  try {
    auto image = fetch();
    progress.finish();
    return image;
  } catch (const Error& e) {
    if (e.code() == ErrorCode::cancelled && session.interrupts.signal()) progress.interrupted();
    session.output.clear_progress();
    throw;
  }
}

image::Image obtain_image_of(Session& session, const std::string& name, image::PullPolicy pull,
                             const HostConfig& host) {
  PullProgress progress(session, name, kind_of(name));
  image::Image image;
  with_near_image(session, name, [&] {
    image = with_progress(session, progress, [&] {
      return obtain_image(name, {.pull = pull, .progress = progress.sink(), .call = session.call()}, host);
    });
  });
  return image;
}

}  // namespace holt::cli
