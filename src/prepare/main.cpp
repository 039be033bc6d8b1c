// holt-prepare: what scripts/setup calls to put the engine files and the default image in their places.
//
//   holt-prepare engine --kernel vmlinuz --modules lib/modules/6.1.0-37-cloud-amd64 --guest holt-guest
//   holt-prepare image --tar root.tar --name holt/default:latest --env LANG=C.UTF-8 --cmd /bin/bash
//
// Prints the result as one line on stdout, progress on stderr. Exit codes: 0 done, 1 failed, 2 usage.
#include "holt/base/directories.hpp"
#include "holt/base/error.hpp"
#include "holt/image/engine_files.hpp"
#include "holt/image/store.hpp"

#include <chrono>
#include <cstdio>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace {

namespace image = holt::image;

void show_progress(const image::Progress& progress) {
  fmt::print(stderr, "\r  {} entries, {} MB ", progress.entries, progress.unpacked_bytes / 1'000'000);
  std::fflush(stderr);
}

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

struct ImageArguments {
  std::string tar;
  std::string name = std::string(image::k_default_image);
  image::ImageConfig config;
};

void add_image_command(CLI::App& app, ImageArguments& arguments) {
  CLI::App* command = app.add_subcommand("image", "Build an image from a root file system tar");
  command->add_option("--tar", arguments.tar, "the tar; - for standard input")->required();
  command->add_option("--name", arguments.name, "NAME[:TAG]");
  command->add_option("--env", arguments.config.env, "NAME=VALUE, repeatable");
  command->add_option("--cmd", arguments.config.cmd, "default command, one word each");
  command->add_option("--workdir", arguments.config.working_dir, "default working folder");
  command->callback([&arguments] {
    image::Store store(holt::Directories::from_environment());
    image::ImportOptions options{.config = arguments.config};
    bool terminal = ::isatty(STDERR_FILENO) == 1;
    if (terminal) options.progress = show_progress;
    image::Image result = arguments.tar == "-"
                              ? store.import_root_tar(STDIN_FILENO, arguments.name, options)
                              : store.import_root_tar(arguments.tar, arguments.name, options);
    if (terminal) fmt::print(stderr, "\n");
    fmt::print("{} {}\n", result.reference, result.digest);
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Puts holt's engine files and images in their places; scripts/setup calls it.");
  app.require_subcommand(1);
  image::EngineSource engine;
  ImageArguments arguments;
  add_engine_command(app, engine);
  add_image_command(app, arguments);
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
