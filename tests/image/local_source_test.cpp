// Layouts and saved archives as sources.
#include "holt/base/encoding.hpp"
#include "image/local/layout_source.hpp"
#include "image/local/saved_source.hpp"
#include "image/local_fixture.hpp"

#include <unistd.h>

#include <archive.h>

namespace holt::image {
namespace {

namespace fs = std::filesystem;
using namespace test;
using LocalSourceTest = LocalImageTest;

/// Keeps a blob in memory.
class MemorySink final : public BlobSink {
 public:
  explicit MemorySink(std::string have = {}) : bytes(std::move(have)) {}
  std::uint64_t offset() const override { return bytes.size(); }
  void restart() override { bytes.clear(); }
  void write(std::string_view more) override { bytes += more; }
  bool is_right() override { return true; }
  std::string bytes;
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

}  // namespace
}  // namespace holt::image
