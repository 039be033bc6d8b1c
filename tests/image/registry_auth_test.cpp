// Who gets to see what of the user's credentials, and how often anybody is asked.
#include "image/registry/credentials.hpp"
#include "image/registry_fixture.hpp"

#include <sys/stat.h>

#include <fmt/format.h>

namespace holt::image {
namespace {

using test::FakeRegistry;
using test::FakeReply;
using test::FakeRequest;
using test::k_alice;
using test::k_alice_basic;
using test::MemorySink;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using End = FakeReply::End;

FakeReply challenge(const std::string& text) {
  return {.status = 401,
          .headers = {{"WWW-Authenticate", text}},
          .body = R"({"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]})"};
}

FakeReply bearer_challenge(const std::string& realm, const std::string& more = ",service=\"s\"") {
  return challenge(fmt::format("Bearer realm=\"{}\"{}", realm, more));
}

FakeReply token(const std::string& value) {
  return {.body = fmt::format(R"({{"token":"{}","expires_in":60}})", value)};
}

class RegistryAuth : public test::RegistryTest {
 protected:
  RegistryAuth() { registry_.add_manifest("1", "{}", "application/json"); }

  /// Everything but /v2/ and what `open` answers wants the token `good`.
  void protect(FakeRegistry& registry, const FakeReply& challenge, const std::string& good,
               FakeRegistry::Script open = nullptr) {
    registry.script([=](const FakeRequest& request) -> std::optional<FakeReply> {
      if (request.target == "/v2/") return std::nullopt;
      if (open) {
        if (auto reply = open(request)) return reply;
      }
      if (request.header("authorization") == good) return std::nullopt;
      return challenge;
    });
  }
  FakeRegistry::Script tokens(const std::string& value) {
    return [value](const FakeRequest& request) -> std::optional<FakeReply> {
      if (!request.asks_for("/token")) return std::nullopt;
      return token(value);
    };
  }
  std::string realm() const { return registry_.url() + "/token"; }

  /// True when nothing that `registry` was sent holds anything of Alice.
  static void expect_nothing_secret(const FakeRegistry& registry) {
    for (const auto& request : registry.requests()) {
      EXPECT_EQ(request.header("authorization"), "");
      for (const char* secret : {"hunter2", "YWxpY2U6aHVudGVyMg", "idtoken"}) {
        EXPECT_THAT(request.target + request.body, Not(HasSubstr(secret)));
      }
    }
  }
};

TEST_F(RegistryAuth, ATokenIsFetchedOnceAndUsedForAll) {
  protect(registry_, bearer_challenge(realm(), ",service=\"s\",scope=\"repository:app:pull\""),
          "Bearer bearer-1", tokens("bearer-1"));
  auto from = source({.credentials = k_alice});
  EXPECT_EQ(from.top().bytes, "{}");
  MemorySink sink;
  from.fetch(blob("bytes"), sink);
  EXPECT_EQ(sink.bytes, "bytes");
  auto asked = registry_.requests_for("/token");
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].target, "/token?service=s&scope=repository%3Aapp%3Apull");
  EXPECT_EQ(asked[0].header("authorization"), k_alice_basic);
}

TEST_F(RegistryAuth, WithoutCredentialsATokenIsAskedForAnonymously) {
  protect(registry_, bearer_challenge(realm()), "Bearer bearer-1", tokens("bearer-1"));
  EXPECT_EQ(source().top().bytes, "{}");
  auto asked = registry_.requests_for("/token");
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].target, "/token?service=s&scope=repository%3Aapp%3Apull")
      << "the scope that pulling needs";
  EXPECT_EQ(asked[0].header("authorization"), "");
}

TEST_F(RegistryAuth, AnIdentityTokenIsPosted) {
  protect(registry_, bearer_challenge(realm()), "Bearer bearer-1",
          [](const FakeRequest& request) -> std::optional<FakeReply> {
            if (!request.asks_for("/token")) return std::nullopt;
            return FakeReply{.body = R"({"access_token":"bearer-1"})"};
          });
  EXPECT_EQ(source({.credentials = Credentials{.user = {}, .password = {}, .identity_token = "idtoken&x"}})
                .top()
                .bytes,
            "{}");
  auto asked = registry_.requests_for("/token");
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].method, "POST");
  EXPECT_EQ(asked[0].target, "/token");
  EXPECT_EQ(asked[0].body,
            "grant_type=refresh_token&client_id=holt&service=s&scope=repository%3Aapp%3Apull&"
            "refresh_token=idtoken%26x");
}

TEST_F(RegistryAuth, BasicIsAnsweredWithUserAndPassword) {
  protect(registry_, challenge("Basic realm=\"here\""), k_alice_basic);
  EXPECT_EQ(source({.credentials = k_alice}).top().bytes, "{}");
  auto error = error_of([&] { source().top(); });
  EXPECT_EQ(error.code(), ErrorCode::unauthorized);
  EXPECT_THAT(error.hint(), HasSubstr("--auth-file"));
}

TEST_F(RegistryAuth, IMG_09_ARedirectToAnotherHostLosesTheAuthorization) {
  FakeRegistry other(FakeRegistry::Options{.address = "127.0.0.2"});
  FakeRegistry same_host;
  for (auto* target : {&other, &same_host}) {
    target->script([](const FakeRequest&) { return FakeReply{.body = "bytes"}; });
    protect(registry_, challenge("Basic realm=x"), k_alice_basic,
            [&, target](const FakeRequest& request) -> std::optional<FakeReply> {
              if (!request.asks_for("/blobs/") || request.header("authorization").empty())
                return std::nullopt;
              return FakeReply{.status = 307, .headers = {{"Location", target->url() + "/b?secretquery"}}};
            });
    MemorySink sink;
    source({.credentials = k_alice}).fetch(blob("bytes"), sink);
    EXPECT_EQ(sink.bytes, "bytes");
    ASSERT_EQ(target->requests().size(), 1U);
    expect_nothing_secret(*target);
  }
}

TEST_F(RegistryAuth, IMG_09_ATokenServerOnAnotherSiteGetsNoCredentials) {
  FakeRegistry other(FakeRegistry::Options{.address = "127.0.0.2"});
  other.script([](const FakeRequest&) { return token("bearer-anonymous"); });
  for (const auto& credentials :
       {k_alice, Credentials{.user = {}, .password = {}, .identity_token = "idtoken"}}) {
    // An image that anybody may have is had.
    protect(registry_, bearer_challenge(other.url() + "/token"), "Bearer bearer-anonymous");
    EXPECT_EQ(source({.credentials = credentials}).top().bytes, "{}");
    // One that only Alice may have is not, and the message says why.
    protect(registry_, bearer_challenge(other.url() + "/token"), "Bearer bearer-alice");
    auto error = error_of([&] { source({.credentials = credentials}).top(); });
    EXPECT_EQ(error.code(), ErrorCode::unauthorized);
    EXPECT_THAT(error.hint(), HasSubstr("not of this registry's site"));
  }
  EXPECT_EQ(other.requests().size(), 4U);
  expect_nothing_secret(other);
}

TEST_F(RegistryAuth, IMG_09_RealmsThatAreNoTokenServersAreRefused) {
  for (const char* realm :
       {"file:///etc/passwd", "gopher://127.0.0.1/", "", "nonsense", "http://user:hunter2@127.0.0.1/",
        "http://169.254.169.254/token", "http://10.0.0.1/token"}) {
    protect(registry_, bearer_challenge(realm), "Bearer never");
    auto error = error_of([&] { source({.credentials = k_alice}).top(); });
    EXPECT_THAT(error.code(), ::testing::AnyOf(ErrorCode::unauthorized, ErrorCode::network_error)) << realm;
  }
}

TEST_F(RegistryAuth, IMG_09_ARealmThatRedirectsToALinkLocalAddressIsRefused) {
  protect(registry_, bearer_challenge(realm()), "Bearer never",
          [](const FakeRequest& request) -> std::optional<FakeReply> {
            if (!request.asks_for("/token")) return std::nullopt;
            return FakeReply{.status = 302,
                             .headers = {{"Location", "http://169.254.169.254/latest?secretquery"}}};
          });
  auto error = error_of([&] { source({.credentials = k_alice}).top(); });
  EXPECT_EQ(error.code(), ErrorCode::network_error);
  EXPECT_THAT(error.what(), HasSubstr("169.254.169.254"));
}

TEST_F(RegistryAuth, IMG_09_ARedirectOfARefreshTokenIsNotFollowed) {
  FakeRegistry other(FakeRegistry::Options{.address = "127.0.0.2"});
  protect(registry_, bearer_challenge(realm()), "Bearer never",
          [&](const FakeRequest& request) -> std::optional<FakeReply> {
            if (!request.asks_for("/token")) return std::nullopt;
            return FakeReply{.status = 307, .headers = {{"Location", other.url()}}};
          });
  error_of([&] {
    source({.credentials = Credentials{.user = {}, .password = {}, .identity_token = "idtoken"}}).top();
  });
  EXPECT_THAT(other.requests(), IsEmpty());
}

TEST_F(RegistryAuth, IMG_09_ServiceAndScopeAreEncoded) {
  protect(registry_, bearer_challenge(realm(), R"(,service="a&scope=all#x",scope="repository:app:pull&y=#")"),
          "Bearer bearer-1", tokens("bearer-1"));
  EXPECT_EQ(source({.credentials = k_alice}).top().bytes, "{}");
  EXPECT_EQ(registry_.requests_for("/token").at(0).target,
            "/token?service=a%26scope%3Dall%23x&scope=repository%3Aapp%3Apull%26y%3D%23");
}

TEST_F(RegistryAuth, IMG_10_401ForEverEndsAfterTwoTries) {
  protect(registry_, bearer_challenge(realm()), "Bearer never", tokens("bearer-1"));
  auto error = error_of([&] { source({.credentials = k_alice}).top(); });
  EXPECT_EQ(error.code(), ErrorCode::unauthorized);
  EXPECT_THAT(error.what(), HasSubstr("authentication required"));
  EXPECT_EQ(registry_.requests_for("/token").size(), 1U);
  EXPECT_EQ(registry_.requests_for("/manifests/").size(), 2U);

  // A challenge that nothing answers.
  for (const char* text : {"", "Negotiate", "Bearer", "\"", "Digest realm=x"}) {
    protect(registry_, challenge(text), "never");
    EXPECT_EQ(error_of([&] { source({.credentials = k_alice}).top(); }).code(), ErrorCode::unauthorized)
        << text;
  }
  EXPECT_TRUE(waits_.empty());
}

TEST_F(RegistryAuth, IMG_10_AnswersWithoutATokenAreRefused) {
  std::vector<FakeReply> answers = {
      {.headers = {{"Content-Type", "text/html"}}, .body = "<html>hello</html>"},
      {.body = "{}"},
      {.body = "[]"},
      {.body = R"({"token":7})"},
      {.body = R"({"token":""})"},
      {.body = R"({"token":"bearer-1\r\nX-Evil: yes"})"},
      {.body = R"({"token":"bearer-1\u0000"})"},
      {.body = std::string(100'000, 'x'), .end = End::endless},
      {.status = 204},
      {.status = 403, .body = R"({"details":"no such user; you sent hunter2 and YWxpY2U6aHVudGVyMg=="})"},
  };
  for (const auto& answer : answers) {
    protect(registry_, bearer_challenge(realm()), "Bearer bearer-1",
            [&](const FakeRequest& request) -> std::optional<FakeReply> {
              if (!request.asks_for("/token")) return std::nullopt;
              return answer;
            });
    auto error = error_of([&] { source({.credentials = k_alice}).top(); });
    EXPECT_EQ(error.code(), ErrorCode::unauthorized) << answer.body.substr(0, 50);
  }
  for (const auto& request : registry_.requests()) EXPECT_EQ(request.header("x-evil"), "");
}

TEST_F(RegistryAuth, IMG_10_AnExpiredTokenIsRenewedOnceARequest) {
  auto issued = std::make_shared<std::atomic<int>>(0);
  auto valid = std::make_shared<std::atomic<int>>(1);
  registry_.script([this, issued, valid](const FakeRequest& request) -> std::optional<FakeReply> {
    if (request.target == "/v2/") return std::nullopt;
    if (request.asks_for("/token")) return token(fmt::format("bearer-{}", ++*issued));
    if (request.header("authorization") == fmt::format("Bearer bearer-{}", valid->load()))
      return std::nullopt;
    return bearer_challenge(realm());
  });
  auto from = source({.credentials = k_alice});
  EXPECT_EQ(from.top().bytes, "{}");
  *valid = 2;  // the first has expired
  MemorySink sink;
  from.fetch(blob("bytes"), sink);
  EXPECT_EQ(sink.bytes, "bytes");
  EXPECT_EQ(registry_.requests_for("/token").size(), 2U);
  *valid = 7;  // and now each one at once
  EXPECT_EQ(error_of([&] { from.top(); }).code(), ErrorCode::unauthorized);
  EXPECT_EQ(registry_.requests_for("/token").size(), 3U);
}

TEST_F(RegistryAuth, IMG_11_ATokenServerMayAskForTimeToo) {
  auto asked = std::make_shared<std::atomic<int>>(0);
  protect(registry_, bearer_challenge(realm()), "Bearer bearer-1",
          [asked](const FakeRequest& request) -> std::optional<FakeReply> {
            if (!request.asks_for("/token")) return std::nullopt;
            if ((*asked)++ == 0) return FakeReply{.status = 429, .headers = {{"Retry-After", "3"}}};
            return token("bearer-1");
          });
  EXPECT_EQ(source().top().bytes, "{}");
  EXPECT_EQ(waits_, std::vector<double>{3});
}

/// A registry with TLS at 127.0.0.2, which counts as an address of the internet.
class PublicRegistry : public RegistryAuth {
 protected:
  void SetUp() override {
    certificate_ = test::FakeCertificate::make(dir_.path());
    if (!certificate_) GTEST_SKIP() << "there is no openssl program";
    kind_of_127_0_0_2_ = AddressKind::global;
    public_ =
        std::make_unique<FakeRegistry>(FakeRegistry::Options{.address = "127.0.0.2", .tls = certificate_});
    public_->add_manifest("1", "{}", "application/json");
  }
  RegistryOptions trusting() const { return {.ca_file = certificate_->certificate, .credentials = k_alice}; }
  RegistrySource public_source() { return source_at(public_->host(), trusting()); }

  std::optional<test::FakeCertificate> certificate_;
  std::unique_ptr<FakeRegistry> public_;
};

TEST_F(PublicRegistry, CertificatesAreChecked) {
  auto error = error_of([&] { source_at(public_->host()).top(); });
  EXPECT_EQ(error.code(), ErrorCode::network_error);
  EXPECT_THAT(error.what(), HasSubstr("certificate"));
  EXPECT_THAT(error.hint(), HasSubstr("--ca-file"));
  EXPECT_THAT(public_->requests(), IsEmpty());
  EXPECT_EQ(public_source().top().bytes, "{}");
  EXPECT_EQ(source_at(public_->host(), {.insecure = true}).top().bytes, "{}");
  EXPECT_EQ(error_of([&] { source_at(public_->host(), {.ca_file = dir_.path() / "none"}); }).code(),
            ErrorCode::not_found);
}

TEST_F(PublicRegistry, IMG_12_HttpsDoesNotBecomeHttp) {
  registry_.script([](const FakeRequest&) { return FakeReply{.body = "bytes"}; });
  public_->script([&](const FakeRequest& request) -> std::optional<FakeReply> {
    if (request.target == "/v2/") return std::nullopt;
    return FakeReply{.status = 307, .headers = {{"Location", registry_.url() + "/x?secretquery"}}};
  });
  for (bool insecure : {false, true}) {
    auto options = trusting();
    options.insecure = insecure;
    auto error = error_of([&] { source_at(public_->host(), options).top(); });
    EXPECT_EQ(error.code(), ErrorCode::network_error);
    EXPECT_THAT(error.what(), HasSubstr("from https to http"));
  }
  EXPECT_THAT(registry_.requests(), IsEmpty());
}

TEST_F(PublicRegistry, IMG_09_ARealmByPlainHttpIsRefused) {
  protect(*public_, bearer_challenge(realm()), "Bearer never");
  auto error = error_of([&] { public_source().top(); });
  EXPECT_EQ(error.code(), ErrorCode::unauthorized);
  EXPECT_THAT(error.what(), HasSubstr("plain http"));
  EXPECT_THAT(registry_.requests(), IsEmpty());
}

TEST_F(PublicRegistry, IMG_09_LeadsNowhereInsideTheSite) {
  FakeRegistry inside(FakeRegistry::Options{.address = "127.0.0.1", .tls = certificate_});
  auto port = inside.host().substr(inside.host().rfind(':'));
  // By its address, and by a name that only the resolver knows.
  for (const auto& host :
       {"127.0.0.1" + port, "localhost" + port, "[::ffff:127.0.0.1]" + port, std::string("[::1]"),
        std::string("[::]"), std::string("[fe80::1]"), std::string("[fc00::1]"),
        std::string("169.254.169.254"), std::string("10.1.1.1")}) {
    protect(*public_, bearer_challenge("https://" + host + "/token"), "Bearer never");
    auto error = error_of([&] { public_source().top(); });
    EXPECT_EQ(error.code(), ErrorCode::network_error) << host;
    EXPECT_THAT(error.what(), HasSubstr("may not lead")) << host;

    public_->script([&](const FakeRequest& request) -> std::optional<FakeReply> {
      if (request.target == "/v2/") return std::nullopt;
      return FakeReply{.status = 307, .headers = {{"Location", "https://" + host + "/b"}}};
    });
    EXPECT_EQ(error_of([&] { public_source().top(); }).code(), ErrorCode::network_error) << host;
  }
  EXPECT_THAT(inside.requests(), IsEmpty());
}

TEST_F(PublicRegistry, PlainHttpIsForThisMachineUnlessTheUserSaysSo) {
  FakeRegistry plain(FakeRegistry::Options{.address = "127.0.0.2"});
  plain.add_manifest("1", "{}", "application/json");
  auto error = error_of([&] { source_at(plain.host()).top(); });
  EXPECT_EQ(error.code(), ErrorCode::network_error);
  EXPECT_THAT(error.what(), HasSubstr("plain http"));
  EXPECT_THAT(plain.requests(), IsEmpty());
  EXPECT_EQ(source_at(plain.host(), {.insecure = true}).top().bytes, "{}");
}

/// Files of credentials.
class RegistryCredentials : public test::RegistryTest {
 protected:
  RegistryCredentials() { variables_["HOME"] = dir_.path(); }

  std::optional<Credentials> find(const std::string& registry, const std::string& repository = "a/b/c",
                                  const RegistryOptions& options = {}) {
    return find_credentials(registry, repository, options, surroundings(), std::nullopt);
  }
  std::filesystem::path write(const std::string& name, const std::string& text) {
    auto path = dir_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    write_file_atomically(path, text);
    return path;
  }
  static std::string user(const std::optional<Credentials>& found) { return found ? found->user : "(none)"; }
  /// A program docker-credential-NAME in a folder of the PATH.
  void helper(const std::string& name, const std::string& script) {
    auto path = write("bin/docker-credential-" + name, "#!/bin/sh\n" + script);
    ::chmod(path.c_str(), 0755);
    variables_["PATH"] = dir_.path() / "bin";
  }
};

// "auth" of these files: base64 of "carol:hunter2", "dave:x:y", "eve:z".
constexpr const char* k_carol = R"({"auth":"Y2Fyb2w6aHVudGVyMg=="})";
constexpr const char* k_dave = R"({"auth":"ZGF2ZTp4Onk="})";
constexpr const char* k_eve = R"({"auth":"ZXZlOno="})";

TEST_F(RegistryCredentials, TheLongestPrefixOfTheNameCounts) {
  write(".config/containers/auth.json",
        fmt::format(R"({{"auths":{{"r.example":{},"r.example/a/b":{},"r.example/a/b/c/d":{}}}}})", k_carol,
                    k_dave, k_eve));
  EXPECT_EQ(user(find("r.example")), "dave");
  EXPECT_EQ(find("r.example")->password, "x:y");
  EXPECT_EQ(user(find("r.example", "a")), "carol");
  EXPECT_EQ(user(find("r.example", "a/bc")), "carol");
  EXPECT_EQ(user(find("r.example:5000")), "(none)");
  EXPECT_EQ(user(find("other.example")), "(none)");
}

TEST_F(RegistryCredentials, DockersOwnKeysAreUnderstood) {
  write(
      ".docker/config.json",
      fmt::format(
          R"({{"auths":{{"https://index.docker.io/v1/":{},"https://r.example/v2/":{},"empty.example":{{}}}}}})",
          k_carol, k_dave));
  EXPECT_EQ(user(find("docker.io", "library/python")), "carol");
  EXPECT_EQ(user(find("r.example")), "dave");
  EXPECT_EQ(user(find("empty.example")), "(none)");
}

TEST_F(RegistryCredentials, FilesAreAskedInTheirOrder) {
  auto entry = [](const char* user) { return fmt::format(R"({{"auths":{{"r.example":{}}}}})", user); };
  write(".docker/config.json", entry(k_carol));
  EXPECT_EQ(user(find("r.example")), "carol");
  write(".config/containers/auth.json", entry(k_dave));
  EXPECT_EQ(user(find("r.example")), "dave");
  write("run/containers/auth.json", entry(k_eve));
  variables_["XDG_RUNTIME_DIR"] = dir_.path() / "run";
  EXPECT_EQ(user(find("r.example")), "eve");
  variables_["REGISTRY_AUTH_FILE"] = write("mine.json", entry(k_carol));
  EXPECT_EQ(user(find("r.example")), "carol");
  EXPECT_EQ(user(find("r.example", "a", {.auth_file = write("given.json", entry(k_dave))})), "dave");
  EXPECT_EQ(user(find("r.example", "a", {.auth_file = write("given.json", "{}")})), "(none)")
      << "a file that was given is the only one";
  EXPECT_EQ(user(find("r.example", "a", {.credentials = k_alice})), "alice");
}

TEST_F(RegistryCredentials, BadFilesAreErrorsWithoutTheirContent) {
  auto file = write("bad.json", R"({"auths":{"hunter2")");
  auto error = error_of([&] { find("r.example", "a", {.auth_file = file}); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_config);
  EXPECT_THAT(error.what(), HasSubstr(file.string()));
  EXPECT_EQ(error_of([&] { find("r.example", "a", {.auth_file = dir_.path() / "none"}); }).code(),
            ErrorCode::not_found);
  for (const char* text :
       {R"({"auths":[]})", R"({"auths":{"r.example":7}})", R"({"auths":{"r.example":{"auth":"?"}}})",
        R"({"auths":{"r.example":{"auth":"bm9jb2xvbg=="}}})", R"({"credHelpers":7,"credsStore":{}})"}) {
    EXPECT_EQ(user(find("r.example", "a", {.auth_file = write("odd.json", text)})), "(none)") << text;
  }
}

TEST_F(RegistryCredentials, HelpersAreAskedForTheRegistry) {
  helper("test",
         R"(test "$1" = get && read registry; printf '{"Username":"%s","Secret":"hunter2"}' "$registry")");
  write(".docker/config.json", R"({"credHelpers":{"r.example":"test"},"credsStore":"absent"})");
  auto found = find("r.example");
  EXPECT_EQ(user(found), "r.example");
  EXPECT_EQ(found->password, "hunter2");
  write(".docker/config.json", R"({"credsStore":"test"})");
  EXPECT_EQ(user(find("docker.io")), "https://index.docker.io/v1/");
  helper("test", R"(printf '{"Username":"<token>","Secret":"idtoken"}')");
  EXPECT_EQ(find("r.example")->identity_token, "idtoken");
  helper("test", "echo 'credentials not found in native keychain'; exit 1");
  EXPECT_EQ(user(find("r.example")), "(none)");
}

TEST_F(RegistryCredentials, HelpersThatFailAreErrorsWithoutTheirWords) {
  write(".docker/config.json", R"({"credsStore":"test"})");
  for (const char* script : {"echo hunter2; echo hunter2 >&2; exit 3", "echo hunter2", "kill -9 $$",
                             "while :; do echo hunter2hunter2hunter2hunter2hunter2hunter2; done"}) {
    helper("test", script);
    EXPECT_EQ(error_of([&] { find("r.example"); }).code(), ErrorCode::unauthorized) << script;
  }
  for (const char* name : {"absent", "../../bin/sh", "a b", ""}) {
    write(".docker/config.json", fmt::format(R"({{"credHelpers":{{"r.example":"{}"}}}})", name));
    if (*name == '\0') {
      EXPECT_EQ(user(find("r.example")), "(none)");
    } else {
      EXPECT_EQ(error_of([&] { find("r.example"); }).code(), ErrorCode::unauthorized) << name;
    }
  }
}

TEST_F(RegistryCredentials, HelpersAreFoundInAbsoluteFoldersOnly) {
  helper("test", R"(printf '{"Username":"u","Secret":"hunter2"}')");
  write(".docker/config.json", R"({"credsStore":"test"})");
  auto back = std::filesystem::current_path();
  std::filesystem::current_path(dir_.path() / "bin");
  variables_["PATH"] = ".::bin";
  EXPECT_EQ(error_of([&] { find("r.example"); }).code(), ErrorCode::unauthorized);
  std::filesystem::current_path(back);
}

}  // namespace
}  // namespace holt::image
