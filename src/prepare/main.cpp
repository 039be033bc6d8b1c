// holt-prepare: what scripts/setup calls to put the engine files in their places.
//
//   holt-prepare engine --kernel vmlinuz --modules lib/modules/6.1.0-37-cloud-amd64 --guest holt-guest
//
// Prints the result as one line on stdout. Exit codes: 0 done, 1 failed, 2 usage.
#include "holt/base/directories.hpp"
#include "holt/base/error.hpp"
#include "holt/image/engine_files.hpp"

#include <cstdio>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace {

namespace image = holt::image;

void add_engine_command(CLI::App& app, image::EngineSource& source) {
  CLI::App* command = app.add_subcommand("engine", "Install kernel and initramfs");
  command->add_option("--kernel", source.kernel, "bzImage or ELF vmlinux")->required();
  command->add_option("--modules", source.modules, "folder with that kernel's modules")->required();
  command->add_option("--guest", source.guest, "the holt-guest program")->required();
  command->add_option("--release", source.kernel_release, "the kernel's release");
  command->callback([&source] {
    auto files = image::install_engine(holt::Directories::from_environment(), source);
    fmt::print("{} {}\n", files.kernel.string(), files.initramfs.string());
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Puts holt's engine files in their places; scripts/setup calls it.");
  app.require_subcommand(1);
  image::EngineSource engine;
  add_engine_command(app, engine);
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const holt::Error& error) {
    fmt::print(stderr, "holt-prepare: {}\n", error.what());
    if (!error.hint().empty()) fmt::print(stderr, "{}\n", error.hint());
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "holt-prepare: {}\n", error.what());
    return 1;
  }
}
