// Local images that are none, half of one, or lead elsewhere.
#include "holt/base/encoding.hpp"
#include "image/ext4_reader.hpp"
#include "image/local_fixture.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <archive.h>

namespace holt::image {
namespace {

namespace fs = std::filesystem;
using namespace test;
using LocalHostileTest = LocalImageTest;

TEST_F(LocalHostileTest, IMG_30_OfTwoImagesOneIsSelected) {
  LayoutBuilder layout;
  Json first = layout.image({.layers = {layer_with("hello", "first")}});
  Json second = layout.image({.layers = {layer_with("hello", "second")}});
  layout.list(first, "app:1").list(second, "app:2");
  for (const fs::path& source : {folder(layout), file("two.tar", layout.tar())}) {
    EXPECT_EQ(import_error(source), ErrorCode::usage);
    EXPECT_TRUE(says("app:1, app:2")) << sentence_;
    EXPECT_EQ(import_error(source, {.select = "app:3"}), ErrorCode::usage);
    EXPECT_TRUE(says("app:3") && says("app:1, app:2")) << sentence_;
    EXPECT_EQ(test::content_of(import(source, {.select = "app:2"}).ext4, "/hello"), "second");
    EXPECT_EQ(test::content_of(import(source, {.select = first["digest"]}).ext4, "/hello"), "first");
  }
  TestImage one{.layers = {layer_with("hello", "first")}};
  TestImage two{.layers = {layer_with("hello", "second")}};
  fs::path saved =
      file("saved.tar", test::tar_of(test::saved_files({{.image = one, .tags = {"saved:1"}},
                                                        {.image = two, .tags = {"saved:2", "saved:3"}}})));
  EXPECT_EQ(import_error(saved), ErrorCode::usage);
  EXPECT_TRUE(says("saved:1, saved:2")) << sentence_;
  Image image = import(saved, {.select = "docker.io/library/saved:3"});
  EXPECT_EQ(image.reference, "saved:3");
  EXPECT_EQ(test::content_of(image.ext4, "/hello"), "second");
  std::string config = test::digest_of(dump_json(test::config_of(one.layers)));
  EXPECT_EQ(test::content_of(import(saved, {.select = config}).ext4, "/hello"), "first");
}

TEST_F(LocalHostileTest, IMG_30_LinksInALayoutsFolderAreNotFollowed) {
  fs::path secret = file("secret", k_layer);
  const std::string blob = "blobs/sha256/" + sha256_hex(k_layer);
  for (const std::string& name :
       {blob, std::string("index.json"), std::string("oci-layout"), std::string("blobs")}) {
    fs::path layout = folder(one_image());
    fs::path outside = path("outside");
    remove_tree(outside);
    fs::rename(layout / name, outside);
    fs::create_symlink(outside, layout / name);
    EXPECT_EQ(import_error(layout), ErrorCode::image_invalid) << name << ": " << sentence_;
    EXPECT_TRUE(says("link")) << sentence_;
  }
  expect_empty_store();
  EXPECT_EQ(read_file(secret, 1 << 20), k_layer);
}

TEST_F(LocalHostileTest, IMG_30_OnlyRegularFilesAreRead) {
  fs::path layout = folder(one_image());
  fs::path blob = layout / "blobs/sha256" / sha256_hex(k_layer);
  fs::remove(blob);
  ASSERT_EQ(::mkfifo(blob.c_str(), 0600), 0);
  EXPECT_EQ(import_error(layout), ErrorCode::image_invalid) << sentence_;
  fs::remove(blob);
  fs::create_directory(blob);
  EXPECT_EQ(import_error(layout), ErrorCode::image_invalid) << sentence_;
  expect_empty_store();
}

TEST_F(LocalHostileTest, IMG_30_LinksAndOddNamesInALayoutsTarAreNotUsed) {
  LayoutBuilder layout = one_image();
  const std::string blob = "blobs/sha256/" + sha256_hex(k_layer);
  auto import_with = [&](const std::string& replaced, const test::Member& member) {
    TarBuilder tar;
    for (const auto& [name, content] : layout.files()) {
      if (name != replaced) tar.file(name, content);
    }
    return import_error(file("odd.tar", tar.add(member).finish()));
  };
  for (const char* target : {"/etc/shadow", "../../../../etc/shadow", "x"}) {
    EXPECT_EQ(import_with(blob, {.path = blob, .type = '2', .link = target}), ErrorCode::image_invalid)
        << sentence_;
    EXPECT_EQ(import_with(blob, {.path = blob, .type = '1', .link = target}), ErrorCode::image_invalid)
        << sentence_;
    EXPECT_EQ(import_with("index.json", {.path = "index.json", .type = '2', .link = target}),
              ErrorCode::image_invalid)
        << sentence_;
  }
  for (const std::string prefix : {"/", "../", "x/../", "/./"}) {
    EXPECT_EQ(import_with(blob, {.path = prefix + blob, .content = k_layer}), ErrorCode::image_invalid)
        << sentence_;
    EXPECT_EQ(import_with("oci-layout", {.path = prefix + "oci-layout", .content = "{}"}),
              ErrorCode::image_invalid)
        << sentence_;
    EXPECT_TRUE(says("absolute")) << sentence_;
  }
  EXPECT_EQ(import_with(blob, {.path = blob, .type = '6'}), ErrorCode::image_invalid) << sentence_;
  expect_empty_store();
}

TEST_F(LocalHostileTest, IMG_24_ANameWithANulInALayoutsTarIsRefused) {
  using namespace std::string_literals;
  LayoutBuilder layout = one_image();
  auto import_with = [&](const test::Member& member) {
    TarBuilder tar;
    for (const auto& [name, content] : layout.files()) tar.file(name, content);
    return import_error(file("nul.tar", tar.add(member).finish()));
  };
  for (const auto& name : {"other\0json"s, "other\0"s, "\0other"s}) {
    EXPECT_EQ(import_with({.path = "x", .pax = {{"path", name}}}), ErrorCode::image_invalid) << sentence_;
    EXPECT_TRUE(says("a NUL in the attribute 'path=")) << sentence_;
    EXPECT_EQ(import_with({.path = "x", .type = '2', .pax = {{"linkpath", name}}}), ErrorCode::image_invalid);
    EXPECT_TRUE(says("a NUL in the attribute 'linkpath=")) << sentence_;
  }
  expect_empty_store();
  EXPECT_EQ(import_with({.path = "x", .pax = {{"path", "other.json"}}}), ErrorCode::internal) << sentence_;
}

TEST_F(LocalHostileTest, IMG_30_ALayoutWithoutItsFilesIsInvalid) {
  for (const char* name : {"index.json", "oci-layout"}) {
    LayoutBuilder layout = one_image();
    layout.without(name);
    for (const fs::path& source : {folder(layout), file("without.tar", layout.tar())}) {
      EXPECT_EQ(import_error(source), ErrorCode::image_invalid) << source;
      EXPECT_TRUE(says(name)) << sentence_;
    }
  }
  LayoutBuilder blobless = one_image();
  blobless.without("blobs/sha256/" + sha256_hex(k_layer));
  EXPECT_EQ(import_error(folder(blobless)), ErrorCode::image_invalid) << sentence_;
  LayoutBuilder empty;
  EXPECT_EQ(import_error(folder(empty)), ErrorCode::image_invalid) << sentence_;
  LayoutBuilder version = one_image();
  version.file("oci-layout", R"({"imageLayoutVersion":"2.0.0"})");
  EXPECT_EQ(import_error(folder(version)), ErrorCode::not_supported) << sentence_;
  version.file("oci-layout", "not json");
  EXPECT_EQ(import_error(folder(version)), ErrorCode::image_invalid) << sentence_;
  version.file("oci-layout", std::string(100'000, ' '));
  EXPECT_EQ(import_error(folder(version)), ErrorCode::limit_exceeded) << sentence_;
  EXPECT_EQ(import_error(file("saved.tar", test::tar_of({{"manifest.json", "[]"}}))),
            ErrorCode::image_invalid);
  EXPECT_EQ(import_error(
                file("saved.tar", test::tar_of({{"manifest.json", R"([{"Config":"../x","Layers":[]}])"}}))),
            ErrorCode::image_invalid);
  expect_empty_store();
}

TEST_F(LocalHostileTest, IMG_30_AnArchiveCutShortIsInvalid) {
  LayoutBuilder layout;
  std::string noise;
  for (int i = 0; i < 4000; ++i) noise += sha256_hex(std::to_string(i));
  layout.list(layout.image({.layers = {layer_with("noise", noise)}}), "app:1");
  std::string tar = layout.tar();
  std::string gzip = test::compressed(tar, archive_write_add_filter_gzip);
  std::string zstd = test::compressed(tar, archive_write_add_filter_zstd);
  for (const std::string* whole : {&tar, &gzip, &zstd}) {
    for (std::size_t percent : {10U, 50U, 90U}) {
      std::string cut = whole->substr(0, whole->size() * percent / 100);
      EXPECT_EQ(failure([&] { import_piped(cut, {.reference = "cut"}); }), ErrorCode::image_invalid)
          << percent << " %: " << sentence_;
      EXPECT_EQ(import_error(file("cut.tar", cut)), ErrorCode::image_invalid) << sentence_;
    }
  }
  expect_empty_store();
}

TEST_F(LocalHostileTest, IMG_30_APipeIsReadOnceToItsEnd) {
  LayoutBuilder layout = one_image();
  auto [reader, writer] = make_pipe();
  std::thread feeder([&, fd = std::move(writer)]() mutable {
    // In pieces, so that it is a stream and no file whatever the pipe holds.
    std::string tar = layout.tar();
    for (std::size_t at = 0; at < tar.size(); at += 1000) write_all(fd.get(), tar.substr(at, 1000));
    fd.reset();
  });
  Image image = import_image(store_, reader.get(), options());
  feeder.join();
  EXPECT_EQ(test::content_of(image.ext4, "/hello"), "from the layer");
  char more = 0;
  EXPECT_EQ(::read(reader.get(), &more, 1), 0);
}

TEST_F(LocalHostileTest, IMG_30_AFifoIsReadWhenSomebodyWritesToIt) {
  ASSERT_EQ(::mkfifo(path("app").c_str(), 0600), 0);
  std::thread feeder([&] {
    Fd writer(::open(path("app").c_str(), O_WRONLY | O_CLOEXEC));
    try {
      write_all(writer.get(), one_image().tar());
    } catch (const Error&) {
      // The reader has gone.
    }
  });
  std::string content;
  ErrorCode code = failure([&] { content = content_of(import(path("app")).ext4, "/hello"); });
  feeder.join();
  EXPECT_EQ(content, "from the layer") << to_string(code) << ": " << sentence_;
}

TEST_F(LocalHostileTest, IMG_30_WhatIsNoImageIsToldInASentence) {
  EXPECT_EQ(import_error(file("Dockerfile", "# syntax=docker/dockerfile:1\n\nFROM debian\nRUN true\n")),
            ErrorCode::usage);
  EXPECT_TRUE(says("docker save")) << sentence_;
  EXPECT_EQ(failure([&] { import_piped("ARG V=1\nFROM a:$V\n", {.reference = "x"}); }), ErrorCode::usage)
      << sentence_;
  fs::create_directory(path("project"));
  file("project/Dockerfile", "FROM debian\n");
  EXPECT_EQ(import_error(path("project")), ErrorCode::usage);
  EXPECT_TRUE(says("docker save")) << sentence_;

  fs::create_directory(path("of-skopeo"));
  file("of-skopeo/manifest.json", "{}");
  file("of-skopeo/version", "Directory Transport Version: 1.1\n");
  EXPECT_EQ(import_error(path("of-skopeo")), ErrorCode::usage);
  EXPECT_TRUE(says("skopeo's form dir:")) << sentence_;

  EXPECT_EQ(import_error(file("empty", "")), ErrorCode::image_invalid);
  EXPECT_TRUE(says("empty")) << sentence_;
  EXPECT_EQ(failure([&] { import_piped("", {.reference = "x"}); }), ErrorCode::image_invalid) << sentence_;
  EXPECT_EQ(import_error(file("text", std::string(5000, 't'))), ErrorCode::image_invalid);
  EXPECT_TRUE(says("no tar")) << sentence_;
  EXPECT_EQ(import_error(file("short", "t")), ErrorCode::image_invalid) << sentence_;
  EXPECT_EQ(import_error(file("packed.xz", test::compressed(k_layer, archive_write_add_filter_xz))),
            ErrorCode::not_supported)
      << sentence_;
  fs::create_directory(path("nothing"));
  EXPECT_EQ(import_error(path("nothing")), ErrorCode::image_invalid) << sentence_;

  EXPECT_EQ(import_error("/dev/null"), ErrorCode::usage) << sentence_;
  Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(failure([&] { import_image(store_, null.get(), options({.reference = "x"})); }),
            ErrorCode::usage);
  EXPECT_EQ(import_error(path("absent.tar")), ErrorCode::not_found);
  EXPECT_TRUE(says("absent.tar")) << sentence_;
  expect_empty_store();
}

TEST_F(LocalHostileTest, AnArchiveThatUnpacksWithoutEndIsStopped) {
  std::string zeros = test::compressed(TarBuilder().file("zeros", std::string(64U << 20, '\0')).finish(),
                                       archive_write_add_filter_gzip);
  Limits limits{.entries = 10, .unpacked_bytes = 1 << 20};
  EXPECT_EQ(import_error(file("bomb.tar.gz", zeros), {.limits = limits}), ErrorCode::limit_exceeded)
      << sentence_;
  expect_empty_store();
}

TEST_F(LocalHostileTest, ACancelledImportEnds) {
  auto [reader, writer] = make_pipe();
  CancellationToken cancel;
  cancel.cancel();
  EXPECT_EQ(
      failure([&] { import_image(store_, reader.get(), options({.reference = "x", .cancel = cancel})); }),
      ErrorCode::cancelled);
  fs::create_directories(path("root/etc"));
  EXPECT_EQ(import_error(path("root"), {.cancel = cancel}), ErrorCode::cancelled);
  ASSERT_EQ(::mkfifo(path("nobody-writes").c_str(), 0600), 0);
  EXPECT_EQ(import_error(path("nobody-writes"), {.cancel = cancel}), ErrorCode::cancelled);
  expect_empty_store();
}

}  // namespace
}  // namespace holt::image
