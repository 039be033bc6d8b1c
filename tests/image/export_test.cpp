// What `holt image export` writes: read by others, and the same each time.
#include "holt/base/process.hpp"
#include "image/byte_source.hpp"
#include "image/store_fixture.hpp"
#include "image/tar_reader.hpp"

#include <fcntl.h>
#include <map>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace holt::image {
namespace {

using test::FakeImage;
using test::TarBuilder;
using test::three_layers;
using namespace std::chrono_literals;

class Export : public test::StoreFixture {
 protected:
  std::filesystem::path export_to(const std::string& name, const std::string& reference = "app:1") {
    auto file = dir_.path() / name;
    Fd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    export_image(store_, reference, fd.get());
    return file;
  }
  static std::map<std::string, std::string> members(const std::filesystem::path& file) {
    Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    FdSource source(fd.get(), std::nullopt);
    TarReader reader(source);
    std::map<std::string, std::string> found;
    while (auto member = reader.next().value()) {
      std::string content;
      while (auto data = reader.next_data().value()) content += data->bytes;
      found[member->path] = content;
    }
    return found;
  }
  /// Exit code of skopeo, with what it wrote; nothing when it is not installed.
  static std::optional<ProcessResult> skopeo(std::vector<std::string> argv) {
    if (::access("/usr/bin/skopeo", X_OK) != 0) return std::nullopt;
    argv.insert(argv.begin(), {"/usr/bin/skopeo", "--insecure-policy"});
    return run_process({.argv = std::move(argv)}, {.deadline = Deadline::after(120s)});
  }
};

TEST_F(Export, IsALayoutAndAnArchive) {
  FakeImage fake({.layers = three_layers()});
  acquire_image(fake);
  auto found = members(export_to("app.tar"));
  for (const auto& [digest, bytes] : fake.blobs) EXPECT_EQ(found["blobs/sha256/" + digest.substr(7)], bytes);
  EXPECT_EQ(found["blobs/sha256/" + fake.top_digest().substr(7)], fake.top());
  EXPECT_EQ(found["oci-layout"], R"({"imageLayoutVersion":"1.0.0"})");
  auto index = std::get<Index>(parse_document(found["index.json"], {}));
  ASSERT_EQ(index.manifests.size(), 1U);
  EXPECT_EQ(index.manifests[0].digest, fake.top_digest());
  EXPECT_EQ(index.manifests[0].name, "app:1");
  auto saved = parse_json(found["manifest.json"]).value();
  EXPECT_EQ(saved[0]["RepoTags"], Json::array({"app:1"}));
  EXPECT_EQ(saved[0]["Config"], "blobs/sha256/" + fake.digest().substr(7));
  EXPECT_EQ(saved[0]["Layers"].size(), 3U);
}

TEST_F(Export, IsTheSameEachTimeAndWritesASharedLayerOnce) {
  std::string layer = TarBuilder().file("a", "1").finish();
  acquire_image(FakeImage({.layers = {layer, TarBuilder().file("a", "2").finish(), layer}}));
  auto first = read_file(export_to("1.tar"), 1 << 20);
  EXPECT_EQ(first, read_file(export_to("2.tar"), 1 << 20));
  EXPECT_EQ(members(dir_.path() / "1.tar").size(), 2U + 4U + 3U);
  EXPECT_EQ(files_in("staging"), 0U);
}

TEST_F(Export, ComesBackAsTheSameImage) {
  FakeImage fake({.layers = three_layers()});
  Image image = acquire_image(fake);
  auto file = export_to("app.tar");
  Store other(dir_.path() / "other");
  Image back = import_image(other, file.string(), {.disk_bytes = test::k_disk});
  EXPECT_EQ(back.digest, image.digest);
  EXPECT_EQ(back.reference, "app:1");
  EXPECT_EQ(back.content_digest, image.content_digest);
  EXPECT_EQ(back.manifest_digest, image.manifest_digest);
}

TEST_F(Export, OtherToolsReadBothOfItsForms) {
  FakeImage fake({.layers = three_layers()});
  acquire_image(fake);
  auto file = export_to("app.tar").string();
  for (const std::string& source : {"oci-archive:" + file, "docker-archive:" + file + ":app:1"}) {
    auto target = dir_.path() / ("copy-" + source.substr(0, source.find(':')));
    auto result = skopeo({"copy", source, "dir:" + target.string()});
    if (!result) GTEST_SKIP() << "skopeo is not installed";
    EXPECT_EQ(result->status.exit_code, 0) << source << ": " << result->err;
    auto config = read_file_if_exists(target / fake.digest().substr(7), 1 << 20);
    EXPECT_EQ(config, fake.blobs.at(fake.digest())) << source;
  }
}

TEST_F(Export, AnImageWithoutLayersHasBlobsAllTheSame) {
  FakeImage fake({.layers = {}});
  Image image = acquire_image(fake);
  EXPECT_TRUE(verify(store_).empty());
  auto file = export_to("none.tar");
  Store other(dir_.path() / "other");
  Image back = import_image(other, file.string(), {.disk_bytes = test::k_disk});
  EXPECT_EQ(back.digest, image.digest);
  EXPECT_EQ(back.content_digest, image.content_digest);
  std::filesystem::remove(blobs_.path(fake.digest()));
  auto damage = verify(store_);
  ASSERT_EQ(damage.size(), 1U);
  EXPECT_EQ(damage[0].fix, "holt pull app:1");
}

TEST_F(Export, AMissingOrDamagedBlobIsNamed) {
  FakeImage fake({.layers = three_layers()});
  acquire_image(fake);
  auto layer = blobs_.path(fake.layer(1));
  std::filesystem::rename(layer, dir_.path() / "aside");
  Error missing = error_of([&] { export_to("1.tar"); });
  EXPECT_EQ(missing.code(), ErrorCode::not_found);
  EXPECT_NE(std::string(missing.what()).find(fake.layer(1)), std::string::npos);
  EXPECT_NE(missing.hint().find("holt pull app:1"), std::string::npos);
  write_file_atomically(layer, std::string(read_file(dir_.path() / "aside", 1 << 20).size(), 'x'));
  EXPECT_EQ(error_of([&] { export_to("2.tar"); }).code(), ErrorCode::not_found);
}

TEST_F(Export, WhatWasMadeOfARootFileSystemHasNoLayersToWrite) {
  auto tar = dir_.path() / "root.tar";
  write_file_atomically(tar, TarBuilder().file("a", "1").finish());
  store_.import_root_tar(tar, "root:1", {.disk_bytes = test::k_disk});
  Error error = error_of([&] { export_to("1.tar", "root:1"); });
  EXPECT_EQ(error.code(), ErrorCode::not_supported);
  EXPECT_NE(error.hint().find("holt create out root:1; holt start out; holt cp -a out:/ -"),
            std::string::npos)
      << error.hint();
  EXPECT_EQ(error_of([&] { export_to("1.tar", "nobody:1"); }).code(), ErrorCode::not_found);
}

TEST_F(Export, IMG_32_ARemovalDoesNotTakeBlobsFromUnderIt) {
  FakeImage fake({.layers = three_layers()});
  acquire_image(fake);
  auto [read_end, write_end] = make_pipe();
  std::string out;
  std::thread writer([&, fd = std::move(write_end)]() mutable {
    export_image(store_, "app:1", fd.get());
    fd.reset();
  });
  char byte = 0;
  ASSERT_EQ(::read(read_end.get(), &byte, 1), 1);
  store_.remove("app:1");
  prune(store_);
  out += byte;
  for (std::string buffer(65536, '\0');;) {
    ssize_t n = ::read(read_end.get(), buffer.data(), buffer.size());
    if (n <= 0) break;
    out += buffer.substr(0, static_cast<std::size_t>(n));
  }
  writer.join();
  auto file = dir_.path() / "out.tar";
  write_file_atomically(file, out);
  EXPECT_EQ(members(file)["blobs/sha256/" + fake.layer(2).substr(7)], fake.blobs.at(fake.layer(2)));
  prune(store_);
  EXPECT_TRUE(blobs_.all().empty());
}

}  // namespace
}  // namespace holt::image
