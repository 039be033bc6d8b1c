// How fast a layer becomes a file system: one gzip layer of a made root file system, from the file to the
// finished ext4 with its digest, and then as `holt image import` does it, which also keeps the blobs, reads
// the ext4 file's digest and syncs. Beside it, on the same layer, what does the same with other tools: skopeo
// copy, umoci unpack and mke2fs -d, where they are installed.
//
//   build/release/bench/holt_bench_image_build [MEBIBYTES]      (default 300)
//
// Everything lies in a temporary folder (TMPDIR).
#include "holt/base/encoding.hpp"
#include "holt/base/files.hpp"
#include "holt/base/process.hpp"
#include "holt/image/pull.hpp"
#include "image/image_builder.hpp"
#include "image/sha256.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace {

using namespace holt;
using namespace holt::image;
using nlohmann::json;
namespace fs = std::filesystem;

double seconds_of(const std::function<void()>& work) {
  auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Files as a distribution has them: many small ones, some large; text that compresses well and code that
/// does less.
class MadeTree {
 public:
  explicit MadeTree(std::uint64_t bytes) : left_(bytes) {
    for (std::string& word : words_) {
      for (int i = 3 + static_cast<int>(random_() % 8); i > 0; --i)
        word += static_cast<char>('a' + random_() % 26);
    }
  }

  /// Writes it as a gzip layer; the number of bytes of its files.
  std::uint64_t write(const fs::path& layer) {
    archive* tar = archive_write_new();
    archive_write_set_format_pax_restricted(tar);
    archive_write_add_filter_gzip(tar);
    if (archive_write_open_filename(tar, layer.c_str()) != ARCHIVE_OK)
      throw system_error(errno, "write the layer");
    std::uint64_t written = 0;
    for (int i = 0; left_ > 0; ++i) {
      std::string content = next_file();
      archive_entry* entry = archive_entry_new();
      archive_entry_set_pathname(
          entry, fmt::format("usr/lib/package{}/part{}/file{}", i / 200, i / 20 % 10, i).c_str());
      archive_entry_set_filetype(entry, AE_IFREG);
      archive_entry_set_perm(entry, 0644);
      archive_entry_set_mtime(entry, 1'000'000'000, 0);
      archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
      archive_write_header(tar, entry);
      archive_write_data(tar, content.data(), content.size());
      archive_entry_free(entry);
      written += content.size();
    }
    archive_write_free(tar);
    return written;
  }

 private:
  std::string next_file() {
    unsigned kind = random_() % 100;
    std::uint64_t size = kind < 70   ? 200 + random_() % 8000
                         : kind < 97 ? 8000 + random_() % 60'000
                                     : random_() % 3'000'000;
    size = std::min<std::uint64_t>(size, left_);
    left_ -= size;
    bool text = random_() % 2 == 0;
    std::string content;
    while (content.size() < size) {
      if (text) {
        content += words_[random_() % words_.size()] + (random_() % 9 == 0 ? '\n' : ' ');
      } else {
        std::uint64_t number = random_() & 0x00ff'0000'ffff'00ff;
        content.append(reinterpret_cast<const char*>(&number), sizeof number);
      }
    }
    content.resize(size);
    return content;
  }

  std::mt19937_64 random_{42};
  std::array<std::string, 4000> words_;
  std::uint64_t left_;
};

/// As a pull does it: the compressed bytes are digested too.
std::string build(const fs::path& layer, const fs::path& ext4) {
  Fd file(::open(layer.c_str(), O_RDONLY | O_CLOEXEC));
  FdSource input(file.get(), std::nullopt);
  MeteredSource blob(input, UINT64_MAX);
  DecompressedSource unpacked(blob, Compressions::layers);
  MeteredSource tar(unpacked, UINT64_MAX);
  ImageBuilder builder(ext4, {});
  builder.apply_layer(tar);
  tar.drain();
  std::string diff_id = tar.digest_hex();
  builder.finish(diff_id);
  return diff_id;
}

/// An OCI layout of that one layer.
void write_layout(const fs::path& layout, const fs::path& layer, const std::string& diff_id) {
  fs::create_directories(layout / "blobs/sha256");
  auto put = [&](const std::string& bytes) {
    std::string digest = sha256_hex(bytes);
    write_file_atomically(layout / "blobs/sha256" / digest, bytes, {.mode = 0644});
    return json{{"digest", "sha256:" + digest}, {"size", bytes.size()}};
  };
  json of_layer = put(read_file(layer, std::size_t{4} << 30));
  of_layer["mediaType"] = "application/vnd.oci.image.layer.v1.tar+gzip";
  json config = put(json{{"architecture", "amd64"},
                         {"os", "linux"},
                         {"config", json::object()},
                         {"rootfs", {{"type", "layers"}, {"diff_ids", {"sha256:" + diff_id}}}}}
                        .dump());
  config["mediaType"] = "application/vnd.oci.image.config.v1+json";
  json manifest = put(json{
      {"schemaVersion", 2},
      {"mediaType", "application/vnd.oci.image.manifest.v1+json"},
      {"config", config},
      {"layers",
       {of_layer}}}.dump());
  manifest["mediaType"] = "application/vnd.oci.image.manifest.v1+json";
  manifest["annotations"] = {{"org.opencontainers.image.ref.name", "bench"}};
  write_file_atomically(layout / "index.json", json{{"schemaVersion", 2}, {"manifests", {manifest}}}.dump(),
                        {.mode = 0644});
  write_file_atomically(layout / "oci-layout", R"({"imageLayoutVersion":"1.0.0"})", {.mode = 0644});
}

/// False when the program is not installed.
bool run(std::vector<std::string> argv) {
  ProcessSpec spec{.argv = std::move(argv),
                   .env = {{"PATH", "/usr/sbin:/usr/bin:/sbin:/bin"}, {"HOME", "/nonexistent"}}};
  try {
    auto result = run_process(spec, {.deadline = Deadline::after(std::chrono::minutes(10))});
    if (result.status.shell_code() != 0)
      throw Error(ErrorCode::internal, spec.argv[0] + ": " + printable(result.err, 400));
    return true;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::not_found) return false;
    throw;
  }
}

/// Processor time of this process: what a busy host does not change.
double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void print_row(const char* what, double seconds, double megabytes) {
  fmt::print("{:<28} {:>7.2f} s {:>8.0f} MB/s\n", what, seconds, megabytes / seconds);
}

void run_rivals(const fs::path& folder, double megabytes) {
  std::string layout = (folder / "layout").string();
  std::string copy = (folder / "copy").string();
  std::string bundle = (folder / "bundle").string();
  bool there = true;
  auto timed = [&](std::vector<std::string> argv) {
    return seconds_of([&] { there = there && run(std::move(argv)); });
  };
  double skopeo =
      timed({"skopeo", "copy", "--insecure-policy", "oci:" + layout + ":bench", "oci:" + copy + ":bench"});
  std::vector<std::string> unpack{"umoci", "unpack", "--image", copy + ":bench", bundle};
  if (::geteuid() != 0) unpack.insert(unpack.begin() + 2, "--rootless");
  double umoci = timed(unpack);
  double mke2fs = timed({"mke2fs", "-q", "-F", "-t", "ext4", "-d", bundle + "/rootfs",
                         (folder / "rival.ext4").string(), "20G"});
  if (!there) {
    fmt::print("skopeo, umoci or mke2fs is not installed: nothing to compare with\n");
    return;
  }
  print_row("skopeo copy", skopeo, megabytes);
  print_row("umoci unpack", umoci, megabytes);
  print_row("mke2fs -d", mke2fs, megabytes);
  print_row("the three together", skopeo + umoci + mke2fs, megabytes);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::uint64_t mebibytes = argc > 1 ? std::stoull(argv[1]) : 300;
    TempDir folder;
    fs::path layer = folder.path() / "layer.tar.gz";
    double megabytes = static_cast<double>(MadeTree(mebibytes << 20).write(layer)) / 1e6;
    fmt::print("{:.0f} MB of files, {:.0f} MB as a gzip layer\n", megabytes,
               static_cast<double>(fs::file_size(layer)) / 1e6);
    std::string diff_id;
    auto run_holt = [&](const std::string& what, const std::function<void()>& work) {
      double before = processor_seconds();
      print_row(what.c_str(), seconds_of(work), megabytes);
      fmt::print("{:<28} {:>7.2f} s\n", "  of a processor", processor_seconds() - before);
    };
    for (int i = 1; i <= 3; ++i) {
      run_holt(fmt::format("holt, run {}", i),
               [&] { diff_id = build(layer, folder.path() / fmt::format("holt{}.ext4", i)); });
    }
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    fmt::print("peak memory of this process: {} MiB\n", usage.ru_maxrss / 1024);
    write_layout(folder.path() / "layout", layer, diff_id);
    for (int i = 1; i <= 3; ++i) {
      Store store(folder.path() / fmt::format("store{}", i));
      run_holt(fmt::format("holt image import, run {}", i),
               [&] { import_image(store, (folder.path() / "layout").string(), {.reference = "bench"}); });
    }
    run_rivals(folder.path(), megabytes);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
