// The stream of a tree from a guest that wants the host's memory.
#include "machine/tree_decoder.hpp"

#include "support/asking.hpp"
#include "support/sanitizers.hpp"

#include <malloc.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace holt::machine {
namespace {

class Nowhere : public TreeSink {
 public:
  void directory(const TreePath&, const protocol::TreeEntry&) override {}
  void link(const TreePath&, const protocol::TreeEntry&) override {}
  void begin_file(const TreePath&, const protocol::TreeEntry&) override {}
  void bytes(std::string_view) override {}
  void hole(std::uint64_t) override {}
  void end_file() override {}
  void finish() override {}
};

std::size_t allocated() {
  auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(TreeDecoder, FILES_12_CHAN_15_NamesWithoutEndStayWithin256MiB) {
  if (test::k_sanitizer) GTEST_SKIP() << "the sanitizer's allocator takes more for each name";
  // Names that are costly: too long to lie within a string, short beside what a node of a set takes.
  for (std::size_t length : {16u, 200u}) {
    SCOPED_TRACE(length);
    Nowhere sink;
    CopyOptions options;
    CopyLog log(options);
    auto before = allocated();
    TreeDecoder decoder(sink, log);
    std::size_t most = 0;
    auto code = test::code_of([&] {
      for (std::uint64_t i = 0; i < 6'000'000; i++) {
        protocol::TreeEntry entry{.path = fmt::format("{:0{}}", i, length),
                                  .type = protocol::FileType::directory};
        decoder.take({.header = {.type = protocol::FrameType::entry}, .payload = protocol::encode(entry)});
        if (i % 4096 == 0) most = std::max(most, allocated() - before);
      }
    });
    EXPECT_EQ(code, ErrorCode::limit_exceeded);
    EXPECT_LE(most, std::size_t{257} << 20);
    EXPECT_GT(most, std::size_t{100} << 20) << "it gave up long before its budget";
  }
}

}  // namespace
}  // namespace holt::machine
