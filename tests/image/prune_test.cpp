// What goes, what stays, what is damaged and comes back.
#include "image/content_digest.hpp"
#include "image/ext4_reader.hpp"
#include "image/restore.hpp"
#include "image/store_fixture.hpp"

#include <fcntl.h>
#include <latch>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace holt::image {
namespace {

using test::FakeImage;
using test::FakeSource;
using test::TarBuilder;
using test::three_layers;

class Prune : public test::StoreFixture {
 protected:
  /// Changes a byte of a file that nothing may write to.
  static void flip_a_byte(const std::filesystem::path& file, off_t at) {
    ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
    Fd fd(::open(file.c_str(), O_RDWR | O_CLOEXEC));
    char byte = 0;
    ASSERT_EQ(::pread(fd.get(), &byte, 1, at), 1);
    byte = static_cast<char>(byte ^ 1);
    ASSERT_EQ(::pwrite(fd.get(), &byte, 1, at), 1);
  }
  static void cut(const std::filesystem::path& file, off_t size) {
    ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
    ASSERT_EQ(::truncate(file.c_str(), size), 0);
  }
  /// Exactly one damage, and what it says.
  Damage only_damage() {
    auto found = verify(store_);
    if (found.size() == 1) return found[0];
    ADD_FAILURE() << found.size() << " damages were found, expected one";
    return {};
  }
};

using Damaged = Prune;

TEST_F(Prune, IMG_32_TakesWhatNoImageNeeds) {
  auto layers = three_layers();
  FakeImage small({.layers = {layers[0], layers[1]}});
  FakeImage large({.layers = layers});
  acquire_image(small, "small:1");
  acquire_image(large, "large:1");
  store_.remove("large:1");
  EXPECT_FALSE(blobs_.size(large.layer(2))) << "a layer that nothing needs stayed";
  EXPECT_TRUE(blobs_.size(small.layer(0))) << "a shared layer went";
  EXPECT_EQ(blobs_.all().size(), 4U);
  expect_sound();
  EXPECT_TRUE(prune(store_).blobs.empty());
  EXPECT_EQ(blobs_.all().size(), 4U);
}

TEST_F(Prune, IMG_32_TwoNamesAreOneImageUntilTheLastGoes) {
  FakeImage fake({.layers = three_layers()});
  acquire_image(fake, "app:1");
  acquire_image(fake, "app:2");
  auto in_use = [](const Image&) { return true; };
  store_.remove("app:1", {.in_use = in_use});
  EXPECT_TRUE(store_.find("app:2"));
  EXPECT_EQ(error_of([&] { store_.remove("app:2", {.in_use = in_use}); }).code(), ErrorCode::conflict);
  EXPECT_EQ(error_of([&] { store_.remove(fake.digest(), {.in_use = in_use}); }).code(), ErrorCode::conflict);
  expect_sound();
  store_.remove(fake.digest().substr(7, 12));
  EXPECT_TRUE(blobs_.all().empty());
  EXPECT_EQ(files_in("entries"), 0U);
}

TEST_F(Prune, IMG_32_ANameGivenUpTwiceAtOnceTakesNoOtherNamesImage) {
  FakeImage fake({.layers = {three_layers()[2]}});
  acquire_image(fake, "app:kept");
  for (int round = 0; round < 30; ++round) {
    acquire_image(fake, "app:1");
    std::vector<std::jthread> removers;
    std::latch together(4);
    for (int i = 0; i < 4; ++i) {
      removers.emplace_back([&] {
        together.arrive_and_wait();
        try {
          Store(store_.folder()).remove("app:1");
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::not_found) << error.what();
        }
      });
    }
    removers.clear();
    ASSERT_TRUE(store_.find("app:kept")) << "in round " << round;
    ASSERT_FALSE(store_.find("app:1"));
  }
  expect_sound();
}

TEST_F(Prune, TakesImagesWithoutANameAndNoneInUse) {
  auto layers = three_layers();
  FakeImage old({.layers = {layers[0]}});
  FakeImage used({.layers = {layers[1]}});
  FakeImage last({.layers = {layers[2]}});
  for (const FakeImage* image : {&old, &used, &last}) acquire_image(*image, "moving:1");
  PruneOptions options{.in_use = [&](const Image& image) { return image.digest == used.digest(); }};
  options.dry_run = true;
  auto said = prune(store_, options);
  EXPECT_EQ(store_.list().size(), 3U);
  options.dry_run = false;
  auto done = prune(store_, options);
  EXPECT_EQ(done.images, std::vector<std::string>{old.digest()});
  EXPECT_EQ(said.images, done.images);
  std::ranges::sort(done.blobs);
  EXPECT_EQ(said.blobs, done.blobs);
  EXPECT_EQ(said.blobs.size(), 3U);
  EXPECT_EQ(said.bytes, done.bytes);
  EXPECT_GT(done.bytes, 300'000U);
  EXPECT_EQ(store_.list().size(), 2U);
  expect_sound();
}

TEST_F(Prune, AllTakesNamedImagesToo) {
  FakeImage fake({.layers = three_layers()});
  acquire_image(fake, "app:1");
  EXPECT_TRUE(prune(store_).images.empty());
  auto report = prune(store_, {.all = true, .in_use = [](const Image&) { return true; }});
  EXPECT_TRUE(report.images.empty());
  report = prune(store_, {.all = true});
  EXPECT_EQ(report.images, std::vector<std::string>{"app:1"});
  EXPECT_TRUE(store_.list().empty());
  EXPECT_TRUE(blobs_.all().empty());
}

TEST_F(Prune, WhatIsYoungerThanAskedForStays) {
  FakeImage fake({.layers = three_layers()});
  acquire_image(fake, "app:1");
  auto report = prune(store_, {.all = true, .older_than = std::chrono::hours(1)});
  EXPECT_TRUE(report.images.empty());
  EXPECT_TRUE(report.blobs.empty());
  EXPECT_TRUE(store_.find("app:1"));
}

TEST_F(Prune, TakesBeginningsOfDownloadsThatNobodyIsAt) {
  FakeImage fake({.layers = {TarBuilder().file("big", test::noise(500'000, 1)).finish()}});
  FakeSource cut_short(fake);
  cut_short.before_piece = [](const Descriptor&, std::uint64_t at, BlobSink&) {
    if (at > 100'000) throw Error(ErrorCode::network_error, "gone");
  };
  error_of(cut_short);
  EXPECT_GT(blobs_.partial_size(fake.layer(0)), 0U);
  auto report = prune(store_);
  EXPECT_EQ(report.blobs.size(), 3U) << "the manifest, the configuration and the beginning of the layer";
  EXPECT_EQ(blobs_.partial_size(fake.layer(0)), 0U);
  EXPECT_TRUE(blobs_.all().empty());
}

TEST_F(Prune, IMG_32_NeverTakesABlobOfAPullUnderWay) {
  auto layers = three_layers();
  FakeImage fake({.layers = layers});
  FakeSource source(fake);
  source.threads = 1;
  int prunings = 0;
  // At every piece, also when whole layers are there that no image has yet.
  source.before_piece = [&](const Descriptor&, std::uint64_t, BlobSink&) {
    ++prunings;
    auto report = prune(store_, {.all = true});
    EXPECT_TRUE(report.blobs.empty()) << "a blob of a pull under way was taken";
    EXPECT_TRUE(report.images.empty());
  };
  Image image = acquire_from(source);
  EXPECT_GT(prunings, 5);
  for (const auto& [digest, begun] : source.fetches()) EXPECT_EQ(begun.size(), 1U) << digest;
  EXPECT_EQ(image.layers.size(), 3U);
  expect_sound();
}

TEST_F(Prune, IMG_32_NeverTakesWhatAPullFoundHere) {
  auto layers = three_layers();
  FakeImage base({.layers = {layers[0], layers[1]}});
  FakeImage fake({.layers = layers});
  acquire_image(base, "base:1");
  FakeSource source(fake);
  source.before_piece = [&](const Descriptor&, std::uint64_t, BlobSink&) {
    if (store_.find("base:1")) store_.remove("base:1");
    prune(store_, {.all = true});
  };
  acquire_from(source);
  EXPECT_EQ(source.fetches().size(), 1U) << "layers that were here were fetched again";
  EXPECT_FALSE(store_.find("base:1"));
  expect_sound();
}

TEST_F(Damaged, IMG_08_AMissingOrCutFileSystemIsBuiltAgainFromItsBlobs) {
  FakeImage fake({.layers = three_layers()});
  Image image = acquire_image(fake);
  for (bool gone : {true, false}) {
    gone ? static_cast<void>(std::filesystem::remove(image.ext4)) : cut(image.ext4, 1'000'000);
    EXPECT_FALSE(store_.find("app:1"));
    Error error = error_of([&] { store_.resolve("app:1"); });
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_NE(std::string(error.what()).find("file system"), std::string::npos) << error.what();
    EXPECT_NE(error.hint().find("holt pull app:1"), std::string::npos) << error.hint();
    Damage damage = only_damage();
    EXPECT_EQ(damage.reference, "app:1");
    EXPECT_EQ(damage.fix, "holt pull app:1");

    Image restored = restore(store_, "app:1");
    EXPECT_EQ(restored.reference, "app:1");
    EXPECT_EQ(restored.content_digest, image.content_digest);
    EXPECT_EQ(restored.disk_bytes, test::k_disk);
    EXPECT_EQ(test::check(restored.ext4).exit_code, 0);
    expect_sound();
  }
}

TEST_F(Damaged, IMG_08_ALostRecordIsWrittenAgain) {
  FakeImage fake({.layers = three_layers()});
  Image image = acquire_image(fake);
  std::filesystem::remove(image.ext4.parent_path() / "image.json");
  EXPECT_FALSE(store_.find("app:1"));
  EXPECT_TRUE(prune(store_).blobs.empty()) << "what the record is made of again was taken";
  EXPECT_NE(only_damage().what.find("image.json"), std::string::npos);
  Image restored = restore(store_, "app:1");
  EXPECT_EQ(restored.content_digest, image.content_digest);
  EXPECT_EQ(restored.disk_bytes, test::k_disk);
  EXPECT_EQ(restored.layers, image.layers);
  expect_sound();
}

TEST_F(Damaged, IMG_08_AWholeEntryThatWentIsBuiltAgain) {
  FakeImage fake({.layers = three_layers()});
  Image image = acquire_image(fake);
  std::filesystem::remove_all(image.ext4.parent_path());
  EXPECT_EQ(only_damage().fix, "holt pull app:1");
  EXPECT_EQ(restore(store_, "app:1").layers, image.layers);
}

TEST_F(Damaged, IMG_08_AFlippedByteOfTheFileSystemIsFoundAndRepairedByAPull) {
  FakeImage fake({.layers = three_layers()});
  Image image = acquire_image(fake);
  flip_a_byte(image.ext4, 1024 + 4);
  Damage damage = only_damage();
  EXPECT_NE(damage.what.find("root.ext4 has other bytes"), std::string::npos) << damage.what;
  FakeSource source(fake);
  Image repaired = acquire_from(source);
  EXPECT_TRUE(source.fetches().empty());
  EXPECT_EQ(repaired.content_digest, image.content_digest);
  expect_sound();
}

TEST_F(Damaged, IMG_08_DamagedBlobsAreFoundAndFetchedAgain) {
  FakeImage fake({.layers = three_layers()});
  Image image = acquire_image(fake);
  auto layer = blobs_.path(fake.layer(0));
  auto damages = std::vector<std::pair<const char*, std::function<void()>>>{
      {"missing", [&] { std::filesystem::remove(layer); }},
      {"other bytes", [&] { flip_a_byte(layer, 1000); }},
      {"other bytes", [&] { cut(layer, 1000); }},
  };
  for (const auto& [what, harm] : damages) {
    harm();
    Damage damage = only_damage();
    EXPECT_NE(damage.what.find(what), std::string::npos) << damage.what;
    EXPECT_NE(damage.what.find(fake.layer(0)), std::string::npos) << damage.what;
    EXPECT_TRUE(store_.find("app:1")) << "an image whose file system is whole can be used";
    FakeSource source(fake);
    acquire_from(source);
    EXPECT_EQ(source.fetches().size(), 1U);
    expect_sound();
  }
  EXPECT_EQ(store_.resolve("app:1").content_digest, image.content_digest);
}

TEST_F(Damaged, IMG_08_ADamagedBlobUnderABuildIsFetchedAgain) {
  FakeImage fake({.layers = three_layers()});
  Image image = acquire_image(fake);
  flip_a_byte(blobs_.path(fake.layer(0)), 100'000);
  std::filesystem::remove(image.ext4);
  FakeSource source(fake);
  EXPECT_EQ(acquire_from(source).content_digest, image.content_digest);
  EXPECT_EQ(source.fetches().size(), 1U);
  expect_sound();
}

TEST_F(Damaged, IMG_08_ARestoreThatLacksABlobNamesIt) {
  FakeImage fake({.layers = three_layers()});
  Image image = acquire_image(fake);
  std::filesystem::remove(image.ext4);
  std::filesystem::remove(blobs_.path(fake.layer(1)));
  Error error = error_of([&] { restore(store_, "app:1"); });
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_NE(std::string(error.what()).find(fake.layer(1)), std::string::npos) << error.what();
  EXPECT_NE(error.hint().find("holt pull app:1"), std::string::npos);
  EXPECT_TRUE(blobs_.size(fake.layer(0))) << "the other blobs went";
  EXPECT_EQ(acquire_image(fake).content_digest, image.content_digest);
}

TEST_F(Damaged, IMG_08_AFileSystemOfAnotherVersionIsNotReplacedUnderItsMachines) {
  FakeImage fake({.layers = three_layers()});
  Image image = acquire_image(fake);
  auto record = image.ext4.parent_path() / "image.json";
  auto text = read_file(record, 1 << 20);
  text.replace(text.find(image.content_digest), image.content_digest.size(), test::digest_of("older"));
  write_file_atomically(record, text);
  std::filesystem::remove(image.ext4);
  Error error = error_of([&] { restore(store_, "app:1"); });
  EXPECT_EQ(error.code(), ErrorCode::conflict);
  EXPECT_NE(error.hint().find("holt image rm"), std::string::npos);
  store_.remove("app:1");
  EXPECT_EQ(acquire_image(fake).content_digest, image.content_digest);
}

TEST_F(Damaged, IMG_08_ASmallerFileSystemComesAgainAsItWas) {
  if (::access("/sbin/resize2fs", X_OK) != 0 && ::access("/usr/sbin/resize2fs", X_OK) != 0)
    GTEST_SKIP() << "resize2fs of e2fsprogs is not installed";
  FakeImage fake({.layers = three_layers()});
  AcquireRequest request{.reference = parse_reference("app:1").value(), .disk_bytes = 4 * test::k_disk};
  FakeSource source(fake);
  Image image = acquire(store_, source, request);
  auto sized = store_.with_disk_size(image, test::k_disk);
  auto digest = content_digest(sized.ext4);
  EXPECT_EQ(test::check(sized.ext4).exit_code, 0);
  expect_sound();
  flip_a_byte(sized.ext4, 1024 + 4);
  EXPECT_NE(only_damage().what.find("root-64.ext4"), std::string::npos);
  acquire_image(fake);
  expect_sound();
  EXPECT_FALSE(std::filesystem::exists(sized.ext4));
  EXPECT_EQ(content_digest(store_.with_disk_size(image, test::k_disk).ext4), digest)
      << "the disks of machines would not fit it";
}

TEST_F(Damaged, IMG_08_AnImportedImageWithoutItsRecordIsToBeImportedAgain) {
  auto tar = dir_.path() / "root.tar";
  write_file_atomically(tar, TarBuilder().file("a", "1").finish());
  auto import = [&] { return store_.import_root_tar(tar, "root:1", {.disk_bytes = test::k_disk}); };
  std::filesystem::remove(import().ext4.parent_path() / "image.json");
  EXPECT_EQ(only_damage().fix, "holt image import FILE " + parse_reference("root:1").value().canonical());
  import();
  expect_sound();
}

TEST_F(Damaged, AnImageWithoutItsFilesCanBeRemoved) {
  FakeImage fake({.layers = three_layers()});
  Image image = acquire_image(fake);
  std::filesystem::remove(image.ext4);
  EXPECT_EQ(error_of([&] {
              store_.remove("app:1",
                            {.in_use = [&](const Image& asked) { return asked.digest == fake.digest(); }});
            }).code(),
            ErrorCode::conflict);
  store_.remove("app:1");
  EXPECT_EQ(files_in("entries"), 0U);
  EXPECT_EQ(files_in("references"), 0U);
}

TEST_F(Damaged, ABlobThatNobodyNeedsAndNobodyCanUseIsNamed) {
  std::string digest = test::digest_of("x");
  make_private_directory(blobs_.path(digest).parent_path());
  write_file_atomically(blobs_.path(digest), "y");
  EXPECT_EQ(only_damage().fix, "holt image prune");
  prune(store_);
  expect_sound();
}

class Policy : public Prune {
 protected:
  /// Nothing listens there: who asks it fails.
  Image get(PullPolicy policy, const std::string& reference = "127.0.0.1:1/app:1") {
    return pull(store_, reference,
                {.policy = policy, .registry = {.retries = 0}, .disk_bytes = test::k_disk});
  }
};

TEST_F(Policy, IMG_16_MissingAndNeverAskNobodyForWhatIsHere) {
  FakeImage fake({.layers = three_layers()});
  Image image = acquire_image(fake, "127.0.0.1:1/app:1");
  for (auto policy : {PullPolicy::missing, PullPolicy::never}) {
    EXPECT_EQ(get(policy).digest, image.digest);
    EXPECT_EQ(get(policy, image.digest).digest, image.digest);
    EXPECT_EQ(get(policy, "127.0.0.1:1/app@" + fake.top_digest()).digest, image.digest);
  }
  EXPECT_EQ(error_of([&] { get(PullPolicy::always); }).code(), ErrorCode::network_error);
  EXPECT_EQ(get(PullPolicy::never).digest, image.digest);
}

TEST_F(Policy, IMG_16_NeverAsksNobodyForWhatIsNotHere) {
  EXPECT_EQ(error_of([&] { get(PullPolicy::never); }).code(), ErrorCode::not_found);
  EXPECT_EQ(error_of([&] { get(PullPolicy::missing); }).code(), ErrorCode::network_error);
  EXPECT_EQ(error_of([&] { get(PullPolicy::missing, test::digest_of("x")); }).code(), ErrorCode::not_found);
  EXPECT_EQ(error_of([&] { get(PullPolicy::missing, "Bad Name"); }).code(), ErrorCode::usage);
}

TEST_F(Policy, IMG_08_MissingAndNeverBuildAgainWhatIsDamaged) {
  FakeImage fake({.layers = three_layers()});
  Image image = acquire_image(fake, "127.0.0.1:1/app:1");
  for (auto policy : {PullPolicy::missing, PullPolicy::never}) {
    std::filesystem::remove(image.ext4);
    EXPECT_EQ(get(policy).content_digest, image.content_digest);
  }
  std::filesystem::remove(image.ext4);
  std::filesystem::remove(blobs_.path(fake.layer(1)));
  Error here = error_of([&] { get(PullPolicy::never); });
  EXPECT_EQ(here.code(), ErrorCode::not_found);
  EXPECT_NE(std::string(here.what()).find(fake.layer(1)), std::string::npos) << here.what();
  EXPECT_EQ(error_of([&] { get(PullPolicy::missing); }).code(), ErrorCode::network_error);
}

TEST_F(Policy, AnImageForAnotherPlatformIsNotWhatIsAskedFor) {
  auto layers = three_layers();
  FakeImage fake({.layers = layers});
  acquire_image(fake, "127.0.0.1:1/app:1");
  PullOptions options{.policy = PullPolicy::never, .platform = {.architecture = "arm64"}};
  Error error = error_of([&] { pull(store_, "127.0.0.1:1/app:1", options); });
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_NE(std::string(error.what()).find("linux/amd64"), std::string::npos) << error.what();
  fake.config["architecture"] = "arm64";
  fake.use_config();
  FakeSource source(fake);
  error = error_of(source, "arm:1");
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_NE(std::string(error.what()).find("linux/arm64"), std::string::npos) << error.what();
}

}  // namespace
}  // namespace holt::image
