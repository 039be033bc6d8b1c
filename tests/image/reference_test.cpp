#include "holt/image/reference.hpp"

#include <gtest/gtest.h>

namespace holt::image {
namespace {

const std::string k_digest = "sha256:" + std::string(64, 'a');

TEST(Reference, ReadsEveryLegalForm) {
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

TEST(Reference, RefusesWhatCouldNameAnythingElse) {
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

TEST(Reference, ADigestIsExactlySha256InLowerCase) {
  EXPECT_TRUE(is_digest(k_digest));
  EXPECT_FALSE(is_digest("sha256:" + std::string(64, 'g')));
  EXPECT_FALSE(is_digest("sha256:../" + std::string(61, 'a')));
  EXPECT_FALSE(is_digest(std::string(64, 'a')));
}

}  // namespace
}  // namespace holt::image
