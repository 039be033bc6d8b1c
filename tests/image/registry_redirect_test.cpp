// A registry that sends elsewhere.
#include "image/registry_transfer_fixture.hpp"

#include <fmt/format.h>

namespace holt::image {
namespace {

using test::FakeReply;
using test::FakeRequest;
using test::MemorySink;
using ::testing::HasSubstr;

class RegistryRedirects : public test::RegistryTransfer {
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
  for (const char* location : {"http://169.254.169.254/latest/meta-data", "http://[fe80::1]/",
                               "http://10.0.0.1/", "http://[fd00::1]/", "http://[::ffff:169.254.169.254]/",
                               "https://[fe80::1]/", "https://[::ffff:169.254.169.254]/"}) {
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

/// A registry at an IPv6 address of this machine.
class RegistryByIpv6 : public RegistryRedirects {
 protected:
  void SetUp() override {
    try {
      six_ = std::make_unique<test::FakeRegistry>(test::FakeRegistry::Options{.address = "[::1]"});
    } catch (const Error&) {
      GTEST_SKIP() << "this machine has no IPv6";
    }
  }
  std::unique_ptr<test::FakeRegistry> six_;
};

TEST_F(RegistryByIpv6, IMG_15_IsAskedByHttpAsOneOnTheLoopback) {
  six_->add_manifest("1", "{}", test::k_manifest_type);
  EXPECT_EQ(source_at(six_->host()).top().bytes, "{}");
  auto port = six_->host().substr(six_->host().rfind(':'));
  auto from = source_at("[0:0:0:0:0:0:0:1]" + port);
  EXPECT_EQ(from.top().bytes, "{}");
  EXPECT_EQ(from.name(), six_->host() + "/app:1");
}

TEST_F(RegistryByIpv6, IMG_09_MayLeadToThisMachineAndNotToItsLinks) {
  six_->script([](const FakeRequest&) { return FakeReply{.body = "bytes"}; });
  redirect_blobs(six_->url() + "/elsewhere");
  MemorySink sink;
  source().fetch(blob("bytes"), sink);
  EXPECT_EQ(sink.bytes, "bytes");
  six_->script([](const FakeRequest& request) -> std::optional<FakeReply> {
    if (request.target == "/v2/") return std::nullopt;
    return FakeReply{.status = 307, .headers = {{"Location", "http://[fe80::1]/"}}};
  });
  MemorySink nothing;
  auto error = error_of([&] { source_at(six_->host()).fetch(blob("bytes"), nothing); });
  EXPECT_EQ(error.code(), ErrorCode::network_error);
}

}  // namespace
}  // namespace holt::image
