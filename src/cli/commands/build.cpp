#include "cli/commands/commands.hpp"
#include "holt/base/error.hpp"

namespace holt::cli {
namespace {

class BuildCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "build",
            .aliases = {"image build"},
            .group = Group::images,
            .summary = "Say how an image of a Dockerfile comes here: holt builds none",
            .usage = "",
            .examples = {"docker build -t app . && docker save app | holt image import -"},
            .tail = Tail::anything};
  }

  Outcome run(Session&) override {
    throw Error(
        ErrorCode::not_supported, "holt builds no images from Dockerfiles",
        {.hint = "Build it elsewhere and bring it in: docker build -t app . && docker save app | holt image "
                 "import - (podman and buildah do as well)."});
  }
};

}  // namespace

std::unique_ptr<Command> make_build() {
  return std::make_unique<BuildCommand>();
}

}  // namespace holt::cli
