// Layouts, saved archives and root file systems of this machine, as sources and as imports.
#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "holt/image/pull.hpp"
#include "image/ext4_reader.hpp"
#include "image/layout_builder.hpp"
#include "image/local/layout_source.hpp"
#include "image/local/location.hpp"
#include "image/local/saved_source.hpp"
#include "image/local/source_files.hpp"
#include "image/tar_builder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include <archive.h>
#include <gtest/gtest.h>

namespace holt::image {
namespace {

namespace fs = std::filesystem;
using test::LayoutBuilder;
using test::TarBuilder;
using test::TestImage;

constexpr std::uint64_t k_disk = std::uint64_t{64} << 20;

std::string layer_with(const std::string& path, const std::string& content) {
  return TarBuilder().file(path, content).finish();
}

const std::string k_layer = layer_with("hello", "from the layer");

LayoutBuilder one_image(std::string_view name = "app:1") {
  LayoutBuilder layout;
  layout.list(layout.image({.layers = {k_layer}}), name);
  return layout;
}

/// Keeps a blob in memory.
class MemorySink final : public BlobSink {
 public:
  explicit MemorySink(std::string have = {}) : bytes(std::move(have)) {}
  std::uint64_t offset() const override { return bytes.size(); }
  void restart() override { bytes.clear(); }
  void write(std::string_view more) override { bytes += more; }
  std::string bytes;
};

class LocalSourceTest : public ::testing::Test {
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

TEST_F(LocalSourceTest, AnArchivesMembersAreFoundWhereTheyAre) {
  std::string large(300'000, 'L');
  TarBuilder tar;
  tar.folder("blobs/").file("./blobs/a", "first").file("blobs/empty", "").file("large", large);
  tar.add({.path = "short", .content = "by PAX", .pax = {{"path", "blobs/" + std::string(150, 'p')}}});
  tar.add({.path = "stamped", .content = "stamped too", .pax = {{"mtime", "1.5"}}});
  tar.file("last", "the last one");
  auto files = archive(tar.finish());
  auto read = [&](const std::string& name) {
    auto slice = files->open(name);
    return slice ? read_slice(*slice, std::size_t{1} << 20, name) : "(missing)";
  };
  EXPECT_EQ(read("blobs/a"), "first");
  EXPECT_EQ(read("./blobs//a"), "first");
  EXPECT_EQ(read("blobs/empty"), "");
  EXPECT_EQ(read("large"), large);
  EXPECT_EQ(read("blobs/" + std::string(150, 'p')), "by PAX");
  EXPECT_EQ(read("stamped"), "stamped too");
  EXPECT_EQ(read("last"), "the last one");
  EXPECT_EQ(read("absent"), "(missing)");
  EXPECT_EQ(failure([&] { read("blobs"); }), ErrorCode::image_invalid) << sentence_;
  EXPECT_EQ(failure([&] { read("../last"); }), ErrorCode::image_invalid) << sentence_;
  EXPECT_EQ(failure([&] { read("/last"); }), ErrorCode::image_invalid) << sentence_;
}

TEST_F(LocalSourceTest, AMemberThatIsThereTwiceIsNotUsed) {
  auto files = archive(TarBuilder().file("a", "1").file("./a", "2").finish());
  EXPECT_EQ(failure([&] { files->open("a"); }), ErrorCode::image_invalid);
  EXPECT_TRUE(says("twice")) << sentence_;
}

TEST_F(LocalSourceTest, AnArchiveWithTooManyMembersIsNoLayout) {
  TarBuilder tar;
  for (std::size_t i = 0; i < k_archive_members; ++i) tar.file("f" + std::to_string(i), "");
  auto files = archive(tar.file("late", "x").finish());
  EXPECT_TRUE(files->open("f1"));
  EXPECT_EQ(failure([&] { files->open("late"); }), ErrorCode::limit_exceeded);
}

TEST_F(LocalSourceTest, ALayoutDeliversItsDocumentsAndBlobs) {
  LayoutBuilder layout = one_image();
  for (bool packed : {false, true}) {
    std::unique_ptr<SourceFiles> files;
    if (packed) {
      files = archive(layout.tar());
    } else {
      files = std::make_unique<FolderFiles>(folder(layout));
    }
    LayoutSource source(std::move(files), "the layout", "", {});
    EXPECT_EQ(source.image_name(), "app:1");
    RawDocument top = source.top();
    EXPECT_EQ(top.media_type, k_oci_manifest);
    auto manifest = std::get<Manifest>(parse_document(top.bytes, top.media_type));
    EXPECT_EQ(parse_config(source.document(manifest.config, k_config_bytes).bytes).diff_ids.size(), 1U);
    ASSERT_EQ(manifest.layers.size(), 1U);
    MemorySink sink;
    source.fetch(manifest.layers[0], sink);
    EXPECT_EQ(sink.bytes, k_layer);
    MemorySink resumed(k_layer.substr(0, 700));
    source.fetch(manifest.layers[0], resumed);
    EXPECT_EQ(resumed.bytes, k_layer);
    Descriptor absent = manifest.layers[0];
    absent.digest = test::digest_of("something else");
    EXPECT_EQ(failure([&] { source.fetch(absent, sink); }), ErrorCode::image_invalid);
    EXPECT_EQ(failure([&] { source.document(manifest.layers[0], 10); }), ErrorCode::limit_exceeded);
  }
}

TEST_F(LocalSourceTest, ASavedArchiveDeliversAManifestMadeOfItsMembers) {
  std::string gzipped = test::compressed(k_layer, archive_write_add_filter_gzip);
  auto files =
      test::saved_files({{.image = {.layers = {k_layer}}, .tags = {"docker.io/library/app:1", "app:2"}}});
  std::string layer_path = sha256_hex(k_layer) + "/layer.tar";
  for (const std::string& layer : {k_layer, gzipped}) {
    files[layer_path] = layer;
    SavedSource source(archive(test::tar_of(files)), "the archive", "", std::nullopt);
    EXPECT_EQ(source.image_name(), "docker.io/library/app:1");
    auto manifest = std::get<Manifest>(parse_document(source.top().bytes, source.top().media_type));
    ASSERT_EQ(manifest.layers.size(), 1U);
    EXPECT_EQ(manifest.layers[0].digest, test::digest_of(layer));
    EXPECT_EQ(manifest.layers[0].media_type, layer == k_layer ? k_oci_layer : k_oci_layer_gzip);
    MemorySink sink;
    source.fetch(manifest.layers[0], sink);
    EXPECT_EQ(sink.bytes, layer);
  }
  SavedSource second(archive(test::tar_of(files)), "the archive", "app:2", std::nullopt);
  EXPECT_EQ(second.image_name(), "app:2");
}

TEST_F(LocalSourceTest, ASavedArchiveMayLinkEqualLayers) {
  auto files = test::saved_files({{.image = {.layers = {k_layer, k_layer}}, .tags = {"app:1"}}});
  Json manifest = *parse_json(files["manifest.json"]);
  manifest[0]["Layers"][1] = "other/layer.tar";
  files["manifest.json"] = dump_json(manifest);
  TarBuilder tar;
  for (const auto& [name, content] : files) tar.file(name, content);
  std::string linked = tar.symlink("other/layer.tar", "../" + sha256_hex(k_layer) + "/layer.tar").finish();
  SavedSource source(archive(linked), "the archive", "", std::nullopt);
  EXPECT_EQ(std::get<Manifest>(parse_document(source.top().bytes, "")).layers.size(), 2U);

  for (const char* target : {"/etc/shadow", "../../../etc/shadow", "layer.tar", "missing"}) {
    TarBuilder hostile;
    for (const auto& [name, content] : files) hostile.file(name, content);
    std::string bytes = hostile.symlink("other/layer.tar", target).finish();
    EXPECT_EQ(failure([&] { SavedSource(archive(bytes), "the archive", "", std::nullopt); }),
              ErrorCode::image_invalid)
        << target << ": " << sentence_;
  }
}

TEST_F(LocalSourceTest, ImportsEveryFormOfAnImage) {
  LayoutBuilder layout = one_image();
  auto saved = test::tar_of(test::saved_files({{.image = {.layers = {k_layer}}, .tags = {"app:1"}}}));
  auto both = layout.files();
  for (const auto& [name, content] :
       test::saved_files({{.image = {.layers = {k_layer}}, .tags = {"app:1"}}})) {
    both[name] = content;
  }
  std::vector<std::pair<std::string, fs::path>> forms{
      {"a layout's folder", folder(layout)},
      {"a layout's tar", file("layout.tar", layout.tar())},
      {"a layout's tar, gzip",
       file("l.tar.gz", test::compressed(layout.tar(), archive_write_add_filter_gzip))},
      {"a layout's tar, zstd",
       file("l.tar.zst", test::compressed(layout.tar(), archive_write_add_filter_zstd))},
      {"a saved archive", file("saved.tar", saved)},
      {"a saved archive, gzip", file("s.tgz", test::compressed(saved, archive_write_add_filter_gzip))},
      {"a saved archive with a layout in it", file("both.tar", test::tar_of(both))},
  };
  std::string digest;
  for (const auto& [form, source] : forms) {
    Image image = import(source);
    EXPECT_EQ(image.reference, "app:1") << form;
    EXPECT_EQ(test::content_of(image.ext4, "/hello"), "from the layer") << form;
    if (digest.empty()) digest = image.digest;
    EXPECT_EQ(image.digest, digest) << form << " gives another image";
    store_.remove(image.reference);
  }
  EXPECT_EQ(import_piped(layout.tar()).digest, digest);
  EXPECT_EQ(import_piped(test::compressed(saved, archive_write_add_filter_gzip)).digest, digest);
}

TEST_F(LocalSourceTest, ImportsRootFileSystems) {
  fs::create_directories(path("root/etc"));
  file("root/etc/name", "from the folder");
  std::string tar = TarBuilder().file("etc/name", "from the tar").finish();
  ImageConfig config{.env = {"A=1"}, .cmd = {"/bin/sh"}};
  Image image = import(path("root"), {.config = config});
  EXPECT_EQ(image.reference, "root:latest");
  EXPECT_EQ(image.config.cmd, config.cmd);
  EXPECT_EQ(test::content_of(image.ext4, "/etc/name"), "from the folder");
  EXPECT_EQ(test::check(image.ext4).exit_code, 0);
  image = import(file("My.Root_1.tar.gz", test::compressed(tar, archive_write_add_filter_gzip)));
  EXPECT_EQ(image.reference, "my.root-1:latest");
  EXPECT_EQ(test::content_of(image.ext4, "/etc/name"), "from the tar");
  EXPECT_EQ(import_piped(tar, {.reference = "piped:1"}).digest, image.digest);
  EXPECT_EQ(failure([&] { import_piped(tar); }), ErrorCode::usage) << "bytes of a pipe have no name";
}

TEST_F(LocalSourceTest, APrefixSaysWhatAPlaceIs) {
  LayoutBuilder layout = one_image();
  auto files = layout.files();
  files["etc/name"] = "x";
  for (const auto& [name, content] : files) {
    make_private_directory((path("mixed") / name).parent_path());
    file("mixed/" + name, content);
  }
  Image as_root = import("rootfs:" + path("mixed").string());
  EXPECT_EQ(as_root.reference, "mixed:latest");
  EXPECT_EQ(test::content_of(as_root.ext4, "/etc/name"), "x");
  EXPECT_EQ(import("rootfs:" + file("mixed.tar", test::tar_of(files)).string()).reference, "mixed:latest");
  EXPECT_EQ(import("oci:" + path("mixed").string() + ":app:1").reference, "app:1");
  EXPECT_EQ(import_error("oci:" + path("mixed").string() + ":other"), ErrorCode::usage);
  EXPECT_TRUE(says("app:1")) << sentence_;
  std::string saved =
      test::tar_of(test::saved_files({{.image = {.layers = {k_layer}}, .tags = {"saved:3"}}}));
  EXPECT_EQ(import("docker-archive:" + file("s.tar", saved).string() + ":saved:3").reference, "saved:3");
  EXPECT_EQ(import_error("docker-archive:" + path("mixed").string()), ErrorCode::usage);
}

TEST_F(LocalSourceTest, TheResultIsCalledWhatTheUserOrTheSourceSays) {
  auto named = [&](std::string_view name, const std::string& wanted = "") {
    LayoutBuilder layout = one_image(name);
    return import(folder(layout, "Some.Layout"), {.reference = wanted}).reference;
  };
  EXPECT_EQ(named("app:1", "mine"), "mine:latest");
  EXPECT_EQ(named("docker.io/library/app:1"), "app:1");
  EXPECT_EQ(named("v2"), "some.layout:v2") << "a name without '/' and ':' is a tag of the folder";
  EXPECT_EQ(named(""), "some.layout:latest");
  EXPECT_EQ(named("Not A Name"), "some.layout:latest");
  EXPECT_EQ(named("app:1@sha256:" + std::string(64, 'a')), "app:1");
  LayoutBuilder layout;
  Json entry = layout.image({.layers = {k_layer}});
  entry["annotations"] = {{"io.containerd.image.name", "docker.io/library/full:9"},
                          {"org.opencontainers.image.ref.name", "9"}};
  layout.list(entry);
  EXPECT_EQ(import(folder(layout)).reference, "full:9");
  EXPECT_EQ(import_error(folder(layout), {.reference = "Not A Name"}), ErrorCode::usage);
}

TEST_F(LocalSourceTest, ALayoutOfOneImageForSeveralPlatformsHasOneChoice) {
  LayoutBuilder layout;
  auto add = [&](const char* architecture, const std::string& content) {
    Json config = test::config_of({layer_with("hello", content)});
    config["architecture"] = architecture;
    Json entry = layout.image({.layers = {layer_with("hello", content)}, .config = config});
    entry["platform"] = {{"os", "linux"}, {"architecture", architecture}};
    layout.list(entry);
  };
  add("arm64", "arm");
  add("amd64", "intel");
  EXPECT_EQ(test::content_of(import(folder(layout)).ext4, "/hello"), "intel");
  EXPECT_EQ(import_error(folder(layout), {.platform = {.architecture = "s390x"}}), ErrorCode::not_found);
}

TEST_F(LocalSourceTest, IMG_30_OfTwoImagesOneIsSelected) {
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

TEST_F(LocalSourceTest, IMG_30_LinksInALayoutsFolderAreNotFollowed) {
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

TEST_F(LocalSourceTest, IMG_30_OnlyRegularFilesAreRead) {
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

TEST_F(LocalSourceTest, IMG_30_LinksAndOddNamesInALayoutsTarAreNotUsed) {
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

TEST_F(LocalSourceTest, IMG_30_ALayoutWithoutItsFilesIsInvalid) {
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

TEST_F(LocalSourceTest, IMG_30_AnArchiveCutShortIsInvalid) {
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

TEST_F(LocalSourceTest, IMG_30_APipeIsReadOnceToItsEnd) {
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

TEST_F(LocalSourceTest, IMG_30_WhatIsNoImageIsToldInASentence) {
  EXPECT_EQ(import_error(file("Dockerfile", "# syntax=docker/dockerfile:1\n\nFROM debian\nRUN true\n")),
            ErrorCode::usage);
  EXPECT_TRUE(says("docker save")) << sentence_;
  EXPECT_EQ(failure([&] { import_piped("ARG V=1\nFROM a:$V\n", {.reference = "x"}); }), ErrorCode::usage)
      << sentence_;
  fs::create_directory(path("project"));
  file("project/Dockerfile", "FROM debian\n");
  EXPECT_EQ(import_error(path("project")), ErrorCode::usage);
  EXPECT_TRUE(says("docker save")) << sentence_;

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

TEST_F(LocalSourceTest, AnArchiveThatUnpacksWithoutEndIsStopped) {
  std::string zeros = test::compressed(TarBuilder().file("zeros", std::string(64U << 20, '\0')).finish(),
                                       archive_write_add_filter_gzip);
  Limits limits{.entries = 10, .unpacked_bytes = 1 << 20};
  EXPECT_EQ(import_error(file("bomb.tar.gz", zeros), {.limits = limits}), ErrorCode::limit_exceeded)
      << sentence_;
  expect_empty_store();
}

TEST_F(LocalSourceTest, ACancelledImportEnds) {
  auto [reader, writer] = make_pipe();
  CancellationToken cancel;
  cancel.cancel();
  EXPECT_EQ(
      failure([&] { import_image(store_, reader.get(), options({.reference = "x", .cancel = cancel})); }),
      ErrorCode::cancelled);
  fs::create_directories(path("root/etc"));
  EXPECT_EQ(import_error(path("root"), {.cancel = cancel}), ErrorCode::cancelled);
  expect_empty_store();
}

struct Damage {
  std::string name;
  std::string (*apply)(std::string);
};
std::string flip(std::string bytes) {
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  return bytes;
}
const std::vector<Damage> k_damages{
    {"one bit flipped", flip},
    {"a byte at the front", [](std::string bytes) { return " " + bytes; }},
    {"a byte at the end", [](std::string bytes) { return bytes + "\n"; }},
    {"cut by one byte", [](std::string bytes) { return bytes.substr(0, bytes.size() - 1); }},
};

/// The image of IMG-01: its layer is gzip, so that other bytes can hold the same tar.
struct Subject {
  LayoutBuilder layout;
  std::string layer = test::compressed(k_layer, archive_write_add_filter_gzip);
  std::string config = dump_json(test::config_of({k_layer}));

  /// `config_size` and `layer_size` are added to what the manifest says.
  std::string write(int manifest_size = 0, int config_size = 0, int layer_size = 0) {
    layout = LayoutBuilder();
    auto with_size = [](Json descriptor, int more) {
      descriptor["size"] = descriptor["size"].get<std::int64_t>() + more;
      return descriptor;
    };
    Json manifest =
        test::manifest_of(with_size(layout.blob(k_oci_config, config), config_size),
                          Json::array({with_size(layout.blob(k_oci_layer_gzip, layer), layer_size)}));
    layout.list(with_size(layout.blob(k_oci_manifest, dump_json(manifest)), manifest_size), "app:1");
    return dump_json(manifest);
  }
};

TEST_F(LocalSourceTest, IMG_01_ABlobOfALayoutThatIsNotWhatItsNameSays) {
  Subject subject;
  std::string manifest = subject.write();
  auto expect_mismatch = [&](const LayoutBuilder& layout, const std::string& what, const std::string& named) {
    for (const fs::path& source : {folder(layout), file("lying.tar", layout.tar())}) {
      EXPECT_EQ(import_error(source), ErrorCode::digest_mismatch)
          << what << " in " << source << ": " << sentence_;
      EXPECT_TRUE(says(named)) << what << ": " << sentence_;
    }
    EXPECT_TRUE(store_.list().empty()) << what;
  };
  for (const std::string& blob : {manifest, subject.config, subject.layer}) {
    for (const Damage& damage : k_damages) {
      LayoutBuilder damaged = subject.layout;
      damaged.file("blobs/sha256/" + sha256_hex(blob), damage.apply(blob));
      expect_mismatch(damaged, damage.name, sha256_hex(blob));
    }
  }
  LayoutBuilder packed_anew = subject.layout;
  packed_anew.file("blobs/sha256/" + sha256_hex(subject.layer), k_layer);
  expect_mismatch(packed_anew, "the layer packed in another way", sha256_hex(subject.layer));
  for (int off : {-1, 1}) {
    std::string said = "size off by " + std::to_string(off);
    expect_mismatch((subject.write(off), subject.layout), said, sha256_hex(manifest));
    subject.write(0, off);
    expect_mismatch(subject.layout, said, sha256_hex(subject.config));
    subject.write(0, 0, off);
    expect_mismatch(subject.layout, said, sha256_hex(subject.layer));
  }
  subject.write();
  EXPECT_EQ(import(folder(subject.layout)).reference, "app:1") << "after all refusals the good one is taken";
}

TEST_F(LocalSourceTest, IMG_02_ALayerOfASavedArchiveIsHeldAgainstTheConfiguration) {
  auto files = test::saved_files({{.image = {.layers = {k_layer}}, .tags = {"app:1"}}});
  files[sha256_hex(k_layer) + "/layer.tar"] = layer_with("hello", "another content");
  EXPECT_EQ(import_error(file("lying.tar", test::tar_of(files))), ErrorCode::digest_mismatch) << sentence_;
  for (std::size_t count : {0U, 2U}) {
    auto lying = test::saved_files(
        {{.image = {.layers = {k_layer}, .config = test::config_of(std::vector(count, k_layer))},
          .tags = {"app:1"}}});
    ErrorCode code = import_error(file("lying.tar", test::tar_of(lying)));
    EXPECT_TRUE(code == ErrorCode::digest_mismatch || code == ErrorCode::image_invalid)
        << count << ": " << sentence_;
  }
  EXPECT_TRUE(store_.list().empty());
}

TEST(Location, IMG_15_APathIsOnlyMeantByItsBeginning) {
  for (const char* text : {"/x", "./x", "../x", "oci:x", "docker-archive:x", "rootfs:x"}) {
    EXPECT_TRUE(is_local_image(text)) << text;
  }
  for (const char* text : {"x", "x/y", ".", "a.tar", "ocix", "library/oci:1", "", "~/x", "-"}) {
    EXPECT_FALSE(is_local_image(text)) << text;
  }
}

TEST(Location, APrefixesPathEndsAtItsFirstColonUnlessTheWholeIsThere) {
  Location location = parse_location("oci:/no/such:app:1");
  EXPECT_EQ(location.kind, LocalKind::layout);
  EXPECT_EQ(location.path, "/no/such");
  EXPECT_EQ(location.select, "app:1");
  TempDir dir;
  fs::path odd = dir.path() / "a:b";
  fs::create_directory(odd);
  location = parse_location("oci:" + odd.string());
  EXPECT_EQ(location.path, odd);
  EXPECT_EQ(location.select, "");
  EXPECT_EQ(parse_location("rootfs:/x:y").path, "/x:y");
  EXPECT_EQ(parse_location("plain:name.tar").path, "plain:name.tar");
}

TEST(Location, AFilesNameBecomesAnImages) {
  EXPECT_EQ(name_after("dir/App_v1.2.tar.gz"), "app-v1.2");
  EXPECT_EQ(name_after("./root/"), "root");
  EXPECT_EQ(name_after("a..b--c .tar"), "a.b-c");
  EXPECT_EQ(name_after(".hidden.tar"), "hidden");
  EXPECT_EQ(name_after("\xff\xfe.tar"), "");
  EXPECT_EQ(name_after("/"), "");
}

}  // namespace
}  // namespace holt::image
