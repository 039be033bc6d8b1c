// What the registry client is made of, without a network: URLs, addresses, challenges, proxies, words, waits.
#include "holt/base/error.hpp"
#include "image/registry/address.hpp"
#include "image/registry/blob_fetch.hpp"
#include "image/registry/challenge.hpp"
#include "image/registry/patience.hpp"
#include "image/registry/proxy.hpp"
#include "image/registry/refusal.hpp"
#include "image/registry/url.hpp"

#include <arpa/inet.h>
#include <cstring>
#include <netinet/in.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holt::image {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Url url(const std::string& text) {
  auto parsed = parse_url(text);
  EXPECT_TRUE(parsed) << text << ": " << (parsed ? "" : parsed.error());
  return parsed.value_or(Url{});
}

AddressKind kind_of(const std::string& text) {
  sockaddr_storage storage{};
  sockaddr_in four{};
  sockaddr_in6 six{};
  if (::inet_pton(AF_INET, text.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    std::memcpy(&storage, &four, sizeof four);
  } else {
    EXPECT_EQ(::inet_pton(AF_INET6, text.c_str(), &six.sin6_addr), 1) << text;
    six.sin6_family = AF_INET6;
    std::memcpy(&storage, &six, sizeof six);
  }
  return address_kind(reinterpret_cast<const sockaddr&>(storage));
}

TEST(RegistryUrl, IsTakenApart) {
  auto parsed = url("HTTPS://Example.COM/v2/a?x=1&y=2#f");
  EXPECT_EQ(parsed.scheme, "https");
  EXPECT_EQ(parsed.host, "example.com");
  EXPECT_EQ(parsed.port, 443U);
  EXPECT_EQ(parsed.path, "/v2/a");
  EXPECT_EQ(parsed.query, "x=1&y=2");
  EXPECT_EQ(parsed.shown(), "https://example.com/v2/a");
  EXPECT_EQ(parsed.origin(), "https://example.com:443");
  EXPECT_EQ(url("http://[::1]:5000").text(), "http://[::1]:5000/");
}

TEST(RegistryUrl, RefusesWhatIsNotHttp) {
  for (const char* text :
       {"file:///etc/passwd", "gopher://a/", "ftp://a/", "", "a/b", "http://", "http://u:p@a/", "http://u@a/",
        "http://a:99999/", "http://a b/", "javascript:alert(1)", "http://a\n/"}) {
    EXPECT_FALSE(parse_url(text)) << text;
  }
  EXPECT_FALSE(parse_url("http://a/" + std::string(20'000, 'x')));
  EXPECT_FALSE(parse_url("http://a/" + std::string(8000, '\xc3')));  // sent as %C3 each
  EXPECT_FALSE(parse_url(std::string("http://a/\0b", 11)));
  EXPECT_THAT(parse_url("gopher://a/?secret").error(), HasSubstr("gopher"));
  EXPECT_THAT(parse_url("gopher://a/?secret").error(), Not(HasSubstr("secret")));
}

TEST(RegistryUrl, ResolvesLocations) {
  auto base = url("https://a.example/v2/x/blobs/1?token=t");
  EXPECT_EQ(resolve_url(base, "/other")->text(), "https://a.example/other");
  EXPECT_EQ(resolve_url(base, "../y?q=1")->text(), "https://a.example/v2/x/y?q=1");
  EXPECT_EQ(resolve_url(base, "//b.example/z")->text(), "https://b.example/z");
  EXPECT_EQ(resolve_url(base, "http://b.example:8080/z")->origin(), "http://b.example:8080");
  for (const char* location : {"", "file:///etc/passwd", "gopher://x", "https://u:p@b.example/"}) {
    EXPECT_FALSE(resolve_url(base, location)) << location;
  }
}

TEST(RegistryUrl, IMG_09_EncodesParametersOfAChallenge) {
  auto realm = url("https://auth.example/token?have=1");
  realm.add_parameter("service", "a&b#c d");
  realm.add_parameter("scope", "repository:x:pull");
  EXPECT_EQ(realm.text(),
            "https://auth.example/token?have=1&service=a%26b%23c%20d&scope=repository%3Ax%3Apull");
}

TEST(RegistryUrl, IMG_09_KnowsWhichHostsAreOneSite) {
  EXPECT_TRUE(is_same_site(url("https://registry-1.docker.io/"), url("https://auth.docker.io/token")));
  EXPECT_TRUE(is_same_site(url("https://registry.gitlab.com/"), url("https://gitlab.com/jwt/auth")));
  EXPECT_TRUE(is_same_site(url("http://127.0.0.1:5000/"), url("http://127.0.0.1:5001/")));
  EXPECT_FALSE(is_same_site(url("https://a.github.io/"), url("https://b.github.io/")));
  EXPECT_FALSE(is_same_site(url("https://a.co.uk/"), url("https://b.co.uk/")));
  EXPECT_FALSE(is_same_site(url("https://docker.io.example/"), url("https://auth.docker.io/")));
  EXPECT_FALSE(is_same_site(url("http://127.0.0.1/"), url("http://127.0.0.2/")));
  EXPECT_FALSE(is_same_site(url("http://registry.corp/"), url("http://auth.corp/")));
}

TEST(RegistryUrl, KnowsTheLoopbackByName) {
  for (const char* host :
       {"localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "[::1]", "[0:0::1]", "LOCALHOST"})
    EXPECT_TRUE(is_loopback_name(host)) << host;
  for (const char* host : {"localhost.example", "128.0.0.1", "127.0.0.1.example", "example", "[::2]", "[::]",
                           "::1", "[fe80::1]"})
    EXPECT_FALSE(is_loopback_name(host)) << host;
}

TEST(RegistryAddress, IMG_09_IsOfAKind) {
  for (const char* text :
       {"127.0.0.1", "127.255.1.1", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::127.0.0.1"})
    EXPECT_EQ(kind_of(text), AddressKind::loopback) << text;
  for (const char* text :
       {"169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1"})
    EXPECT_EQ(kind_of(text), AddressKind::link_local) << text;
  for (const char* text : {"10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "fc00::1",
                           "fd00::1", "224.0.0.1", "255.255.255.255", "ff02::1"})
    EXPECT_EQ(kind_of(text), AddressKind::private_) << text;
  for (const char* text :
       {"8.8.8.8", "172.32.0.1", "172.15.0.1", "11.0.0.1", "2606:4700::1111", "169.253.0.1"})
    EXPECT_EQ(kind_of(text), AddressKind::global) << text;
}

TEST(RegistryAddress, IMG_09_LeadsOnlyWhereItIsItself) {
  using enum AddressKind;
  for (auto from : {global, private_, loopback, link_local}) {
    EXPECT_TRUE(may_lead(from, global));
    EXPECT_TRUE(may_lead(from, from));
    EXPECT_EQ(may_lead(from, link_local), from == link_local);
    EXPECT_EQ(may_lead(from, loopback), from == loopback);
  }
  EXPECT_FALSE(may_lead(global, private_));
  EXPECT_TRUE(may_lead(loopback, private_));
}

TEST(RegistryChallenge, IsReadInItsManyForms) {
  auto one = parse_challenges(R"(Bearer realm="https://a/token",service="s",scope="repository:x:pull,push")");
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].scheme, "bearer");
  EXPECT_EQ(one[0].parameter("realm"), "https://a/token");
  EXPECT_EQ(one[0].parameter("scope"), "repository:x:pull,push");
  EXPECT_EQ(one[0].parameter("none"), "");

  auto two =
      parse_challenges(R"(Basic realm="a \"b\", c" , BEARER Realm = https://x/y , error=invalid_token)");
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[0].parameter("realm"), "a \"b\", c");
  EXPECT_EQ(two[1].scheme, "bearer");
  EXPECT_EQ(two[1].parameter("realm"), "https://x/y");
  EXPECT_EQ(two[1].parameter("error"), "invalid_token");

  EXPECT_EQ(parse_challenges("Negotiate").at(0).scheme, "negotiate");
  EXPECT_EQ(parse_challenges("Negotiate, Basic realm=x").at(1).scheme, "basic");
}

TEST(RegistryChallenge, IsBounded) {
  EXPECT_TRUE(parse_challenges("").empty());
  EXPECT_TRUE(parse_challenges(" ,, ,").empty());
  EXPECT_TRUE(parse_challenges("\"").empty());
  EXPECT_TRUE(parse_challenges("=a").empty());
  EXPECT_EQ(parse_challenges("Bearer realm=\"open").at(0).parameter("realm"), "");
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "S" + std::to_string(i) + ", ";
  EXPECT_LE(parse_challenges(many).size(), 16U);
  std::string parameters = "Bearer ";
  for (int i = 0; i < 1000; ++i) parameters += "p" + std::to_string(i) + "=1, ";
  EXPECT_LE(parse_challenges(parameters).at(0).parameters.size(), 16U);
  EXPECT_EQ(parse_challenges("Bearer realm=" + std::string(10'000, 'x')).at(0).parameter("realm"), "");
}

TEST(RegistryProxy, FollowsTheEnvironment) {
  std::map<std::string, std::string> variables = {{"https_proxy", "http://p:1"},
                                                  {"HTTP_PROXY", "http://evil:1"},
                                                  {"no_proxy", "inside.example, .corp,10.0.0.7"}};
  auto proxy = [&](const char* text) {
    return proxy_for(url(text), [&](const std::string& name) -> std::optional<std::string> {
      auto it = variables.find(name);
      return it == variables.end() ? std::nullopt : std::optional(it->second);
    });
  };
  EXPECT_EQ(proxy("https://a.example/"), "http://p:1");
  EXPECT_EQ(proxy("http://a.example/"), "");
  EXPECT_EQ(proxy("https://inside.example/"), "");
  EXPECT_EQ(proxy("https://x.inside.example/"), "");
  EXPECT_EQ(proxy("https://notinside.example/"), "http://p:1");
  EXPECT_EQ(proxy("https://a.corp/"), "");
  EXPECT_EQ(proxy("https://10.0.0.7/"), "");
  EXPECT_EQ(proxy("https://127.0.0.1:5000/"), "");
  EXPECT_EQ(proxy("https://localhost/"), "");
  variables = {{"ALL_PROXY", "socks5://q:2"}};
  EXPECT_EQ(proxy("http://a.example/"), "socks5://q:2");
  variables["no_proxy"] = "*";
  EXPECT_EQ(proxy("http://a.example/"), "");
}

TEST(RegistryWords, AreTheServersOwnAndPrintable) {
  EXPECT_EQ(error_words(R"({"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]})"),
            "TOOMANYREQUESTS: slow down");
  EXPECT_EQ(error_words(R"({"details":"wrong password"})"), "wrong password");
  EXPECT_EQ(error_words("plain text\r\n"), "plain text");
  EXPECT_EQ(error_words(""), "");
  EXPECT_THAT(error_words("\x1b[31mred"), Not(HasSubstr("\x1b")));
  EXPECT_LE(error_words(std::string(100'000, 'x')).size(), 400U);
  EXPECT_EQ(error_words(R"({"errors":[]})"), R"({"errors":[]})");
}

TEST(RegistryRange, IsReadExactly) {
  EXPECT_EQ(first_byte("bytes 7-9/10"), 7U);
  EXPECT_EQ(first_byte("bytes 7-9/*"), 7U);
  for (const char* text : {"", "bytes", "bytes */10", "bytes -7-9/10", "items 7-9/10", "bytes 7",
                           "bytes 99999999999999999999-1/2"})
    EXPECT_EQ(first_byte(text), std::nullopt) << text;
}

/// A Patience whose waits are only written down.
class PatienceTest : public ::testing::Test {
 protected:
  Patience patience(int retries) {
    auto surroundings = Surroundings::of_process();
    surroundings.chance = [] { return 0.0; };
    surroundings.wait = [this](Duration wait, const auto&) {
      waits_.push_back(std::chrono::duration<double>(wait).count());
    };
    return Patience(retries, surroundings, std::nullopt);
  }
  static Refusal refusal(int status, std::optional<double> retry_after = std::nullopt) {
    return Refusal("fetch x", {.status = status, .headers = {}}, "too fast", retry_after);
  }
  std::vector<double> waits_;
};

TEST_F(PatienceTest, BacksOffForBrokenTransfersAndThenThrowsTheLast) {
  auto waiting = patience(6);
  int tried = 0;
  auto attempt = [&] { throw TransferError(TransferError::Kind::broken, "try " + std::to_string(++tried)); };
  try {
    waiting.with(attempt);
    FAIL() << "it ended";
  } catch (const TransferError& error) {
    EXPECT_STREQ(error.what(), "try 7");
  }
  EXPECT_EQ(waits_, (std::vector<double>{0.5, 1, 2, 4, 8, 8}));
}

TEST_F(PatienceTest, TriesNothingAgainThatCannotGetBetter) {
  for (auto kind : {TransferError::Kind::silent, TransferError::Kind::refused, TransferError::Kind::untrusted,
                    TransferError::Kind::not_tls, TransferError::Kind::unreachable}) {
    int tried = 0;
    auto attempt = [&] {
      ++tried;
      throw TransferError(kind, "no");
    };
    EXPECT_THROW(patience(5).with(attempt), TransferError);
    EXPECT_EQ(tried, 1);
  }
  for (int status : {400, 401, 403, 404, 416})
    EXPECT_THROW(patience(5).with([&] { throw refusal(status); }), Refusal);
  EXPECT_TRUE(waits_.empty());
}

TEST_F(PatienceTest, LooksForAServerThatHasJustGone) {
  auto waiting = patience(2);
  waiting.note_progress();
  EXPECT_THROW(waiting.with([] { throw TransferError(TransferError::Kind::unreachable, "gone"); }),
               TransferError);
  EXPECT_EQ(waits_.size(), 2U);
}

TEST_F(PatienceTest, IMG_11_WaitsWhatIsAskedForAMinuteInAll) {
  int tried = 0;
  try {
    patience(0).with([&] {
      ++tried;
      throw refusal(429, 25.0);
    });
    FAIL() << "it ended";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::limit_exceeded);
    EXPECT_THAT(error.what(), HasSubstr("too fast"));
  }
  EXPECT_EQ(tried, 3);
  EXPECT_EQ(waits_, (std::vector<double>{25, 25}));
}

TEST_F(PatienceTest, IMG_11_DoesNotWaitForLongTimes) {
  for (double asked : {61.0, 1e9, 1e300}) {
    EXPECT_THROW(patience(5).with([&] { throw refusal(429, asked); }), Error);
    EXPECT_THROW(patience(5).with([&] { throw refusal(503, asked); }), Error);
  }
  EXPECT_TRUE(waits_.empty());
}

TEST_F(PatienceTest, IMG_11_BacksOffWhereNothingIsAsked) {
  for (auto asked : {std::optional<double>(), std::optional(0.0), std::optional(-5.0)}) {
    waits_.clear();
    EXPECT_THROW(patience(0).with([&] { throw refusal(429, asked); }), Error);
    double sum = 0;
    for (double wait : waits_) sum += wait;
    EXPECT_GT(waits_.size(), 5U);
    EXPECT_LE(sum, 60);
    EXPECT_GT(sum, 50);
  }
}

}  // namespace
}  // namespace holt::image
