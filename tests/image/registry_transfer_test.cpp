// Documents and blobs from a registry that cuts, stalls, lies, slows down and redirects.
#include "holt/base/encoding.hpp"
#include "image/registry_fixture.hpp"

#include <fmt/format.h>

namespace holt::image {
namespace {

using test::FakeReply;
using test::FakeRequest;
using test::MemorySink;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using End = FakeReply::End;

constexpr const char* k_manifest_type = "application/vnd.oci.image.manifest.v1+json";

std::string some_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>((i * 31 + i / 251) & 0xff);
  return bytes;
}

class RegistryTransfer : public test::RegistryTest {
 protected:
  /// The n-th request for a blob (from 0) is answered by `script`.
  void script_blobs(std::function<std::optional<FakeReply>(int, const FakeRequest&)> script) {
    auto count = std::make_shared<std::atomic<int>>(0);
    registry_.script(
        [count, script = std::move(script)](const FakeRequest& request) -> std::optional<FakeReply> {
          if (!request.asks_for("/blobs/")) return std::nullopt;
          return script((*count)++, request);
        });
  }
  FakeReply cut(const FakeRequest& request, End end, std::size_t sent) {
    auto reply = registry_.good_reply(request);
    reply.end = end;
    reply.sent = sent;
    return reply;
  }
};

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
  script_blobs([&](int count, FakeRequest request) -> std::optional<FakeReply> {
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

class RegistryRedirects : public RegistryTransfer {
 protected:
  /// Each blob is answered by a redirect to `location`.
  void redirect_blobs(const std::string& location, int status = 307) {
    script_blobs([location, status](int, const FakeRequest&) {
      FakeReply reply{.status = status};
      if (!location.empty()) reply.headers.emplace_back("Location", location);
      return reply;
    });
  }
  Error refused(const std::string& location) {
    redirect_blobs(location);
    MemorySink sink;
    auto error = error_of([&] { source().fetch(blob("bytes"), sink); });
    EXPECT_EQ(error.code(), ErrorCode::network_error) << location;
    EXPECT_EQ(sink.bytes, "");
    return error;
  }
};

TEST_F(RegistryRedirects, IMG_12_AreFollowedTenTimes) {
  auto described = blob("bytes");
  for (int hops : {1, 10, 11, 21}) {
    registry_.script([&, hops](const FakeRequest& request) -> std::optional<FakeReply> {
      if (request.target == "/v2/") return std::nullopt;
      int left = request.asks_for("/hop/") ? std::stoi(request.target.substr(5)) : hops;
      if (left == 0) return FakeReply{.body = "bytes"};
      return FakeReply{.status = left % 2 ? 302 : 307,
                       .headers = {{"Location", fmt::format("/hop/{}?secretquery", left - 1)}},
                       .body = "see there"};
    });
    MemorySink sink;
    if (hops <= 10) {
      source().fetch(described, sink);
      EXPECT_EQ(sink.bytes, "bytes");
      continue;
    }
    auto error = error_of([&] { source().fetch(described, sink); });
    EXPECT_EQ(error.code(), ErrorCode::network_error);
    EXPECT_THAT(error.what(), HasSubstr(fmt::format("{}/hop/{}", registry_.url(), hops - 11)));
  }
}

TEST_F(RegistryRedirects, IMG_12_ALoopEnds) {
  auto error = refused("/v2/app/blobs/loop?secretquery");
  EXPECT_THAT(error.what(), HasSubstr("more than 10 redirects"));
  EXPECT_EQ(registry_.requests_for("/blobs/").size(), 11U);
}

TEST_F(RegistryRedirects, IMG_12_ToOtherSchemesAreRefused) {
  for (const char* location : {"file:///etc/passwd", "gopher://127.0.0.1/x", "ftp://127.0.0.1/", "data:,x"}) {
    EXPECT_THAT(refused(location).what(), HasSubstr("neither http nor https")) << location;
  }
  EXPECT_THAT(refused("").what(), HasSubstr("without a Location"));
  EXPECT_THAT(refused("http://user:hunter2@127.0.0.1/").what(), HasSubstr("user name"));
}

TEST_F(RegistryRedirects, IMG_09_ToLinkLocalAndPrivateAddressesAreRefused) {
  for (const char* location :
       {"http://169.254.169.254/latest/meta-data", "http://[fe80::1]/", "http://10.0.0.1/"}) {
    refused(location);
  }
}

TEST_F(RegistryRedirects, RelativeOnesToTheSameServerKeepTheCredentials) {
  auto described = blob("bytes");
  registry_.script([&](const FakeRequest& request) -> std::optional<FakeReply> {
    if (request.target == "/v2/") return std::nullopt;
    if (request.header("authorization") != test::k_alice_basic) {
      return FakeReply{.status = 401, .headers = {{"WWW-Authenticate", "Basic realm=\"x\""}}};
    }
    if (request.asks_for("/elsewhere")) return FakeReply{.body = "bytes"};
    return FakeReply{.status = 307, .headers = {{"Location", "../../../elsewhere"}}};
  });
  MemorySink sink;
  source({.credentials = test::k_alice}).fetch(described, sink);
  EXPECT_EQ(sink.bytes, "bytes");
  EXPECT_EQ(registry_.requests_for("/elsewhere").at(0).target, "/elsewhere");
}

class RegistryMirrors : public RegistryTransfer {
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
