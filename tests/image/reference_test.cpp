#include "holt/image/reference.hpp"

#include <gtest/gtest.h>

namespace holt::image {
namespace {

const std::string k_digest = "sha256:" + std::string(64, 'a');

TEST(Reference, IMG_15_ReadsEveryLegalForm) {
  const std::vector<std::pair<std::string, std::string>> forms{
      {"python", "python:latest"},
      {"python:3.12-alpine", "python:3.12-alpine"},
      {"holt/default", "holt/default:latest"},
      {"127.0.0.1:5000/a/b:T_a.g-1", "127.0.0.1:5000/a/b:T_a.g-1"},
      {"localhost/x", "localhost/x:latest"},
      {"HOST.example/x", "HOST.example/x:latest"},
      {"a__b/c--d/e.f", "a__b/c--d/e.f:latest"},
      {"x@" + k_digest, "x@" + k_digest},
      {"x:tag@" + k_digest, "x:tag@" + k_digest},
  };
  for (const auto& [text, canonical] : forms) {
    auto parsed = parse_reference(text);
    ASSERT_TRUE(parsed) << text << ": " << parsed.error();
    EXPECT_EQ(parsed->canonical(), canonical);
  }
}

TEST(Reference, IMG_15_RefusesWhatCouldNameAnythingElse) {
  for (const std::string& text : {std::string(),
                                  std::string("Upper"),
                                  std::string("a/../b"),
                                  std::string(".."),
                                  std::string("a/"),
                                  std::string("/a"),
                                  std::string("./dir"),
                                  std::string("-x"),
                                  std::string("a:"),
                                  std::string("a:.t"),
                                  "a:" + std::string(300, 't'),
                                  std::string("a\nb"),
                                  std::string("a b"),
                                  std::string("a\0b", 3),
                                  std::string("a___b"),
                                  std::string("a..b"),
                                  std::string("host:123456/a"),
                                  std::string("host:0/a"),
                                  std::string("host:65536/a"),
                                  std::string("host:/a"),
                                  std::string("host:+80/a"),
                                  std::string("-host.tld/a"),
                                  std::string("host-.tld/a"),
                                  std::string("host..tld/a"),
                                  std::string("user@host.tld/a"),
                                  std::string("host.tld//a"),
                                  std::string("host.tld/"),
                                  std::string("host.tld/../a"),
                                  std::string("https://host.tld/a"),
                                  std::string("[::1]"),
                                  std::string("[::1]:5000"),
                                  std::string("[::1]:0/a"),
                                  std::string("[::1]:/a"),
                                  std::string("[::1]x/a"),
                                  std::string("[::1]/"),
                                  std::string("[::1/a"),
                                  std::string("[]:5000/a"),
                                  std::string("[::1\0]/a", 8),
                                  std::string("[fe80::1%lo]/a"),
                                  std::string("[127.0.0.1]/a"),
                                  std::string("[::g]/a"),
                                  std::string("[1:2:3]/a"),
                                  std::string("[host.tld]/a"),
                                  std::string("::1/a"),
                                  std::string("a/[::1]/b"),
                                  "[::ffff:7f00:1]/" + std::string(239, 'n'),
                                  std::string(64, 'l') + ".tld/a",
                                  std::string("x@sha256:"),
                                  "x@sha256:" + std::string(63, 'a'),
                                  "x@sha256:" + std::string(65, 'a'),
                                  "x@sha256:" + std::string(64, 'A'),
                                  std::string("x@md5:abc"),
                                  std::string("x@sha256:../../../../tmp/x"),
                                  "x@sha512:" + std::string(128, 'a'),
                                  std::string(300, 'n'),
                                  std::string(10'240, 'n')}) {
    auto parsed = parse_reference(text);
    EXPECT_FALSE(parsed) << text << " was taken as " << parsed->canonical();
    if (!parsed) EXPECT_FALSE(parsed.error().empty());
  }
}

TEST(Reference, TellsRegistryAndRepository) {
  struct Case {
    std::string text, registry, repository, canonical;
  };
  const std::vector<Case> cases{
      {"python", "docker.io", "library/python", "python:latest"},
      {"a/b", "docker.io", "a/b", "a/b:latest"},
      {"library/python:3", "docker.io", "library/python", "python:3"},
      {"docker.io/python", "docker.io", "library/python", "python:latest"},
      {"docker.io/library/python", "docker.io", "library/python", "python:latest"},
      {"index.docker.io/a/b", "docker.io", "a/b", "a/b:latest"},
      {"docker.io/library/a/b", "docker.io", "library/a/b", "library/a/b:latest"},
      {"index.docker.io/host.tld/x", "docker.io", "host.tld/x", "docker.io/host.tld/x:latest"},
      {"docker.io/localhost/x", "docker.io", "localhost/x", "docker.io/localhost/x:latest"},
      {"localhost/x", "localhost", "x", "localhost/x:latest"},
      {"localhost:5000/x", "localhost:5000", "x", "localhost:5000/x:latest"},
      {"127.0.0.1:5000/a/b", "127.0.0.1:5000", "a/b", "127.0.0.1:5000/a/b:latest"},
      {"host.tld/library/x", "host.tld", "library/x", "host.tld/library/x:latest"},
      {"host:1/x", "host:1", "x", "host:1/x:latest"},
      {"host:65535/x", "host:65535", "x", "host:65535/x:latest"},
      {"[::1]:5000/a/b", "[::1]:5000", "a/b", "[::1]:5000/a/b:latest"},
      {"[::1]/x:t", "[::1]", "x", "[::1]/x:t"},
      {"[0:0:0:0:0:0:0:1]:5000/x", "[::1]:5000", "x", "[::1]:5000/x:latest"},
      {"[2001:DB8::0:1]/library/x", "[2001:db8::1]", "library/x", "[2001:db8::1]/library/x:latest"},
      {"[::ffff:7f00:1]/x", "[::ffff:127.0.0.1]", "x", "[::ffff:127.0.0.1]/x:latest"},
  };
  for (const auto& [text, registry, repository, canonical] : cases) {
    auto parsed = parse_reference(text);
    ASSERT_TRUE(parsed) << text << ": " << parsed.error();
    EXPECT_EQ(parsed->registry(), registry) << text;
    EXPECT_EQ(parsed->repository(), repository) << text;
    EXPECT_EQ(parsed->canonical(), canonical) << text;
    auto again = parse_reference(canonical);
    ASSERT_TRUE(again) << canonical;
    EXPECT_EQ(again->registry(), registry) << text;
    EXPECT_EQ(again->repository(), repository) << text;
  }
}

TEST(Reference, ADigestIsExactlySha256InLowerCase) {
  EXPECT_TRUE(is_digest(k_digest));
  EXPECT_FALSE(is_digest("sha256:" + std::string(64, 'g')));
  EXPECT_FALSE(is_digest("sha256:../" + std::string(61, 'a')));
  EXPECT_FALSE(is_digest(std::string(64, 'a')));
}

}  // namespace
}  // namespace holt::image
