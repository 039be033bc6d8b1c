// Machines of images that a test makes.
#pragma once

#include "image/tar_builder.hpp"
#include "machine_vm/vm_fixture.hpp"

namespace holt::test {

/// Images of one static program and what else it puts there.
class ImageMachine : public MachineTest {
 protected:
  using ImageConfig = image::ImageConfig;
  using TarBuilder = image::test::TarBuilder;

  void SetUp() override {
    MachineTest::SetUp();
    if (IsSkipped()) return;
    std::filesystem::create_directory_symlink(host.directories.data / "engine", data.path() / "engine");
    host.directories.data = data.path();
  }

  static TarBuilder scratch() {
    TarBuilder tar;
    tar.add({.path = "app", .content = read_file(HOLT_SCRATCH_APP, std::size_t{64} << 20), .mode = 0755});
    return tar;
  }

  std::string import(const TarBuilder& tar, const ImageConfig& config = {}) {
    auto file = state.path() / "image.tar";
    write_file_atomically(file, tar.finish());
    image::Store(host.directories).import_root_tar(file, "test/scratch:1", {.config = config});
    return "test/scratch:1";
  }

  Machine start(const TarBuilder& tar, const ImageConfig& image = {}, MachineConfig config = {}) {
    config.image = import(tar, image);
    return create(config);
  }
  Machine start(const ImageConfig& image = {}, const MachineConfig& config = {}) {
    return start(scratch(), image, config);
  }

  TempDir data;
};

}  // namespace holt::test
