// From a source to an image: what is checked, what is left, what is used again.
#include "image/acquire.hpp"

#include "image/ext4_reader.hpp"
#include "image/oci/media_types.hpp"
#include "image/store_fixture.hpp"

#include <condition_variable>
#include <sys/stat.h>
#include <thread>

#include <gtest/gtest.h>

namespace holt::image {
namespace {

using test::FakeImage;
using test::FakeSource;
using test::TarBuilder;

using test::k_disk;
using test::noise;
using test::three_layers;

using Acquire = test::StoreFixture;

TEST_F(Acquire, AnImageComesWithItsFilesItsConfigurationAndItsNames) {
  auto layers = three_layers();
  FakeImage fake({.layers = layers,
                  .config = test::config_of(layers, {{"Env", {"A=b"}},
                                                     {"Cmd", {"/bin/x"}},
                                                     {"StopSignal", "SIGINT"},
                                                     {"ExposedPorts", {{"80/tcp", Json::object()}}},
                                                     {"Volumes", {{"/data", Json::object()}}},
                                                     {"Labels", {{"k", "v"}}}})});
  Image image = acquire_image(fake);
  EXPECT_EQ(image.reference, "app:1");
  EXPECT_EQ(image.digest, fake.digest());
  EXPECT_EQ(image.manifest_digest, fake.top_digest());
  EXPECT_EQ(image.layers, (std::vector<std::string>{fake.layer(0), fake.layer(1), fake.layer(2)}));
  EXPECT_EQ(image.platform, "linux/amd64");
  EXPECT_EQ(image.disk_bytes, k_disk);
  EXPECT_EQ(test::content_of(image.ext4, "/a"), "2");
  EXPECT_EQ(test::content_of(image.ext4, "/d/c"), "3");
  auto checked = test::check(image.ext4);
  EXPECT_EQ(checked.exit_code, 0) << checked.output;

  Image found = store_.resolve("app:1");
  EXPECT_EQ(found.config.env, std::vector<std::string>{"A=b"});
  EXPECT_EQ(found.config.stop_signal, "SIGINT");
  EXPECT_EQ(found.config.exposed_ports, std::vector<std::string>{"80/tcp"});
  EXPECT_EQ(found.config.volumes, std::vector<std::string>{"/data"});
  EXPECT_EQ(found.config.labels.at("k"), "v");
  EXPECT_EQ(found.layers, image.layers);
  EXPECT_TRUE(is_digest(found.content_digest));
  for (const std::string& reference :
       {fake.digest(), fake.top_digest(), "app@" + fake.top_digest(), "app:other@" + fake.top_digest(),
        fake.digest().substr(7, 12), fake.digest().substr(0, 30)}) {
    EXPECT_EQ(store_.resolve(reference).digest, fake.digest()) << reference;
  }
  EXPECT_FALSE(store_.find("app@" + fake.layer(0)));
  EXPECT_FALSE(store_.find(fake.digest().substr(7, 11)));
  EXPECT_EQ(blobs_.all().size(), 5U);
  EXPECT_EQ(files_in("staging"), 0U);
  expect_sound();
}

TEST_F(Acquire, PlainAndZstdLayersGiveTheSameFileSystem) {
  auto layers = three_layers();
  auto gzip = acquire_image(FakeImage({.layers = layers}), "app:gzip");
  std::string content = gzip.content_digest;
  store_.remove("app:gzip");
  EXPECT_EQ(acquire_image(FakeImage({.layers = layers}, test::zstd), "app:zstd").content_digest, content);
  store_.remove("app:zstd");
  EXPECT_EQ(acquire_image(FakeImage({.layers = layers}, nullptr), "app:plain").content_digest, content);
}

TEST_F(Acquire, TheSameImageAgainFetchesNothing) {
  FakeImage fake({.layers = three_layers()});
  auto first = acquire_image(fake);
  FakeSource again(fake);
  auto second = acquire_from(again, "other:2");
  EXPECT_TRUE(again.fetches().empty());
  EXPECT_EQ(second.digest, first.digest);
  EXPECT_EQ(second.reference, "other:2");
  EXPECT_EQ(store_.list().size(), 2U);
  EXPECT_EQ(files_in("entries"), 1U);
}

TEST_F(Acquire, AnotherManifestOfTheSameImageIsAnotherNameForIt) {
  auto layers = three_layers();
  FakeImage gzip({.layers = layers});
  FakeImage zstd({.layers = layers}, test::zstd);
  acquire_image(gzip, "app:gzip");
  FakeSource source(zstd);
  EXPECT_EQ(acquire_from(source, "app:zstd").digest, gzip.digest());
  EXPECT_TRUE(source.fetches().empty());
  EXPECT_EQ(store_.resolve("app@" + zstd.top_digest()).digest, gzip.digest());
}

TEST_F(Acquire, OneLayerTwiceIsFetchedOnce) {
  std::string layer = TarBuilder().file("a", "1").finish();
  FakeImage fake({.layers = {layer, TarBuilder().file("a", "2").finish(), layer}});
  FakeSource source(fake);
  Image image = acquire_from(source);
  EXPECT_EQ(source.fetches().at(fake.layer(0)).size(), 1U);
  EXPECT_EQ(image.layers.size(), 3U);
  EXPECT_EQ(test::content_of(image.ext4, "/a"), "1");
}

TEST_F(Acquire, AnImageWithoutLayersIsAnEmptyFolder) {
  Image image = acquire_image(FakeImage({.layers = {}}));
  EXPECT_EQ(test::check(image.ext4).exit_code, 0);
  EXPECT_EQ(test::names_in(image.ext4, "/"), std::vector<std::string>{"lost+found"});
}

TEST_F(Acquire, LayersSharedWithAnotherImageAreNotFetchedAgain) {
  auto layers = three_layers();
  acquire_image(FakeImage({.layers = {layers[0], layers[1]}}), "base:1");
  FakeImage fake({.layers = layers});
  FakeSource source(fake);
  Image image = acquire_from(source);
  EXPECT_EQ(source.fetches().size(), 1U);
  EXPECT_EQ(source.fetches().count(fake.layer(2)), 1U);
  EXPECT_EQ(test::content_of(image.ext4, "/a"), "2");
}

TEST_F(Acquire, LayersAreUnpackedWhileTheirBytesCome) {
  FakeImage fake({.layers = {TarBuilder().file("big", noise(4'000'000, 1)).finish()}}, nullptr);
  FakeSource source(fake);
  source.piece = 1'000'000;
  auto has_written = [&] {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(store_.folder() / "staging")) {
      struct stat info{};
      if (entry.path().filename() == "root.ext4" && ::stat(entry.path().c_str(), &info) == 0 &&
          info.st_blocks * 512 >= 1'000'000)
        return true;
    }
    return false;
  };
  // The last piece comes only when something of the first ones is in the file system.
  bool seen = false;
  source.before_piece = [&](const Descriptor&, std::uint64_t at, BlobSink&) {
    if (at < 3'000'000) return;
    auto deadline = Deadline::after(std::chrono::seconds(60));
    while (!(seen = seen || has_written()) && !deadline.passed()) std::this_thread::yield();
  };
  acquire_from(source);
  EXPECT_TRUE(seen) << "nothing was unpacked before the whole layer was there";
}

TEST_F(Acquire, ProgressComesOneCallAtATimeAndNamesEveryLayer) {
  FakeImage fake({.layers = three_layers()});
  FakeSource source(fake);
  std::atomic<int> inside = 0;
  bool overlap = false;
  std::map<std::size_t, LayerProgress> last;
  acquire_from(source, "app:1", [&](const LayerProgress& progress) {
    overlap = overlap || ++inside > 1;
    last[progress.index] = progress;
    --inside;
  });
  EXPECT_FALSE(overlap);
  ASSERT_EQ(last.size(), 3U);
  for (const auto& [index, progress] : last) {
    EXPECT_EQ(progress.step, LayerProgress::Step::done);
    EXPECT_EQ(progress.layers, 3U);
    EXPECT_EQ(progress.digest, fake.layer(index));
    EXPECT_EQ(progress.done, progress.total);
  }
}

TEST_F(Acquire, ProgressBeginsWhereADownloadBeginsAndEndsAtItsEnd) {
  FakeImage fake({.layers = three_layers()});
  FakeSource source(fake);
  std::map<std::size_t, std::uint64_t> first;
  std::map<std::size_t, std::uint64_t> last;
  std::map<std::size_t, std::uint64_t> totals;
  acquire_from(source, "app:1", [&](const LayerProgress& progress) {
    if (progress.step != LayerProgress::Step::downloading) return;
    first.try_emplace(progress.index, progress.done);
    last[progress.index] = progress.done;
    totals[progress.index] = progress.total;
  });
  EXPECT_EQ(first, (std::map<std::size_t, std::uint64_t>{{0, 0}, {1, 0}, {2, 0}}))
      << "what came first would not be counted";
  EXPECT_EQ(last, totals);
}

TEST_F(Acquire, WhatTheProgressSinkThrowsEndsTheWork) {
  FakeImage fake({.layers = three_layers()});
  FakeSource source(fake);
  EXPECT_THROW(acquire_from(source, "app:1",
                            [](const LayerProgress& progress) {
                              if (progress.step == LayerProgress::Step::downloading)
                                throw std::runtime_error("enough");
                            }),
               std::runtime_error);
  expect_nothing_of(fake);
}

using Alter = std::pair<const char*, std::function<std::string(std::string)>>;

std::vector<Alter> alterations() {
  return {{"a bit flipped in the middle",
           [](std::string bytes) {
             bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
             return bytes;
           }},
          {"a bit flipped at the front",
           [](std::string bytes) {
             bytes[0] = static_cast<char>(bytes[0] ^ 0x40);
             return bytes;
           }},
          {"a bit flipped at the end",
           [](std::string bytes) {
             bytes.back() = static_cast<char>(bytes.back() ^ 4);
             return bytes;
           }},
          {"a byte added at the front", [](const std::string& bytes) { return "x" + bytes; }},
          {"a byte added at the end", [](const std::string& bytes) { return bytes + "x"; }},
          {"cut by one byte", [](std::string bytes) { return bytes.substr(0, bytes.size() - 1); }},
          {"nothing", [](const std::string&) { return std::string(); }}};
}

TEST_F(Acquire, IMG_01_ABlobThatIsNotWhatItsNameSaysIsRefused) {
  for (auto* pack : {+test::gzip, +test::zstd, static_cast<std::string (*)(std::string_view)>(nullptr)}) {
    FakeImage fake({.layers = three_layers()}, pack);
    for (const std::string& target : {fake.layer(0), fake.layer(1), fake.layer(2), fake.digest()}) {
      for (const auto& [what, change] : alterations()) {
        SCOPED_TRACE(what);
        SCOPED_TRACE(target);
        FakeSource source(fake);
        source.alter = [&](const Descriptor& blob, std::string bytes) {
          return blob.digest == target ? change(std::move(bytes)) : bytes;
        };
        Error error = error_of(source);
        EXPECT_EQ(error.code(), ErrorCode::digest_mismatch) << error.what();
        EXPECT_NE(std::string(error.what()).find(target), std::string::npos) << error.what();
        expect_nothing_of(fake);
        EXPECT_FALSE(blobs_.size(target));
        EXPECT_EQ(blobs_.partial_size(target), 0U);
        prune(store_);  // else the next try finds the other layers here
      }
    }
    // As if nothing had been.
    EXPECT_EQ(test::content_of(acquire_image(fake).ext4, "/a"), "2");
    store_.remove("app:1");
    prune(store_);
  }
}

TEST_F(Acquire, IMG_01_ASizeThatIsOffByOneIsRefused) {
  for (int off : {-1, 1}) {
    for (const char* place : {"layer", "config"}) {
      SCOPED_TRACE(place);
      FakeImage fake({.layers = three_layers()});
      Json& blob = place == std::string("layer") ? fake.manifest["layers"][1] : fake.manifest["config"];
      blob["size"] = blob["size"].get<int>() + off;
      FakeSource source(fake);
      Error error = error_of(source);
      EXPECT_EQ(error.code(), ErrorCode::digest_mismatch) << error.what();
      EXPECT_NE(std::string(error.what()).find(blob["digest"].get<std::string>()), std::string::npos);
      expect_nothing_of(fake);
    }
  }
}

TEST_F(Acquire, IMG_01_AWrongSizeDoesNotCostAnotherImageItsBlob) {
  FakeImage fake({.layers = three_layers()});
  acquire_image(fake, "good:1");
  FakeImage liar = fake;
  liar.config["author"] = "another image";
  liar.use_config();
  liar.manifest["layers"][1]["size"] = liar.manifest["layers"][1]["size"].get<int>() + 1;
  FakeSource source(liar);
  EXPECT_EQ(error_of(source).code(), ErrorCode::digest_mismatch);
  EXPECT_TRUE(blobs_.size(fake.layer(1)));
  expect_sound();
}

TEST_F(Acquire, IMG_01_ALayerPackedAnewIsRefused) {
  auto layers = three_layers();
  FakeImage fake({.layers = layers});
  FakeSource source(fake);
  source.alter = [&](const Descriptor& blob, std::string bytes) {
    return blob.digest == fake.layer(1) ? test::zstd(layers[1]) : bytes;
  };
  Error error = error_of(source);
  EXPECT_EQ(error.code(), ErrorCode::digest_mismatch);
  EXPECT_NE(std::string(error.what()).find(fake.layer(1)), std::string::npos) << error.what();
  expect_nothing_of(fake);
}

TEST_F(Acquire, IMG_01_AManifestThatIsNotTheOneAskedForIsRefused) {
  FakeImage fake({.layers = three_layers()});
  FakeImage other = fake;
  other.manifest["annotations"] = {{"a", "b"}};
  FakeSource source(other);
  Error error = error_of(source, "app:1@" + fake.top_digest());
  EXPECT_EQ(error.code(), ErrorCode::digest_mismatch);
  EXPECT_NE(std::string(error.what()).find(fake.top_digest()), std::string::npos);
  expect_nothing_of(fake);
  EXPECT_EQ(acquire_image(fake, "app:1@" + fake.top_digest()).reference, "app:1@" + fake.top_digest());
}

TEST_F(Acquire, IMG_02_AWrongDiffIdIsRefused) {
  for (std::size_t i = 0; i < 3; ++i) {
    FakeImage fake({.layers = three_layers()});
    fake.config["rootfs"]["diff_ids"][i] = test::digest_of("something else");
    fake.use_config();
    FakeSource source(fake);
    Error error = error_of(source);
    EXPECT_EQ(error.code(), ErrorCode::digest_mismatch) << error.what();
    EXPECT_NE(std::string(error.what()).find(fake.layer(i)), std::string::npos) << error.what();
    expect_nothing_of(fake);
  }
}

TEST_F(Acquire, IMG_02_TooFewAndTooManyDiffIdsAreRefused) {
  for (bool more : {false, true}) {
    FakeImage fake({.layers = three_layers()});
    Json& diff_ids = fake.config["rootfs"]["diff_ids"];
    more ? diff_ids.push_back(diff_ids[0]) : diff_ids.erase(2);
    fake.use_config();
    FakeSource source(fake);
    EXPECT_EQ(error_of(source).code(), ErrorCode::image_invalid);
    EXPECT_TRUE(source.fetches().empty());
    expect_nothing_of(fake);
  }
}

TEST_F(Acquire, IMG_03_DigestsThatArePathsMakeNoFiles) {
  for (const std::string& digest :
       {std::string("sha256:../../../../tmp/x"), "sha256:" + std::string(63, 'a'),
        "md5:" + std::string(32, 'a'), std::string(), "sha256+b64:" + std::string(64, 'a'),
        "sha256:" + std::string(10 << 10, 'a')}) {
    for (const char* place : {"layer", "config"}) {
      FakeImage fake({.layers = three_layers()});
      (place == std::string("layer") ? fake.manifest["layers"][1] : fake.manifest["config"])["digest"] =
          digest;
      FakeSource source(fake);
      EXPECT_EQ(error_of(source).code(), ErrorCode::image_invalid) << digest;
      EXPECT_FALSE(std::filesystem::exists(store_.folder()));
    }
  }
}

TEST_F(Acquire, IMG_13_AnIndexInsideItselfEnds) {
  class Endless final : public ImageSource {
   public:
    std::string name() const override { return "an endless registry"; }
    RawDocument top() override { return level(0); }
    RawDocument document(const Descriptor& descriptor, std::size_t) override {
      for (int i = 0; i < 20; ++i) {
        if (test::digest_of(level(i).bytes) == descriptor.digest) return level(i);
      }
      throw Error(ErrorCode::not_found, "no such level");
    }
    void fetch(const Descriptor&, BlobSink&) override {}

   private:
    static RawDocument level(int depth) {
      Json entries = Json::array();
      if (depth < 20) entries.push_back(test::descriptor(k_oci_index, level(depth + 1).bytes));
      return {.bytes = dump_json(test::index_of(entries)), .media_type = std::string(k_oci_index)};
    }
  } source;
  AcquireRequest request{.reference = parse_reference("app:1").value(), .disk_bytes = k_disk};
  try {
    acquire(store_, source, request);
    FAIL() << "20 indexes deep were read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::limit_exceeded);
  }
}

TEST_F(Acquire, ACutTransferIsGoneOnFromByTheNextTry) {
  FakeImage fake({.layers = {TarBuilder().file("big", noise(1'000'000, 1)).finish()}});
  FakeSource cut(fake);
  cut.before_piece = [](const Descriptor&, std::uint64_t at, BlobSink&) {
    if (at > 300'000) throw Error(ErrorCode::network_error, "fetch the layer: got some of its bytes");
  };
  EXPECT_EQ(error_of(cut).code(), ErrorCode::network_error);
  expect_nothing_of(fake);
  EXPECT_GT(blobs_.partial_size(fake.layer(0)), 300'000U);
  FakeSource whole(fake);
  acquire_from(whole);
  ASSERT_EQ(whole.fetches().at(fake.layer(0)).size(), 1U);
  EXPECT_GT(whole.fetches().at(fake.layer(0))[0], 300'000U);
}

TEST_F(Acquire, AWrongBeginningOfAnEarlierTryIsFetchedAgain) {
  FakeImage fake({.layers = {TarBuilder().file("big", noise(1'000'000, 1)).finish()}});
  make_private_directory(blobs_.partial(fake.layer(0)).parent_path());
  write_file_atomically(blobs_.partial(fake.layer(0)), std::string(400'000, 'x'));
  FakeSource source(fake);
  Image image = acquire_from(source);
  EXPECT_EQ(source.fetches().at(fake.layer(0)), (std::vector<std::uint64_t>{400'000, 0}));
  EXPECT_EQ(test::content_of(image.ext4, "/big"), noise(1'000'000, 1));
}

TEST_F(Acquire, ASourceThatBeginsAgainMakesTheBuildBeginAgain) {
  std::string big = noise(4'000'000, 1);
  FakeImage fake({.layers = {TarBuilder().file("big", big).finish()}}, nullptr);
  FakeSource source(fake);
  int restarts = 0;
  source.before_piece = [&](const Descriptor&, std::uint64_t at, BlobSink& sink) {
    if (at < 2'000'000 || restarts == 2) return;
    ++restarts;
    sink.restart();
  };
  Image image = acquire_from(source);
  EXPECT_EQ(restarts, 2);
  EXPECT_EQ(test::content_of(image.ext4, "/big"), big);
  expect_sound();
}

TEST_F(Acquire, TheFirstFailureEndsTheOtherFetches) {
  FakeImage fake({.layers = three_layers()});
  FakeSource source(fake);
  CancellationToken stop;
  AcquireRequest request{.reference = parse_reference("app:1").value(), .disk_bytes = k_disk, .stop = stop};
  source.before_piece = [&](const Descriptor& blob, std::uint64_t, BlobSink&) {
    if (blob.digest == fake.layer(1)) throw Error(ErrorCode::unauthorized, "fetch the layer: not allowed");
    // A source that would wait for ever, but for the stop.
    std::mutex mutex;
    std::condition_variable stopped;
    bool told = false;
    auto registration = stop.on_cancel([&] {
      std::lock_guard lock(mutex);
      told = true;
      stopped.notify_all();
    });
    std::unique_lock lock(mutex);
    stopped.wait(lock, [&] { return told; });
    stop.throw_if_cancelled();
  };
  try {
    acquire(store_, source, request);
    FAIL() << "the image was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unauthorized) << error.what();
  }
  expect_nothing_of(fake);
}

TEST_F(Acquire, CancellationEndsAllAndLeavesABeginning) {
  FakeImage fake({.layers = {TarBuilder().file("big", noise(1'000'000, 1)).finish()}});
  FakeSource source(fake);
  source.before_piece = [&](const Descriptor&, std::uint64_t at, BlobSink&) {
    if (at > 0) cancel_.cancel();
  };
  EXPECT_EQ(error_of(source).code(), ErrorCode::cancelled);
  expect_nothing_of(fake);
  EXPECT_GT(blobs_.partial_size(fake.layer(0)), 0U);
}

TEST_F(Acquire, AHostileLayerLeavesNothingAndNamesItself) {
  FakeImage fake(
      {.layers = {TarBuilder().file("a", "1").finish(), TarBuilder().hard_link("x", "gone").finish()}});
  FakeSource source(fake);
  Error error = error_of(source);
  EXPECT_EQ(error.code(), ErrorCode::image_invalid);
  EXPECT_NE(std::string(error.what()).find("layer 2 of 2 (" + fake.layer(1)), std::string::npos)
      << error.what();
  expect_nothing_of(fake);
}

TEST_F(Acquire, ALayerThatClaimsMoreThanTheLimitsIsNotFetched) {
  FakeImage fake({.layers = three_layers()});
  fake.manifest["layers"][1]["size"] = std::uint64_t{1} << 50;
  FakeSource source(fake);
  EXPECT_EQ(error_of(source).code(), ErrorCode::limit_exceeded);
  EXPECT_TRUE(source.fetches().empty());
}

TEST_F(Acquire, ALayerLargerThanTheDiskIsNotFetched) {
  FakeImage fake({.layers = three_layers()});
  fake.manifest["layers"][1]["size"] = std::uint64_t{1} << 50;
  FakeSource source(fake);
  AcquireRequest request{.reference = parse_reference("app:1").value(),
                         .limits = {.unpacked_bytes = std::uint64_t{1} << 60},
                         .disk_bytes = k_disk};
  try {
    acquire(store_, source, request);
    FAIL() << "1 PiB was fetched";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::storage_full);
    EXPECT_NE(std::string(error.what()).find("needs 11258999"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(source.fetches().empty());
}

}  // namespace
}  // namespace holt::image
