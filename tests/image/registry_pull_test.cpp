// pull() from a registry to the store: blobs that lie, tags that move, downloads that break off.
#include "holt/image/pull.hpp"
#include "image/ext4_reader.hpp"
#include "image/fake_registry.hpp"
#include "image/layout_builder.hpp"
#include "image/oci/media_types.hpp"
#include "image/store_fixture.hpp"

#include <archive.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holt::image {
namespace {

using test::FakeReply;
using test::FakeRequest;
using test::TarBuilder;
using ::testing::HasSubstr;

class RegistryPull : public test::StoreFixture {
 protected:
  /// An image of one gzip layer.
  struct Pushed {
    std::string tar;
    std::string layer;  ///< the blob
    std::string config;
    std::string manifest;
    std::string manifest_digest;
  };
  Pushed push(const std::string& tag, const std::string& content, std::int64_t size_error = 0) {
    Pushed pushed;
    pushed.tar = TarBuilder().file("a", content).file("noise", test::noise(100'000, 1)).finish();
    pushed.layer = test::compressed(pushed.tar, archive_write_add_filter_gzip);
    pushed.config = dump_json(test::config_of({pushed.tar}));
    Json layer = test::descriptor(k_oci_layer_gzip, pushed.layer);
    layer["size"] = layer["size"].get<std::int64_t>() + size_error;
    pushed.manifest = dump_json(
        test::manifest_of(test::descriptor(k_oci_config, pushed.config), Json::array({std::move(layer)})));
    registry_.add_blob(pushed.layer);
    registry_.add_blob(pushed.config);
    pushed.manifest_digest = registry_.add_manifest(tag, pushed.manifest, std::string(k_oci_manifest));
    return pushed;
  }
  std::string reference(const std::string& tag = "1") { return registry_.host() + "/app:" + tag; }
  Image pull_it(const std::string& name, PullPolicy policy = PullPolicy::missing) {
    return pull(store_, name, {.policy = policy, .registry = {.retries = 2}, .disk_bytes = test::k_disk});
  }
  /// The registry sends `bytes` for whatever has this digest.
  void replace(const std::string& original, const std::string& bytes) {
    std::string digest = test::digest_of(original);
    registry_.script([digest, bytes](const FakeRequest& request) -> std::optional<FakeReply> {
      if (!request.asks_for(digest)) return std::nullopt;
      return FakeReply{
          .headers = {{"Content-Type", request.asks_for("/manifests/") ? std::string(k_oci_manifest)
                                                                       : "application/octet-stream"}},
          .body = bytes};
    });
  }
  void expect_refused(const std::string& name, const std::string& blamed, const std::string& how) {
    auto error = error_of([&] { pull_it(name); });
    EXPECT_EQ(error.code(), ErrorCode::digest_mismatch) << how << ": " << error.what();
    EXPECT_THAT(error.what(), HasSubstr(blamed)) << how;
    EXPECT_EQ(files_in("entries"), 0U) << how;
    EXPECT_EQ(files_in("references"), 0U) << how;
    EXPECT_FALSE(store_.find(name)) << how;
  }

  test::FakeRegistry registry_;
};

TEST_F(RegistryPull, GivesAnImageWithTheFilesInIt) {
  auto pushed = push("1", "content");
  auto image = pull_it(reference());
  EXPECT_EQ(image.reference, reference());
  EXPECT_EQ(image.manifest_digest, pushed.manifest_digest);
  EXPECT_EQ(test::content_of(image.ext4, "/a"), "content");
  expect_sound();
}

TEST_F(RegistryPull, IMG_14_AnIndexLeadsToTheImageOfThePlatform) {
  auto pushed = push("amd64", "for amd64");
  Json entry = test::descriptor(k_oci_manifest, pushed.manifest);
  Json other = test::descriptor(k_oci_manifest, "another");
  Json attestation = test::descriptor(k_oci_manifest, "an attestation");
  entry["platform"] = {{"os", "linux"}, {"architecture", "amd64"}};
  other["platform"] = {{"os", "linux"}, {"architecture", "s390x"}};
  attestation["platform"] = {{"os", "unknown"}, {"architecture", "unknown"}};
  registry_.add_manifest("1", dump_json(test::index_of(Json::array({attestation, other, entry}))),
                         std::string(k_oci_index));
  EXPECT_EQ(test::content_of(pull_it(reference()).ext4, "/a"), "for amd64");

  registry_.add_manifest("none", dump_json(test::index_of(Json::array({attestation, other}))),
                         std::string(k_oci_index));
  auto error = error_of([&] { pull_it(reference("none")); });
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_THAT(error.what(), HasSubstr("linux/s390x"));
}

TEST_F(RegistryPull, IMG_01_ABlobThatIsNotWhatItsNameSaysIsRefused) {
  auto pushed = push("1", "content");
  auto pinned = registry_.host() + "/app@" + pushed.manifest_digest;
  for (const auto& original : {pushed.manifest, pushed.config, pushed.layer}) {
    auto flipped = original;
    flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 1);
    std::string other_gzip = test::compressed(
        test::compressed(pushed.tar, archive_write_add_filter_gzip) + "x", archive_write_add_filter_gzip);
    for (const auto& [how, bytes] : std::initializer_list<std::pair<const char*, std::string>>{
             {"one bit flipped", flipped},
             {"a byte in front", " " + original},
             {"a byte at the end", original + " "},
             {"cut by one byte", original.substr(0, original.size() - 1)},
             {"other bytes of the same size", std::string(original.size(), ' ')},
             {"empty", ""},
             {"something else", other_gzip}}) {
      replace(original, bytes);
      expect_refused(pinned, test::digest_of(original), how);
    }
  }
  registry_.script(nullptr);
  EXPECT_EQ(test::content_of(pull_it(pinned).ext4, "/a"), "content") << "a second pull is as a first";
  expect_sound();
}

TEST_F(RegistryPull, IMG_01_WhatAMirrorLiesAboutComesFromTheRegistry) {
  auto pushed = push("1", "content");
  // A layer that unpacks well, so that it is built into the image until its digest is known.
  auto other =
      test::compressed(TarBuilder().file("a", "of the mirror").finish(), archive_write_add_filter_gzip);
  other.resize(std::max(other.size(), pushed.layer.size()));
  test::FakeRegistry mirror;
  mirror.add_manifest("1", pushed.manifest, std::string(k_oci_manifest));
  mirror.add_blob(pushed.config);
  mirror.script([&](const FakeRequest& request) -> std::optional<FakeReply> {
    if (!request.asks_for(test::digest_of(pushed.layer))) return std::nullopt;
    return FakeReply{.body = other};
  });
  auto image =
      pull(store_, reference(),
           {.registry = {.mirrors = {{registry_.host(), {mirror.url()}}}}, .disk_bytes = test::k_disk});
  EXPECT_EQ(test::content_of(image.ext4, "/a"), "content");
  EXPECT_EQ(mirror.requests_for(test::digest_of(pushed.layer)).size(), 1U);
  EXPECT_EQ(registry_.requests_for("/blobs/").size(), 1U) << "only the layer was asked for";
  EXPECT_EQ(files_in("blobs/partial"), 0U);
  expect_sound();
}

TEST_F(RegistryPull, IMG_01_ALayerCompressedAnewIsAnotherBlob) {
  auto pushed = push("1", "content");
  auto zstd = test::compressed(pushed.tar, archive_write_add_filter_zstd);
  replace(pushed.layer, zstd);
  expect_refused(reference(), test::digest_of(pushed.layer), "the tar in it is the same");
}

TEST_F(RegistryPull, IMG_01_ASizeThatIsOffByOneIsRefused) {
  for (int error : {-1, 1}) {
    auto pushed = push("1", "content", error);
    expect_refused(reference(), test::digest_of(pushed.layer), error < 0 ? "less" : "more");
  }
}

TEST_F(RegistryPull, IMG_04_TheNextPullGoesOnWhereOneBrokeOff) {
  auto pushed = push("1", "content");
  auto cut_at = pushed.layer.size() / 2;
  registry_.script([&](const FakeRequest& request) -> std::optional<FakeReply> {
    if (!request.asks_for(test::digest_of(pushed.layer))) return std::nullopt;
    if (!request.header("range").empty()) return FakeReply{.status = 403};
    auto reply = registry_.good_reply(request);
    reply.end = FakeReply::End::cut;
    reply.sent = cut_at;
    return reply;
  });
  auto error = error_of([&] { pull_it(reference()); });
  EXPECT_EQ(error.code(), ErrorCode::unauthorized);
  registry_.script(nullptr);
  EXPECT_EQ(test::content_of(pull_it(reference()).ext4, "/a"), "content");
  EXPECT_EQ(registry_.requests_for(test::digest_of(pushed.layer)).back().header("range"),
            "bytes=" + std::to_string(cut_at) + "-");
  expect_sound();
}

TEST_F(RegistryPull, IMG_16_PoliciesDoWhatTheySayWhenATagMoves) {
  EXPECT_EQ(error_of([&] { pull_it(reference(), PullPolicy::never); }).code(), ErrorCode::not_found);
  EXPECT_TRUE(registry_.requests().empty()) << "never asked the registry";

  auto first = push("1", "old");
  EXPECT_EQ(pull_it(reference()).manifest_digest, first.manifest_digest);
  auto second = push("1", "new");
  auto asked = registry_.requests().size();
  EXPECT_EQ(pull_it(reference(), PullPolicy::missing).manifest_digest, first.manifest_digest);
  EXPECT_EQ(pull_it(reference(), PullPolicy::never).manifest_digest, first.manifest_digest);
  EXPECT_EQ(registry_.requests().size(), asked) << "an image that is here was asked for";

  auto image = pull_it(reference(), PullPolicy::always);
  EXPECT_EQ(image.manifest_digest, second.manifest_digest);
  EXPECT_EQ(test::content_of(image.ext4, "/a"), "new");
  EXPECT_EQ(store_.resolve(reference()).manifest_digest, second.manifest_digest);

  auto blobs = registry_.requests_for(test::digest_of(second.layer)).size();
  pull_it(reference(), PullPolicy::always);
  EXPECT_EQ(registry_.requests_for(test::digest_of(second.layer)).size(), blobs)
      << "a blob that is here was fetched";
}

TEST_F(RegistryPull, IMG_16_WithoutANetworkWhatIsHereIsUsed) {
  test::ClosedPort gone;
  std::string name = gone.host() + "/app:1";
  test::FakeSource source(test::FakeImage({.layers = test::three_layers()}));
  acquire_from(source, name);
  EXPECT_EQ(pull_it(name, PullPolicy::missing).reference, name);
  EXPECT_EQ(pull_it(name, PullPolicy::never).reference, name);
  EXPECT_EQ(error_of([&] { pull_it(name, PullPolicy::always); }).code(), ErrorCode::network_error);
  EXPECT_EQ(store_.resolve(name).reference, name) << "a failed pull took the name away";
}

}  // namespace
}  // namespace holt::image
