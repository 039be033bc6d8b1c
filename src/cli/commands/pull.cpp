#include "cli/commands/commands.hpp"
#include "cli/images.hpp"
#include "cli/machines.hpp"
#include "cli/registry_flags.hpp"

#include <optional>
#include <string>
#include <vector>

namespace holt::cli {
namespace {

class PullCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "pull",
            .aliases = {"image pull"},
            .group = Group::images,
            .summary = "Fetch images from their registries",
            .usage = "[flags] REFERENCE...",
            .examples = {"holt pull python:3.12-alpine",
                         "holt pull --ca-file ca.pem registry.example:5000/team/app@sha256:9f86d0..."}};
  }

  void declare(Options& options) override {
    options.arguments("REFERENCE", names_, Need::required, "NAME[:TAG][@DIGEST], with HOST[:PORT]/ in front");
    options.text("--platform", "OS/ARCH", platform_,
                 "Variant of the image (default: what machines here run)");
    registry_.declare(options);
  }

  Outcome run(Session& session) override {
    auto platform = parse_platform_flag(platform_);
    auto host = session.host();
    registry_.apply(host.registry);
    image::Store store(host.directories);
    std::vector<Json> pulled;
    auto pull_one = [&](const std::string& name) {
      PullProgress progress(session, name, kind_of(name));
      auto image = with_progress(session, progress,
                                 [&] { return fetch(session, store, name, platform, host, progress); });
      if (!session.globals.json) return session.output.line(image.digest);
      pulled.push_back(
          {{"reference", image.reference},
           {"digest", image.digest},
           {"manifestDigest", image.manifest_digest.empty() ? Json() : Json(image.manifest_digest)},
           {"size", image.size},
           {"platform", image.platform},
           {"layers", image.layers.size()},
           {"fetchedBytes", progress.fetched_bytes()},
           {"cached", !progress.did_work()}});
    };
    for_each_name(session, names_, pull_one, [&] {
      if (session.globals.json) session.output.json(names_.size() == 1 ? pulled.front() : Json(pulled));
    });
    return ToolExit{};
  }

 private:
  static image::Image fetch(Session& session, image::Store& store, const std::string& name,
                            const image::Platform& platform, const HostConfig& host, PullProgress& progress) {
    if (image::is_local_image(name)) {
      return image::import_image(store, name,
                                 {.platform = platform,
                                  .limits = host.image_limits,
                                  .progress = progress.sink(),
                                  .cancel = session.interrupts.token()});
    }
    return image::pull(store, name,
                       {.policy = image::PullPolicy::always,
                        .platform = platform,
                        .registry = host.registry,
                        .limits = host.image_limits,
                        .progress = progress.sink(),
                        .cancel = session.interrupts.token()});
  }

  std::vector<std::string> names_;
  std::optional<std::string> platform_;
  RegistryFlags registry_;
};

}  // namespace

std::unique_ptr<Command> make_pull() {
  return std::make_unique<PullCommand>();
}

}  // namespace holt::cli
