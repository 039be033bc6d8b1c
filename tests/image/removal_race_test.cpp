// A pull beside removals: what it found here, or has just put here, may go at any moment.
#include "image/ext4_reader.hpp"
#include "image/folders.hpp"
#include "image/store_fixture.hpp"

#include <atomic>
#include <thread>
#include <vector>

namespace holt::image {
namespace fs = std::filesystem;
namespace {

using test::FakeImage;
using test::FakeSource;
using test::TarBuilder;
using test::three_layers;

class RemovalRace : public test::StoreFixture {
 protected:
  /// A progress sink that takes the image away once, when the pull has found it.
  ProgressSink remove_once(const std::string& digest) {
    return [this, digest](const LayerProgress&) {
      if (store_.find(digest)) store_.remove(digest);
    };
  }
};

TEST_F(RemovalRace, IMG_32_AnImageThatGoesWhileAPullStandsOnItIsMadeAgain) {
  FakeImage fake({.layers = three_layers()});
  acquire_image(fake);
  FakeSource source(fake);
  Image image = acquire_from(source, "app:2", remove_once(fake.digest()));
  EXPECT_EQ(image.reference, "app:2");
  EXPECT_EQ(test::content_of(image.ext4, "/a"), "2");
  EXPECT_EQ(store_.list().size(), 1U);
  EXPECT_TRUE(source.fetches().empty()) << "the pull's lease keeps the layers";
  expect_sound();
}

TEST_F(RemovalRace, IMG_32_AFileSystemThatGoesWhileOnlyItsRecordIsMadeIsMadeAgain) {
  auto layers = three_layers();
  FakeImage gzip({.layers = layers});
  FakeImage zstd({.layers = layers}, test::zstd);
  auto digest = acquire_image(gzip).content_digest;
  // Its blobs are damaged: the other manifest's take their place in the record, beside the same file system.
  std::filesystem::remove(blobs_.path(gzip.layer(0)));
  FakeSource source(zstd);
  Image image = acquire_from(source, "app:2", remove_once(gzip.digest()));
  EXPECT_EQ(image.content_digest, digest);
  EXPECT_EQ(image.manifest_digest, zstd.top_digest());
  EXPECT_EQ(test::content_of(image.ext4, "/a"), "2");
  expect_sound();
}

TEST_F(RemovalRace, IMG_32_EveryPullBesidePrunesSucceeds) {
  FakeImage fake({.layers = {TarBuilder().file("a", "1").finish()}});
  std::atomic<bool> done = false;
  {
    std::jthread pruner([&] {
      Store store(store_.folder());
      try {
        while (!done) prune(store, {.all = true});
      } catch (const Error& error) {
        ADD_FAILURE() << "a prune failed: " << error.what();
      }
    });
    for (int i = 0; i < 60 && !HasFailure(); ++i) EXPECT_NO_THROW(acquire_image(fake)) << "pull " << i;
    done = true;
  }
  expect_sound();
}

TEST_F(RemovalRace, IMG_32_WhatComesAndGoesIsNoDamage) {
  FakeImage fake({.layers = {TarBuilder().file("a", "1").finish()}});
  std::atomic<bool> done = false;
  std::jthread verifier([&] {
    try {
      while (!done && !HasFailure()) expect_sound();
    } catch (const Error& error) {
      ADD_FAILURE() << "a look at the store failed: " << error.what();
    }
  });
  for (int i = 0; i < 15 && !HasFailure(); ++i) {
    acquire_image(fake);
    prune(store_, {.all = true});
  }
  done = true;
}

TEST_F(RemovalRace, IMG_32_LocksOfWhatHasGoneGoWithAPrune) {
  FakeImage kept({.layers = {TarBuilder().file("a", "1").finish()}});
  FakeImage gone({.layers = three_layers()});
  acquire_image(kept, "kept:1");
  auto locks = files_in("locks");
  acquire_image(gone, "gone:1");
  EXPECT_GT(files_in("locks"), locks);
  store_.remove("gone:1");
  Folders folders{store_.folder()};
  {
    auto held = try_lock(folders.blob_lock(gone.layer(0)));
    ASSERT_TRUE(held);
    prune(store_, {.dry_run = true});
    prune(store_);
    EXPECT_EQ(files_in("locks"), locks + 1) << "what is held stays";
    EXPECT_TRUE(has_name(*held));
  }
  prune(store_);
  EXPECT_EQ(files_in("locks"), locks);
  acquire_image(gone, "gone:1");
  prune(store_, {.all = true});
  EXPECT_EQ(files_in("locks"), 1U) << "that of the names stays";
}

TEST_F(RemovalRace, IMG_32_ALockHasOneHolderBesidePrunesThatTakeItsFile) {
  fs::path file = Folders{store_.folder()}.blob_lock("sha256:" + std::string(64, 'a'));
  std::atomic<int> holders = 0;
  std::atomic<int> turns = 0;
  std::atomic<bool> done = false;
  auto hold = [&](FileLock held) {
    EXPECT_EQ(++holders, 1);
    EXPECT_TRUE(has_name(held));
    ++turns;
    --holders;
  };
  std::jthread pruner([&] {
    Store store(store_.folder());
    while (!done) prune(store);
  });
  {
    std::vector<std::jthread> threads;
    threads.reserve(4);
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, waits = i % 2 == 0] {
        for (int turn = 0; turn < 100; ++turn)
          hold(waits ? wait_for_lock(file, cancel_) : wait_for_lock(file, Deadline::never()));
      });
    }
  }
  done = true;
  EXPECT_EQ(turns, 400);
}

TEST_F(RemovalRace, IMG_07_TheBeginningOfADownloadThatHasNoByteYetIsTaken) {
  FakeImage fake({.layers = {TarBuilder().file("a", "1").finish()}});
  make_private_directory(blobs_.partial(fake.layer(0)).parent_path());
  write_file_atomically(blobs_.partial(fake.layer(0)), "");
  EXPECT_EQ(prune(store_, {.dry_run = true}).blobs, std::vector<std::string>{fake.layer(0)});
  EXPECT_EQ(prune(store_).blobs, std::vector<std::string>{fake.layer(0)});
  EXPECT_TRUE(blobs_.all_partial().empty());
  EXPECT_TRUE(prune(store_, {.dry_run = true}).blobs.empty());
}

}  // namespace
}  // namespace holt::image
