// Imports of layouts, saved archives and root file systems, and what the results are called.
#include "holt/base/process.hpp"
#include "image/ext4_reader.hpp"
#include "image/local/location.hpp"
#include "image/local_fixture.hpp"

#include <cstdlib>

#include <archive.h>

namespace holt::image {
namespace {

namespace fs = std::filesystem;
using namespace test;
using LocalImportTest = LocalImageTest;

TEST_F(LocalImportTest, ImportsEveryFormOfAnImage) {
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

TEST_F(LocalImportTest, ImportsWhatSkopeoWrites) {
  auto skopeo = [](std::vector<std::string> arguments) {
    std::vector<std::string> argv{"skopeo", "--insecure-policy", "copy", "--quiet"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    const char* path = std::getenv("PATH");
    return run_process({.argv = argv, .env = {{"PATH", path ? path : ""}, {"HOME", "/nonexistent"}}}, {});
  };
  try {
    skopeo({"--help"});
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  LayoutBuilder layout;
  layout.list(layout.image({.layers = {k_layer, layer_with("second", "2"), k_layer}}), "v1");
  std::string source = "oci:" + folder(layout).string() + ":v1";
  std::string digest = import(folder(layout)).digest;
  for (const std::string form : {"docker-archive", "oci-archive"}) {
    auto copied = skopeo({source, form + ":" + path(form + ".tar").string() + ":app:7"});
    ASSERT_EQ(copied.status.shell_code(), 0) << form << ": " << copied.err;
    Image image = import(path(form + ".tar"));
    EXPECT_EQ(image.reference, "app:7") << form;
    EXPECT_EQ(image.digest, digest) << form;
    EXPECT_EQ(test::content_of(image.ext4, "/second"), "2") << form;
  }
}

TEST_F(LocalImportTest, ImportsRootFileSystems) {
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

TEST_F(LocalImportTest, APrefixSaysWhatAPlaceIs) {
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

TEST_F(LocalImportTest, TheResultIsCalledWhatTheUserOrTheSourceSays) {
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

TEST_F(LocalImportTest, ALayoutOfOneImageForSeveralPlatformsHasOneChoice) {
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
  EXPECT_EQ(name_after("rootfs.tar"), "rootfs-image");  // a name that is no place
  EXPECT_FALSE(is_local_image(name_after("oci.tar") + ":latest"));
}

}  // namespace
}  // namespace holt::image
