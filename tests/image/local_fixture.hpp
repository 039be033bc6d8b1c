// What the tests of local images share: a store, images by hand, and what an import answers.
#pragma once

#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "holt/image/pull.hpp"
#include "image/layout_builder.hpp"
#include "image/local/source_files.hpp"
#include "image/tar_builder.hpp"

#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace holt::image::test {

namespace fs = std::filesystem;

inline constexpr std::uint64_t k_disk = std::uint64_t{64} << 20;

inline std::string layer_with(const std::string& path, const std::string& content) {
  return TarBuilder().file(path, content).finish();
}

inline const std::string k_layer = layer_with("hello", "from the layer");

inline LayoutBuilder one_image(std::string_view name = "app:1") {
  LayoutBuilder layout;
  layout.list(layout.image({.layers = {k_layer}}), name);
  return layout;
}

class LocalImageTest : public ::testing::Test {
 protected:
  fs::path path(const std::string& name) const { return dir_.path() / name; }
  fs::path file(const std::string& name, const std::string& content) {
    write_file_atomically(path(name), content);
    return path(name);
  }
  fs::path folder(const LayoutBuilder& layout, const std::string& name = "layout") {
    remove_tree(path(name));
    layout.write(path(name));
    return path(name);
  }
  std::unique_ptr<ArchiveFiles> archive(const std::string& tar) {
    return std::make_unique<ArchiveFiles>(Fd(::open(file("in.tar", tar).c_str(), O_RDONLY | O_CLOEXEC)));
  }

  ImportSourceOptions options(ImportSourceOptions given = {}) const {
    given.disk_bytes = k_disk;
    return given;
  }
  Image import(const fs::path& source, ImportSourceOptions given = {}) {
    return import_image(store_, source.string(), options(std::move(given)));
  }
  /// From a pipe that a thread fills.
  Image import_piped(const std::string& bytes, ImportSourceOptions given = {}) {
    auto [reader, writer] = make_pipe();
    std::thread feeder([&bytes, fd = std::move(writer)] {
      try {
        write_all(fd.get(), bytes);
      } catch (const Error&) {
        // The reader has gone.
      }
    });
    struct Join {
      std::thread& thread;
      Fd& fd;
      ~Join() {
        fd.reset();
        thread.join();
      }
    } join{feeder, reader};
    return import_image(store_, reader.get(), options(std::move(given)));
  }

  template <class Call>
  ErrorCode failure(Call call) {
    try {
      call();
    } catch (const Error& error) {
      sentence_ = std::string(error.what()) + " | " + error.hint();
      return error.code();
    }
    sentence_ = "nothing was thrown";
    return ErrorCode::internal;
  }
  ErrorCode import_error(const fs::path& source, ImportSourceOptions given = {}) {
    return failure([&] { import(source, std::move(given)); });
  }
  bool says(const std::string& part) const { return sentence_.find(part) != std::string::npos; }
  void expect_empty_store() {
    EXPECT_TRUE(store_.list().empty());
    std::error_code error;
    fs::directory_iterator staging(store_.folder() / "staging", error);
    if (!error) EXPECT_EQ(std::distance(staging, {}), 0) << "something was left in staging";
  }

  TempDir dir_;
  Store store_{dir_.path() / "images"};
  std::string sentence_;
};

}  // namespace holt::image::test
