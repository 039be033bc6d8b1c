// Documents and blobs from a registry that cuts, stalls, lies and slows down.
#include "holt/base/encoding.hpp"
#include "image/registry_transfer_fixture.hpp"

#include <fmt/format.h>

namespace holt::image {
namespace {

using test::FakeReply;
using test::FakeRequest;
using test::k_manifest_type;
using test::MemorySink;
using test::some_bytes;
using RegistryTransfer = test::RegistryTransfer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using End = FakeReply::End;

TEST_F(RegistryTransfer, GivesDocumentsAndBlobs) {
  registry_.add_manifest("1", R"({"a":1})", k_manifest_type);
  auto from = source();
  auto top = from.top();
  EXPECT_EQ(top.bytes, R"({"a":1})");
  EXPECT_EQ(top.media_type, k_manifest_type);
  EXPECT_EQ(from.name(), registry_.host() + "/app:1");

  auto described = blob("configuration");
  EXPECT_EQ(from.document(described, 100).bytes, "configuration");
  MemorySink sink;
  from.fetch(described, sink);
  EXPECT_EQ(sink.bytes, "configuration");

  auto requests = registry_.requests_for("/manifests/");
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].target, "/v2/app/manifests/1");
  for (const char* type : {"vnd.oci.image.index.v1+json", "vnd.docker.distribution.manifest.list.v2+json",
                           "vnd.docker.distribution.manifest.v2+json", "vnd.oci.image.manifest.v1+json"}) {
    EXPECT_THAT(requests[0].header("accept"), HasSubstr(type));
  }
}

TEST_F(RegistryTransfer, AsksForADigestRatherThanATag) {
  auto digest = registry_.add_manifest("1", "{}", k_manifest_type);
  auto reference = parse_reference(registry_.host() + "/app:other@" + digest);
  ASSERT_TRUE(reference);
  RegistrySource from(*reference, {}, std::nullopt, surroundings());
  EXPECT_EQ(from.top().bytes, "{}");
  EXPECT_EQ(registry_.requests_for("/manifests/").at(0).target, "/v2/app/manifests/" + digest);
}

TEST_F(RegistryTransfer, IMG_01_ADocumentUnderAnotherDigestIsRefused) {
  registry_.script([](const FakeRequest& request) -> std::optional<FakeReply> {
    if (!request.asks_for("/manifests/")) return std::nullopt;
    return FakeReply{.headers = {{"Docker-Content-Digest", "sha256:" + sha256_hex("other")}}, .body = "{}"};
  });
  auto error = error_of([&] { source().top(); });
  EXPECT_EQ(error.code(), ErrorCode::digest_mismatch);
  EXPECT_THAT(error.what(), HasSubstr(sha256_hex("other")));
}

TEST_F(RegistryTransfer, WhatIsNotThereIsNotFoundInTheServersWords) {
  auto error = error_of([&] { source().top(); });
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_THAT(error.what(), HasSubstr("MANIFEST_UNKNOWN"));
  EXPECT_THAT(error.what(), HasSubstr(registry_.host()));
  EXPECT_TRUE(waits_.empty());
}

TEST_F(RegistryTransfer, IMG_13_ADocumentIsReadToItsLimitOnly) {
  for (auto end : {End::whole, End::endless}) {
    registry_.script([end](const FakeRequest& request) -> std::optional<FakeReply> {
      if (request.target == "/v2/") return std::nullopt;
      return FakeReply{.body = std::string(k_manifest_bytes + 1, 'x'), .end = end};
    });
    EXPECT_EQ(error_of([&] { source().top(); }).code(), ErrorCode::limit_exceeded);
    EXPECT_EQ(error_of([&] { source().document(blob("x"), 1000); }).code(), ErrorCode::limit_exceeded);
  }
}

TEST_F(RegistryTransfer, AHeadWithoutEndIsRefused) {
  registry_.script([](const FakeRequest& request) -> std::optional<FakeReply> {
    if (request.target == "/v2/") return std::nullopt;
    FakeReply reply;
    for (int i = 0; i < 200; ++i) reply.headers.emplace_back(fmt::format("X-{}", i), std::string(1000, 'x'));
    return reply;
  });
  EXPECT_EQ(error_of([&] { source({.retries = 0}).top(); }).code(), ErrorCode::network_error);
}

TEST_F(RegistryTransfer, IMG_04_ACutTransferIsResumed) {
  auto bytes = some_bytes(1'000'000);
  auto described = blob(bytes);
  for (auto end : {End::cut, End::undelimited}) {
    auto before = registry_.requests_for("/blobs/").size();
    script_blobs([&](int count, const FakeRequest& request) -> std::optional<FakeReply> {
      if (count == 0) return cut(request, end, 300'000);
      return std::nullopt;
    });
    MemorySink sink;
    source().fetch(described, sink);
    EXPECT_EQ(sink.bytes, bytes);
    EXPECT_EQ(sink.restarts, 0);
    auto requests = registry_.requests_for("/blobs/");
    ASSERT_EQ(requests.size(), before + 2);
    EXPECT_EQ(requests.back().header("range"), "bytes=300000-");
    EXPECT_EQ(requests.back().header("if-range"), "\"" + described.digest + "\"");
  }
  EXPECT_THAT(waits_, ElementsAre(0.5, 0.5));
}

TEST_F(RegistryTransfer, IMG_04_GoesOnFromWhatAnEarlierPullHas) {
  auto bytes = some_bytes(10'000);
  MemorySink sink(bytes.substr(0, 4000));
  source().fetch(blob(bytes), sink);
  EXPECT_EQ(sink.bytes, bytes);
  auto requests = registry_.requests_for("/blobs/");
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].header("range"), "bytes=4000-");
  EXPECT_EQ(requests[0].header("if-range"), "");

  source().fetch(blob(bytes), sink);
  EXPECT_EQ(registry_.requests_for("/blobs/").size(), 1U) << "a whole blob was asked for again";
}

TEST_F(RegistryTransfer, IMG_04_OneThatNeverCompletesSaysHowFarItCame) {
  auto bytes = some_bytes(1000);
  auto described = blob(bytes);
  script_blobs([&](int, const FakeRequest& request) { return cut(request, End::cut, 10); });
  MemorySink sink;
  auto error = error_of([&] { source({.retries = 3}).fetch(described, sink); });
  EXPECT_EQ(error.code(), ErrorCode::network_error);
  EXPECT_THAT(error.what(), HasSubstr("got 40 of 1000 bytes"));
  EXPECT_THAT(error.what(), HasSubstr(described.digest));
  EXPECT_EQ(registry_.requests_for("/blobs/").size(), 4U);
  EXPECT_THAT(waits_, ElementsAre(0.5, 1, 2));
  EXPECT_EQ(sink.bytes, bytes.substr(0, 40)) << "what came is kept for the next time";
}

TEST_F(RegistryTransfer, IMG_04_ShortBlobsAreNoBrokenTransfers) {
  script_blobs([](int, const FakeRequest&) { return FakeReply{.body = "shor"}; });
  MemorySink sink;
  source().fetch({.media_type = "x", .digest = registry_.add_blob("short"), .size = 5}, sink);
  EXPECT_EQ(sink.bytes, "shor") << "whether it is right is for who asked";
  EXPECT_EQ(registry_.requests_for("/blobs/").size(), 1U);
}

TEST_F(RegistryTransfer, IMG_05_AWholeFileForTheRestStartsOver) {
  auto bytes = some_bytes(10'000);
  auto described = blob(bytes);
  script_blobs([&](int count, FakeRequest request) -> std::optional<FakeReply> {
    if (count == 0) return cut(request, End::cut, 3000);
    request.headers.erase("range");
    return registry_.good_reply(request);
  });
  MemorySink sink;
  source().fetch(described, sink);
  EXPECT_EQ(sink.bytes, bytes);
  EXPECT_EQ(sink.restarts, 1);
}

TEST_F(RegistryTransfer, IMG_05_AnotherETagStartsOver) {
  auto bytes = some_bytes(10'000);
  auto described = blob(bytes);
  script_blobs([&](int count, const FakeRequest& request) -> std::optional<FakeReply> {
    if (count == 0) return cut(request, End::cut, 3000);
    if (count > 1) return std::nullopt;
    // A server that does not know If-Range and has other bytes now.
    return FakeReply{.status = 206,
                     .headers = {{"ETag", "\"other\""}, {"Content-Range", "bytes 3000-9999/10000"}},
                     .body = std::string(7000, 'z')};
  });
  MemorySink sink;
  source().fetch(described, sink);
  EXPECT_EQ(sink.bytes, bytes);
  EXPECT_EQ(sink.restarts, 1);
}

TEST_F(RegistryTransfer, IMG_05_AnotherPartThanAskedForStartsOver) {
  auto bytes = some_bytes(10'000);
  auto described = blob(bytes);
  for (const char* range : {"bytes 0-9999/10000", "bytes 2999-9999/10000", "nonsense", ""}) {
    script_blobs([&](int count, const FakeRequest& request) -> std::optional<FakeReply> {
      if (count == 0) return cut(request, End::cut, 3000);
      if (count > 1) return std::nullopt;
      return FakeReply{.status = 206, .headers = {{"Content-Range", range}}, .body = bytes};
    });
    MemorySink sink;
    source().fetch(described, sink);
    EXPECT_EQ(sink.bytes, bytes) << range;
    EXPECT_EQ(sink.restarts, 1) << range;
  }
}

TEST_F(RegistryTransfer, IMG_05_ARangeThatCannotBeServedStartsOver) {
  auto bytes = some_bytes(10'000);
  auto described = blob(bytes);
  script_blobs([&](int count, const FakeRequest&) -> std::optional<FakeReply> {
    return count == 0 ? std::optional(FakeReply{.status = 416}) : std::nullopt;
  });
  MemorySink sink("beginning of something");
  source().fetch(described, sink);
  EXPECT_EQ(sink.bytes, bytes);
}

TEST_F(RegistryTransfer, IMG_06_AStalledTransferEnds) {
  auto described = blob(some_bytes(100'000));
  RegistryOptions options{.idle_timeout = std::chrono::seconds(1)};
  for (auto end : {End::silent, End::trickle, End::nothing}) {
    script_blobs([&](int, const FakeRequest& request) { return cut(request, end, 1024); });
    MemorySink sink;
    auto error = error_of([&] { source(options).fetch(described, sink); });
    EXPECT_EQ(error.code(), ErrorCode::network_error);
    EXPECT_THAT(error.what(), HasSubstr("no progress for 1 s"));
    EXPECT_THAT(error.what(), HasSubstr("of 100000 bytes"));
    EXPECT_LT(sink.bytes.size(), 3000U);
  }
}

TEST_F(RegistryTransfer, IMG_06_TheTimeOfTheDiskIsNoSilence) {
  class SlowSink final : public BlobSink {
   public:
    std::uint64_t offset() const override { return bytes_; }
    void restart() override { bytes_ = 0; }
    void write(std::string_view piece) override {
      if (bytes_ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2500));
      bytes_ += piece.size();
    }
    bool is_right() override { return true; }

   private:
    std::uint64_t bytes_ = 0;
  } sink;
  source({.idle_timeout = std::chrono::seconds(2)}).fetch(blob(some_bytes(1'000'000)), sink);
  EXPECT_EQ(sink.offset(), 1'000'000U);
}

TEST_F(RegistryTransfer, ACancelledTransferEndsAtOnce) {
  auto described = blob(some_bytes(100'000));
  script_blobs([&](int, const FakeRequest& request) {
    cancel_.cancel();
    return cut(request, End::silent, 10);
  });
  MemorySink sink;
  EXPECT_EQ(error_of([&] { source().fetch(described, sink); }).code(), ErrorCode::cancelled);
}

TEST_F(RegistryTransfer, WhatASinkThrowsIsThrown) {
  class FullSink final : public BlobSink {
   public:
    std::uint64_t offset() const override { return 0; }
    void restart() override {}
    void write(std::string_view) override { throw Error(ErrorCode::storage_full, "full"); }
    bool is_right() override { return false; }
  } sink;
  EXPECT_EQ(error_of([&] { source().fetch(blob("x"), sink); }).code(), ErrorCode::storage_full);
  EXPECT_EQ(registry_.requests_for("/blobs/").size(), 1U);
}

TEST_F(RegistryTransfer, IMG_11_WaitsWhatIsAsked) {
  auto described = blob("bytes");
  script_blobs([](int count, const FakeRequest&) -> std::optional<FakeReply> {
    if (count == 0) return FakeReply{.status = 429, .headers = {{"Retry-After", "7"}}};
    if (count == 1)
      return FakeReply{.status = 429, .headers = {{"Retry-After", "Thu, 01 Jan 1970 00:00:00 GMT"}}};
    if (count == 2) return FakeReply{.status = 429};
    return std::nullopt;
  });
  MemorySink sink;
  source().fetch(described, sink);
  EXPECT_EQ(sink.bytes, "bytes");
  EXPECT_THAT(waits_, ElementsAre(7, 1, 2)) << "a time that has passed, and none at all, are backed off from";
}

TEST_F(RegistryTransfer, IMG_11_LongWaitsAreRefusedInTheServersWords) {
  for (const char* wait : {"1000000000", "Fri, 31 Dec 9999 23:59:59 GMT"}) {
    registry_.script([wait](const FakeRequest& request) -> std::optional<FakeReply> {
      if (request.target == "/v2/") return std::nullopt;
      return FakeReply{
          .status = 429,
          .headers = {{"Retry-After", wait}},
          .body = "{\"errors\":[{\"code\":\"TOOMANYREQUESTS\",\"message\":\"pull less \\u001b[31m\"}]}"};
    });
    auto error = error_of([&] { source().top(); });
    EXPECT_EQ(error.code(), ErrorCode::limit_exceeded);
    EXPECT_THAT(error.what(), HasSubstr("TOOMANYREQUESTS: pull less"));
    EXPECT_THAT(error.what(), Not(HasSubstr("\x1b")));
  }
  EXPECT_TRUE(waits_.empty());
}

TEST_F(RegistryTransfer, IMG_11_UnavailableThreeTimesAndThenThere) {
  registry_.add_manifest("1", "{}", k_manifest_type);
  auto count = std::make_shared<std::atomic<int>>(0);
  registry_.script([count](const FakeRequest& request) -> std::optional<FakeReply> {
    if (request.target == "/v2/" || (*count)++ >= 3) return std::nullopt;
    return FakeReply{.status = 503};
  });
  EXPECT_EQ(source().top().bytes, "{}");
  EXPECT_THAT(waits_, ElementsAre(0.5, 1, 2));

  registry_.script([](const FakeRequest& request) -> std::optional<FakeReply> {
    if (request.target == "/v2/") return std::nullopt;
    return FakeReply{.status = 503, .body = "gone fishing"};
  });
  auto error = error_of([&] { source({.retries = 2}).top(); });
  EXPECT_EQ(error.code(), ErrorCode::network_error);
  EXPECT_THAT(error.what(), HasSubstr("gone fishing"));
}

TEST_F(RegistryTransfer, NobodyThereIsSaidAtOnce) {
  test::ClosedPort nobody;
  auto error = error_of([&] { source_at(nobody.host()).top(); });
  EXPECT_EQ(error.code(), ErrorCode::network_error);
  EXPECT_THAT(error.what(), HasSubstr(nobody.host()));
  EXPECT_TRUE(waits_.empty());
}

}  // namespace
}  // namespace holt::image
