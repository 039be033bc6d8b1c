// What reading hostile documents costs, from wait4(2): a child reads, its processor time and memory count.
#include "holt/base/error.hpp"
#include "image/layout_builder.hpp"
#include "image/oci/documents.hpp"
#include "support/sanitizers.hpp"

#include <functional>
#include <iostream>
#include <malloc.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace holt::image {
namespace {

struct Cost {
  double seconds = 0;  ///< of a processor
  long kib = 0;        ///< peak of resident memory
};

Cost cost_of(const std::function<void()>& body) {
  ::malloc_trim(0);  // a child begins with what its parent holds
  pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  rusage usage{};
  int status = 0;
  EXPECT_EQ(::wait4(child, &status, 0, &usage), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "it was read";
  auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return {.seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime), .kib = usage.ru_maxrss};
}

/// What a child does with a document that must be refused.
void refuse(const std::string& text) {
  try {
    parse_document(text, {});
  } catch (const Error&) {
    return;
  }
  ::_exit(1);
}

std::string repeated(std::string_view piece, std::size_t times) {
  std::string text;
  text.reserve(piece.size() * times);
  while (times-- > 0) text += piece;
  return text;
}

std::string manifest_of_layers(std::size_t count) {
  Json layer = test::descriptor(k_oci_layer_gzip, "layer");
  return dump_json(test::manifest_of(test::descriptor(k_oci_config, "config"), Json(count, layer)));
}

TEST(DocumentCost, IMG_13_IsUnderASecondAnd64MibWhateverTheyAre) {
  if (holt::test::k_sanitizer) GTEST_SKIP() << "a sanitizer's own time and memory would be measured";
  struct Hostile {
    const char* what;
    std::string text;
  };
  const std::vector<Hostile> documents = {
      {"5 MiB of spaces behind a manifest", manifest_of_layers(1) + std::string(std::size_t{5} << 20, ' ')},
      {"4 MiB of numbers", "{\"a\":[" + repeated("0,", (std::size_t{2} << 20) - 16)},
      {"4 MiB of empty lists", "{\"a\":[" + repeated("[],", (std::size_t{4} << 20) / 3 - 4) + "[]]}"},
      {"4 MiB of one text", "{\"a\":\"" + std::string((std::size_t{4} << 20) - 16, 'x') + "\"}"},
      {"4 MiB of escapes", "{\"a\":\"" + repeated("\\u0041", 690'000) + "\"}"},
      {"one key again and again", "{" + repeated("\"a\":1,", 690'000) + "\"a\":1}"},
      {"lists in lists", std::string(std::size_t{4} << 20, '[')},
      {"objects in objects", repeated("{\"a\":", 800'000)},
      {"a digit too many", "{\"a\":" + std::string((std::size_t{4} << 20) - 16, '9') + "}"},
      {"10,000 layers", manifest_of_layers(10'000)},
  };
  Cost nothing = cost_of([] {});
  for (const Hostile& document : documents) {
    Cost cost = cost_of([&] { refuse(document.text); });
    std::cout << document.what << ": " << cost.seconds << " s, " << (cost.kib - nothing.kib) / 1024
              << " MiB\n";
    EXPECT_LT(cost.seconds, 1) << document.what;
    EXPECT_LT(cost.kib - nothing.kib, 64 << 10) << document.what;
  }
}

}  // namespace
}  // namespace holt::image
