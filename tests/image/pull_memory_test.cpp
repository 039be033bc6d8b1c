// Memory of whole pulls and imports, from wait4(2): a child fetches over HTTP, decompresses, builds, and
// keeps blobs and records; its peak of resident memory counts.
#include "holt/image/pull.hpp"
#include "image/fake_registry.hpp"
#include "image/oci/media_types.hpp"
#include "image/sha256.hpp"
#include "image/store_fixture.hpp"
#include "support/sanitizers.hpp"

#include <array>
#include <fcntl.h>
#include <functional>
#include <iostream>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include <fmt/format.h>

namespace holt::image {
namespace {

using test::FakeRegistry;
using test::LayoutBuilder;
using test::TarBuilder;

/// A zstd layer that is packed as it is made: the test itself is to hold little.
class PackedLayer {
 public:
  explicit PackedLayer(int window_log) {
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, 1);
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_windowLog, window_log);
  }
  void add(std::string_view tar) {
    digest_.update(tar);
    pack(tar, ZSTD_e_continue);
  }
  void finish() {
    add(std::string(1024, '\0'));
    pack({}, ZSTD_e_end);
    diff_id_ = "sha256:" + digest_.finish_hex();
  }
  const std::string& bytes() const { return bytes_; }
  const std::string& diff_id() const { return diff_id_; }

 private:
  void pack(std::string_view piece, ZSTD_EndDirective directive) {
    ZSTD_inBuffer from{piece.data(), piece.size(), 0};
    std::size_t left = 0;
    do {
      ZSTD_outBuffer to{buffer_.data(), buffer_.size(), 0};
      left = ZSTD_compressStream2(context_.get(), &to, &from, directive);
      ASSERT_FALSE(ZSTD_isError(left));
      bytes_.append(buffer_, 0, to.pos);
    } while (from.pos < from.size || (directive == ZSTD_e_end && left > 0));
  }

  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context_{ZSTD_createCCtx(), ZSTD_freeCCtx};
  std::string buffer_ = std::string(std::size_t{1} << 16, '\0');
  std::string bytes_;
  Sha256 digest_;
  std::string diff_id_;
};

/// Work of a child that is there before its parent holds what the work needs: memory of a parent counts as
/// its child's.
class MeasuredChild {
 public:
  MeasuredChild(const char* what, const std::function<void()>& work) : what_(what) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    Fd wait(ends[0]);
    go_ = Fd(ends[1]);
    ::malloc_trim(0);
    pid_ = ::fork();
    if (pid_ != 0) return;
    go_.reset();
    char byte = 0;
    ::_exit(::read(wait.get(), &byte, 1) == 1 && did(work) ? 0 : 1);
  }
  ~MeasuredChild() {
    go_.reset();
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }
  MeasuredChild(const MeasuredChild&) = delete;
  MeasuredChild& operator=(const MeasuredChild&) = delete;

  /// Does the work; its peak in MiB.
  std::uint64_t peak() {
    EXPECT_EQ(::write(go_.get(), "x", 1), 1);
    rusage usage{};
    int status = 0;
    EXPECT_EQ(::wait4(pid_, &status, 0, &usage), pid_);
    pid_ = 0;
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << what_ << " failed";
    auto mebibytes = static_cast<std::uint64_t>(usage.ru_maxrss) / 1024;
    std::cout << what_ << ": " << mebibytes << " MiB\n";
    return mebibytes;
  }

 private:
  static bool did(const std::function<void()>& work) {
    try {
      work();
      return true;
    } catch (const std::exception& error) {
      std::cerr << error.what() << "\n";
      return false;
    }
  }

  const char* what_;
  Fd go_;
  pid_t pid_ = 0;
};

class PullMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (holt::test::k_sanitizer) GTEST_SKIP() << "a sanitizer's own memory is what would be measured";
  }

  /// Just below a mebibyte of variables, as execve(2) counts.
  static Json large_environment() {
    Json env = Json::array();
    for (int i = 0; i < 34'000; ++i) env.push_back(fmt::format("VARIABLE{:06}=value", i));
    return {{"Env", env}};
  }

  static std::string config_of(const PackedLayer& layer) {
    return dump_json(Json{{"architecture", "amd64"},
                          {"os", "linux"},
                          {"config", large_environment()},
                          {"rootfs", {{"type", "layers"}, {"diff_ids", {layer.diff_id()}}}}});
  }
  static Json manifest_of(const PackedLayer& layer, const std::string& config) {
    return test::manifest_of(test::descriptor(k_oci_config, config),
                             Json::array({test::descriptor(k_oci_layer_zstd, layer.bytes())}));
  }
  void offer_at_registry(const PackedLayer& layer) {
    std::string config = config_of(layer);
    registry_.add_manifest("1", dump_json(manifest_of(layer, config)), std::string(k_oci_manifest));
    registry_.add_blob(layer.bytes());
    registry_.add_blob(config);
  }
  void offer_as_layout(const PackedLayer& layer) {
    std::string config = config_of(layer);
    LayoutBuilder layout;
    layout.blob(k_oci_layer_zstd, layer.bytes());
    layout.blob(k_oci_config, config);
    layout.list(layout.blob(k_oci_manifest, dump_json(manifest_of(layer, config))), "t");
    layout.write(dir_.path() / "layout");
  }

  TempDir dir_;
  FakeRegistry registry_;
  MeasuredChild pull_{"pull", [this] {
                        Store store(dir_.path() / "pulled");
                        pull(store, registry_.host() + "/app:1");
                      }};
  MeasuredChild import_{"import", [this] {
                          Store store(dir_.path() / "imported");
                          try {
                            import_image(store, (dir_.path() / "layout").string(), {.reference = "t"});
                          } catch (const Error& error) {
                            if (error.code() != ErrorCode::limit_exceeded) throw;
                            std::cout << error.what() << std::endl;
                          }
                        }};
};

TEST_F(PullMemory, IMG_25_ALargeFileTakesAtMost100Mib) {
  constexpr std::size_t k_pieces = 200;
  PackedLayer layer(21);
  layer.add(TarBuilder().add({.path = "f", .raw = {{124, fmt::format("{:011o}", k_pieces << 20)}}}).bytes());
  for (std::size_t i = 0; i < k_pieces; ++i)
    layer.add(test::noise(1 << 16, static_cast<unsigned>(i)) + std::string((1 << 20) - (1 << 16), 'x'));
  layer.finish();
  offer_at_registry(layer);
  offer_as_layout(layer);
  EXPECT_LE(pull_.peak(), 100U);
  EXPECT_LE(import_.peak(), 100U);
}

TEST_F(PullMemory, IMG_24_AsManyMembersAsThereMayBeTakeAtMost256Mib) {
  constexpr std::size_t k_members = 998'000;
  PackedLayer layer(20);
  PackedLayer with_large_window(26);  // the largest that a layer may ask for
  auto name = [](std::size_t i) { return fmt::format("{:0>95}", i); };
  for (std::size_t piece = 0; piece < k_members; piece += 1000) {
    TarBuilder tar;
    for (std::size_t i = piece; i < piece + 1000; ++i)
      i % 2 == 0 ? tar.file(name(i), "") : tar.hard_link(name(i), name(i - 1));
    layer.add(tar.bytes());
    with_large_window.add(tar.bytes());
  }
  layer.finish();
  with_large_window.finish();
  offer_at_registry(layer);
  offer_as_layout(with_large_window);
  EXPECT_LE(pull_.peak(), 256U);
  EXPECT_LE(import_.peak(), 256U) << "built or refused";
}

}  // namespace
}  // namespace holt::image
