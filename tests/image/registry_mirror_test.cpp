// Mirrors are asked first, and need not be trusted.
#include "image/registry_transfer_fixture.hpp"

#include <fmt/format.h>

namespace holt::image {
namespace {

using test::FakeReply;
using test::FakeRequest;
using test::k_manifest_type;
using test::MemorySink;
using test::some_bytes;
using ::testing::HasSubstr;
using End = FakeReply::End;

class RegistryMirrors : public test::RegistryTransfer {
 protected:
  RegistryOptions mirrored(const std::string& mirror) { return {.mirrors = {{registry_.host(), {mirror}}}}; }
};

TEST_F(RegistryMirrors, AreAskedFirst) {
  test::FakeRegistry mirror;
  mirror.add_manifest("1", "{\"mirror\":1}", k_manifest_type);
  auto described = blob_at(mirror, "bytes");
  auto from = source(mirrored(mirror.url() + "/below/"));
  EXPECT_EQ(from.top().bytes, "{\"mirror\":1}");
  MemorySink sink;
  from.fetch(described, sink);
  EXPECT_EQ(sink.bytes, "bytes");
  EXPECT_TRUE(registry_.requests().empty());
  EXPECT_EQ(mirror.requests().at(0).target, "/below/v2/app/manifests/1");
}

TEST_F(RegistryMirrors, ArePassedOverWhenTheyFail) {
  registry_.add_manifest("1", "{}", k_manifest_type);
  auto bytes = some_bytes(1000);
  auto described = blob(bytes);
  test::FakeRegistry mirror;
  mirror.script([](const FakeRequest& request) -> std::optional<FakeReply> {
    if (request.asks_for("/manifests/")) return FakeReply{.status = 500};
    return std::nullopt;
  });
  auto from = source(mirrored(mirror.url()));
  EXPECT_EQ(from.top().bytes, "{}");
  MemorySink sink;
  from.fetch(described, sink);
  EXPECT_EQ(sink.bytes, bytes);
  EXPECT_EQ(mirror.requests().size(), 1U) << "one that failed was asked again";

  // One that lacks the image is asked for the next one all the same.
  mirror.script(nullptr);
  auto again = source(mirrored(mirror.url()));
  EXPECT_EQ(again.top().bytes, "{}");
  MemorySink other;
  again.fetch(described, other);
  EXPECT_EQ(other.bytes, bytes);
  EXPECT_EQ(mirror.requests_for("/blobs/").size(), 1U);
}

TEST_F(RegistryMirrors, ThatCannotBeReachedArePassedOver) {
  registry_.add_manifest("1", "{}", k_manifest_type);
  test::ClosedPort nobody;
  EXPECT_EQ(source(mirrored("http://" + nobody.host())).top().bytes, "{}");
  EXPECT_TRUE(waits_.empty());
}

TEST_F(RegistryMirrors, ThatBreakOffAreGoneOnFrom) {
  auto bytes = some_bytes(1000);
  auto described = blob(bytes);
  test::FakeRegistry mirror;
  mirror.add_blob(bytes);
  mirror.script([&](const FakeRequest& request) {
    auto reply = mirror.good_reply(request);
    reply.end = End::cut;
    reply.sent = 400;
    return std::optional(reply);
  });
  MemorySink sink;
  source(mirrored(mirror.url())).fetch(described, sink);
  EXPECT_EQ(sink.bytes, bytes);
  EXPECT_EQ(registry_.requests_for("/blobs/").at(0).header("range"), "bytes=400-");
}

TEST_F(RegistryMirrors, IMG_01_ThatLieAboutABlobArePassedOver) {
  auto bytes = some_bytes(1000);
  auto described = blob(bytes);
  for (const auto& lie : {std::string(1000, 'x'), bytes + "x", bytes.substr(1), std::string()}) {
    auto asked = registry_.requests_for("/blobs/").size();
    test::FakeRegistry mirror;
    mirror.script([&](const FakeRequest&) { return std::optional(FakeReply{.body = lie}); });
    test::FakeRegistry honest;
    honest.add_blob(bytes);
    MemorySink sink;
    sink.wanted = bytes;
    auto from = source({.mirrors = {{registry_.host(), {mirror.url(), honest.url()}}}});
    from.fetch(described, sink);
    EXPECT_EQ(sink.bytes, bytes) << lie.size();
    EXPECT_EQ(honest.requests_for("/blobs/").at(0).header("range"), "") << "wrong bytes were gone on from";
    EXPECT_EQ(registry_.requests_for("/blobs/").size(), asked) << "the next mirror was passed over";
    MemorySink other;
    from.fetch(described, other);
    EXPECT_EQ(other.bytes, bytes);
    EXPECT_EQ(mirror.requests().size(), 1U) << "one that lied was asked again";
  }
}

TEST_F(RegistryMirrors, IMG_01_ThatLieAndBreakOffSpoilNothing) {
  auto bytes = some_bytes(1000);
  auto described = blob(bytes);
  test::FakeRegistry mirror;
  mirror.script([](const FakeRequest&) {
    return std::optional(FakeReply{.body = std::string(1000, 'x'), .end = End::cut, .sent = 400});
  });
  MemorySink sink;
  sink.wanted = bytes;
  source(mirrored(mirror.url())).fetch(described, sink);
  EXPECT_EQ(sink.bytes, bytes);
  auto asked = registry_.requests_for("/blobs/");
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(asked[0].header("range"), "bytes=400-");
  EXPECT_EQ(asked[1].header("range"), "");
}

TEST_F(RegistryMirrors, IMG_01_AreNotBlamedForAWrongBeginning) {
  auto bytes = some_bytes(1000);
  test::FakeRegistry mirror;
  auto described = blob_at(mirror, bytes);
  MemorySink sink(std::string(400, 'x'));
  sink.wanted = bytes;
  source(mirrored(mirror.url())).fetch(described, sink);
  EXPECT_EQ(sink.bytes, bytes);
  EXPECT_TRUE(registry_.requests().empty()) << "what an earlier try left was taken for the mirror's";
}

TEST_F(RegistryMirrors, IMG_01_ThatLieAboutADocumentArePassedOver) {
  auto described = blob("configuration");
  auto digest = registry_.add_manifest("1", "{}", k_manifest_type);
  auto pinned = parse_reference(registry_.host() + "/app@" + digest);
  ASSERT_TRUE(pinned);
  for (const char* lie : {"", "konfiguration", "configuration "}) {
    test::FakeRegistry mirror;
    mirror.script([lie](const FakeRequest&) { return std::optional(FakeReply{.body = lie}); });
    RegistrySource from(*pinned, mirrored(mirror.url()), std::nullopt, surroundings());
    EXPECT_EQ(from.top().bytes, "{}") << lie;
    EXPECT_EQ(from.document(described, 100).bytes, "configuration") << lie;
    EXPECT_EQ(mirror.requests().size(), 1U) << "one that lied was asked again";
    RegistrySource other(*pinned, mirrored(mirror.url()), std::nullopt, surroundings());
    EXPECT_EQ(other.document(described, 100).bytes, "configuration") << lie;
  }
}

TEST_F(RegistryMirrors, IMG_01_DoNotHideThatTheRegistryLies) {
  auto bytes = some_bytes(1000);
  auto described = blob(bytes);
  test::FakeRegistry mirror;
  for (auto* liar : {&mirror, &registry_}) {
    liar->script([](const FakeRequest& request) -> std::optional<FakeReply> {
      if (!request.asks_for("/blobs/")) return std::nullopt;
      return FakeReply{.body = std::string(1000, 'x')};
    });
  }
  MemorySink sink;
  sink.wanted = bytes;
  auto error = error_of([&] { source(mirrored(mirror.url())).fetch(described, sink); });
  EXPECT_EQ(error.code(), ErrorCode::digest_mismatch);
  EXPECT_THAT(error.what(), HasSubstr(described.digest));
  EXPECT_THAT(error.what(), HasSubstr(registry_.host()));
  EXPECT_EQ(sink.bytes, "");
  EXPECT_EQ(registry_.requests_for("/blobs/").size(), 1U);
}

TEST_F(RegistryMirrors, IMG_09_NeverSeeTheCredentialsGivenForTheRegistry) {
  registry_.add_manifest("1", "{}", k_manifest_type);
  test::FakeRegistry mirror;
  mirror.script([](const FakeRequest&) {
    return std::optional(FakeReply{.status = 401, .headers = {{"WWW-Authenticate", "Basic realm=\"m\""}}});
  });
  auto options = mirrored(mirror.url());
  options.credentials = test::k_alice;
  EXPECT_EQ(source(options).top().bytes, "{}");
  ASSERT_FALSE(mirror.requests().empty());
  for (const auto& request : mirror.requests()) EXPECT_EQ(request.header("authorization"), "");
}

TEST_F(RegistryMirrors, MustBeURLs) {
  for (const char* base :
       {"mirror", "file:///srv", "https://u:hunter2@mirror.example", "https://mirror.example?secretquery"}) {
    EXPECT_EQ(error_of([&] { source(mirrored(base)); }).code(), ErrorCode::invalid_config) << base;
  }
}

}  // namespace
}  // namespace holt::image
