// The same images unpacked by holt and by umoci: type, mode, owner, size, target, content, attributes, device
// numbers and links of everything are to be the same.
#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "holt/base/process.hpp"
#include "holt/image/pull.hpp"
#include "image/ext4_reader.hpp"
#include "image/layout_builder.hpp"
#include "image/oci/media_types.hpp"
#include "image/tar_builder.hpp"
#include "image/umoci.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <memory>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <archive.h>
#include <ext2fs/ext2fs.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holt::image {
namespace {

using test::Member;
using test::TarBuilder;
using Attributes = std::map<std::string, std::string>;

struct Difference {
  const char* name;
  std::vector<TarBuilder> layers;       ///< lowest first
  const char* pack = "gzip";            ///< of what holt reads; umoci gets gzip
  std::vector<std::string> above = {};  ///< bytes of more layers
};
void PrintTo(const Difference& difference, std::ostream* out) {
  *out << difference.name;
}

/// Everything that is compared of an entry but its path.
struct Entry {
  char type = '?';
  unsigned mode = 0;
  unsigned uid = 0;
  unsigned gid = 0;
  std::uint64_t size = 0;
  std::uint64_t inode = 0;
  std::uint64_t links = 0;
  unsigned major = 0;
  unsigned minor = 0;
  std::string content = {};
  Attributes attributes = {};
};
using Tree = std::map<std::string, Entry>;

/// One line an entry. Sizes and links of folders are the file system's own affair.
std::vector<std::string> lines_of(const Tree& tree) {
  std::map<std::uint64_t, std::string> first_names;
  std::vector<std::string> lines;
  for (const auto& [path, entry] : tree) {
    std::string line =
        fmt::format("{} {} {:04o} {}:{}", printable(path), entry.type, entry.mode, entry.uid, entry.gid);
    if (entry.type != 'd') {
      auto first = first_names.emplace(entry.inode, path).first->second;
      line += fmt::format(" links={} of={}", entry.links, printable(first));
    }
    if (entry.type == 'f') line += fmt::format(" size={} {}", entry.size, sha256_hex(entry.content));
    if (entry.type == 'l') line += " -> " + printable(entry.content);
    if (entry.type == 'c' || entry.type == 'b') line += fmt::format(" {}:{}", entry.major, entry.minor);
    for (const auto& [name, value] : entry.attributes) line += fmt::format(" {}={}", name, hex(value));
    lines.push_back(std::move(line));
  }
  return lines;
}

char type_of(mode_t mode) {
  if (S_ISREG(mode)) return 'f';
  if (S_ISDIR(mode)) return 'd';
  if (S_ISLNK(mode)) return 'l';
  if (S_ISCHR(mode)) return 'c';
  if (S_ISBLK(mode)) return 'b';
  return S_ISFIFO(mode) ? 'p' : '?';
}

Attributes attributes_of(const std::filesystem::path& path) {
  std::array<char, 65536> names{};
  auto size = ::llistxattr(path.c_str(), names.data(), names.size());
  Attributes out;
  for (std::size_t at = 0; at < static_cast<std::size_t>(std::max<ssize_t>(size, 0));) {
    std::string name(&names.at(at));
    std::array<char, 65536> value{};
    auto length = ::lgetxattr(path.c_str(), name.c_str(), value.data(), value.size());
    // What a security module of the host gave the file is nothing of the image.
    if (length >= 0 && name != "security.selinux")
      out[name] = std::string(value.data(), static_cast<std::size_t>(length));
    at += name.size() + 1;
  }
  return out;
}

void add_tree_of_folder(const std::filesystem::path& root, const std::string& path, Tree& tree) {
  auto place = root / path;
  struct stat info{};
  if (::lstat(place.c_str(), &info) != 0) throw system_error(errno, "look at " + place.string());
  Entry entry{.type = type_of(info.st_mode),
              .mode = info.st_mode & 07777U,
              .uid = info.st_uid,
              .gid = info.st_gid,
              .size = static_cast<std::uint64_t>(info.st_size),
              .inode = info.st_ino,
              .links = info.st_nlink};
  if (entry.type == 'f') entry.content = read_file(place, std::size_t{1} << 20);
  if (entry.type == 'l') entry.content = std::filesystem::read_symlink(place).string();
  if (entry.type == 'c' || entry.type == 'b') {
    entry.major = major(info.st_rdev);
    entry.minor = minor(info.st_rdev);
  }
  entry.attributes = attributes_of(place);
  bool is_folder = entry.type == 'd';
  tree.emplace(path, std::move(entry));
  if (!is_folder) return;
  for (const auto& below : std::filesystem::directory_iterator(place)) {
    auto name = below.path().filename().string();
    add_tree_of_folder(root, path.empty() ? name : path + "/" + name, tree);
  }
}

/// Extended attributes of an inode, as libext2fs reads them.
class Attributes4 {
 public:
  explicit Attributes4(const std::filesystem::path& ext4) {
    if (ext2fs_open(ext4.c_str(), EXT2_FLAG_64BITS, 0, 0, unix_io_manager, &fs_) != 0) {
      throw Error(ErrorCode::internal, "open " + ext4.string());
    }
  }
  ~Attributes4() { ext2fs_free(fs_); }
  Attributes4(const Attributes4&) = delete;
  Attributes4& operator=(const Attributes4&) = delete;

  Attributes of(ext2_ino_t inode) {
    Attributes out;
    ext2_xattr_handle* handle = nullptr;
    if (ext2fs_xattrs_open(fs_, inode, &handle) != 0) throw Error(ErrorCode::internal, "read attributes");
    auto add = [](char* name, char* value, std::size_t length, void* into) {
      (*static_cast<Attributes*>(into))[name] = std::string(value, length);
      return 0;
    };
    if (ext2fs_xattrs_read(handle) != 0 || ext2fs_xattrs_iterate(handle, add, &out) != 0) {
      throw Error(ErrorCode::internal, "read attributes");
    }
    ext2fs_xattrs_close(&handle);
    return out;
  }

 private:
  ext2_filsys fs_ = nullptr;
};

Tree tree_of_ext4(const std::filesystem::path& ext4) {
  Attributes4 attributes(ext4);
  Tree tree;
  for (auto& [path, read] : test::tree_of(ext4)) {
    tree.emplace(path, Entry{.type = read.type,
                             .mode = read.mode,
                             .uid = read.uid,
                             .gid = read.gid,
                             .size = read.size,
                             .inode = read.inode,
                             .links = read.links,
                             .major = read.major,
                             .minor = read.minor,
                             .content = read.content,
                             .attributes = attributes.of(read.inode)});
  }
  return tree;
}

void write_layout(const Difference& image, const std::string& pack, const std::filesystem::path& folder) {
  test::LayoutBuilder layout;
  std::vector<std::string> tars;
  for (const auto& layer : image.layers) tars.push_back(layer.finish());
  tars.insert(tars.end(), image.above.begin(), image.above.end());
  Json descriptors = Json::array();
  for (const auto& tar : tars) {
    if (pack == "zstd") {
      descriptors.push_back(
          layout.blob(k_oci_layer_zstd, test::compressed(tar, archive_write_add_filter_zstd)));
    } else if (pack == "gzip") {
      descriptors.push_back(
          layout.blob(k_oci_layer_gzip, test::compressed(tar, archive_write_add_filter_gzip)));
    } else {
      descriptors.push_back(layout.blob(k_oci_layer, tar));
    }
  }
  auto config = layout.blob(k_oci_config, dump_json(test::config_of(tars)));
  layout.list(layout.blob(k_oci_manifest, dump_json(test::manifest_of(config, descriptors))), "t");
  layout.write(folder);
}

class Differential : public ::testing::TestWithParam<Difference> {
 protected:
  TempDir dir_;
};

TEST_P(Differential, TheTreeIsThatOfUmoci) {
  if (auto why = test::why_umoci_cannot_judge(dir_.path()); !why.empty()) GTEST_SKIP() << why;
  const auto& image = GetParam();
  write_layout(image, "gzip", dir_.path() / "for-umoci");
  write_layout(image, image.pack, dir_.path() / "for-holt");
  try {
    auto unpacked =
        run_process({.argv = {"umoci", "unpack", "--image", (dir_.path() / "for-umoci").string() + ":t",
                              (dir_.path() / "bundle").string()},
                     .env = {{"PATH", "/usr/bin:/bin"}, {"HOME", dir_.path().string()}}},
                    {.deadline = Deadline::after(std::chrono::seconds(120))});
    ASSERT_EQ(unpacked.status.shell_code(), 0) << unpacked.err;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::not_found) GTEST_SKIP() << "there is no umoci";
    throw;
  }
  Store store(dir_.path() / "images");
  auto imported = import_image(store, (dir_.path() / "for-holt").string(),
                               {.reference = "t", .disk_bytes = std::uint64_t{64} << 20});
  Tree expected;
  add_tree_of_folder(dir_.path() / "bundle/rootfs", "", expected);
  ASSERT_GT(expected.size(), 3U) << "umoci unpacked nothing to speak of";
  EXPECT_THAT(lines_of(tree_of_ext4(imported.ext4)), ::testing::ElementsAreArray(lines_of(expected)));
  auto checked = test::check(imported.ext4);
  EXPECT_EQ(checked.exit_code, 0) << checked.output;
}

TarBuilder rooted() {
  return TarBuilder().folder("./", 0755);
}

Member member(std::string path, char type, unsigned mode, unsigned long uid = 0, unsigned long gid = 0) {
  return {.path = std::move(path), .type = type, .mode = mode, .uid = uid, .gid = gid};
}

Difference plain() {
  auto tar = rooted().folder("etc").folder("tmp", 01777).folder("closed", 0700);
  tar.file("etc/hosts", "127.0.0.1 localhost\n").file("empty", "").file("etc/big", std::string(60'000, 'x'));
  tar.symlink("etc/link", "../etc/hosts").symlink("absolute", "/etc/hosts").symlink("dangling", "no/where");
  tar.symlink("long", std::string(200, 'l'));
  auto file = member("setuid", '0', 04755, 1000, 1000);
  file.content = "#!";
  tar.add(file).add(member("setgid", '5', 02775, 0, 50)).add(member("owned", '0', 0, 65534, 100'000));
  auto high = member("high-owner", '0', 0600);
  high.pax = {{"uid", "4000000000"}, {"gid", "3000000000"}};
  return {.name = "Plain", .layers = {tar.add(high)}};
}

Difference many_layers() {
  std::vector<TarBuilder> layers = {rooted().folder("d").file("counter", "0")};
  for (int i = 1; i <= 20; ++i) {
    auto layer = TarBuilder().file("counter", std::string(static_cast<std::size_t>(i * 100), 'c'));
    layer.file(fmt::format("d/file{}", i), fmt::format("of layer {}", i));
    if (i > 2) layer.file(fmt::format("d/.wh.file{}", i - 2), "");
    layer.add(member("d", '5', i % 2 ? 0755 : 0711, static_cast<unsigned long>(i)));
    layers.push_back(layer);
  }
  return {.name = "ManyLayers", .layers = layers};
}

Difference whiteouts() {
  auto lower =
      rooted().folder("keep").file("keep/a", "a").file("gone", "x").folder("tree").folder("tree/below");
  lower.file("tree/below/x", "x")
      .folder("opaque")
      .file("opaque/old", "old")
      .folder("opaque/sub")
      .file("opaque/sub/x", "x");
  lower.symlink("link", "keep").file("again", "old").folder("was-folder").file("was-folder/x", "x");
  auto upper =
      TarBuilder().file(".wh.gone", "").file(".wh.tree", "").folder("opaque").file("opaque/.wh..wh..opq", "");
  upper.file("opaque/new", "new").file(".wh.link", "").file("keep/.wh.missing", "");
  auto third =
      TarBuilder().file("gone", "back").folder("tree").file("tree/new", "new").file(".wh.was-folder", "");
  auto fourth = TarBuilder().file("was-folder", "a file now").file("opaque/.wh.new", "");
  return {.name = "Whiteouts", .layers = {lower, upper, third, fourth}};
}

Difference hard_links() {
  auto lower =
      rooted().folder("a").file("a/one", "content").hard_link("a/two", "a/one").hard_link("three", "a/two");
  lower.symlink("s", "a/one").hard_link("s2", "s").file("alone", "alone").file("victim", "victim");
  lower.hard_link("survivor", "victim");
  auto upper = TarBuilder().hard_link("four", "a/one").hard_link("b/five", "alone").file(".wh.victim", "");
  upper.file("a/two", "no longer the same");
  return {.name = "HardLinks", .layers = {lower, upper}};
}

Difference attributes() {
  auto tar = rooted();
  auto with = [&](Member entry, std::vector<std::pair<std::string, std::string>> values) {
    for (auto& [name, value] : values) entry.pax.emplace_back("SCHILY.xattr." + name, value);
    tar.add(entry);
  };
  // VFS_CAP_REVISION_2 with CAP_NET_RAW, effective: capabilities(7).
  std::string capability("\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
                         20);
  with(member("ping", '0', 0755), {{"security.capability", capability}});
  with(member("file", '0', 0644),
       {{"user.a", "1"}, {"user.empty", ""}, {"user.binary", std::string("\0\n=\xff", 4)}});
  with(member("folder", '5', 0755), {{"user.note", "of a folder"}, {"trusted.x", "y"}});
  with(member("larger", '0', 0644), {{"user.large", std::string(2000, 'v')}});
  auto upper = TarBuilder().file("file", "without attributes");
  auto again = member("ping", '0', 0755);
  again.pax = {{"SCHILY.xattr.user.only", "this"}};
  return {.name = "Attributes", .layers = {tar, upper.add(again)}};
}

Difference devices() {
  auto tar = rooted().folder("dev");
  for (auto [name, type, numbers] :
       std::initializer_list<std::tuple<const char*, char, std::pair<unsigned, unsigned>>>{
           {"null", '3', {1, 3}},
           {"zero-zero", '3', {0, 0}},
           {"sda", '4', {8, 0}},
           {"many", '4', {259, 70'000}}}) {
    auto device = member(fmt::format("dev/{}", name), type, 0620, 0, 6);
    device.major = numbers.first;
    device.minor = numbers.second;
    tar.add(device);
  }
  tar.add(member("dev/pipe", '6', 0666, 7, 8)).hard_link("dev/null2", "dev/null");
  return {.name = "Devices",
          .layers = {tar, TarBuilder().file("dev/.wh.sda", "").add(member("dev/pipe", '0', 0640))}};
}

Difference odd_names() {
  auto tar = rooted();
  for (const char* name :
       {"with space", "-dash", "back\\slash", "quote\"'",    "star*",
        "...",        "..x",   "tab\there",   "line\nbreak", "\xc3\xa4\xe6\xbc\xa2\xf0\x9f\x98\x80",
        "e\xcc\x81",  "Case",  "case",        "semi;colon",  "$HOME",
        "wh.x",       "#hash", "~",           ".hidden",     "not utf-8 \xff\xfe"}) {
    tar.file(name, name);
  }
  auto long_name = [&](std::string path, char type) {
    auto entry = member("x", type, 0755);
    entry.pax = {{"path", std::move(path)}};
    tar.add(entry);
  };
  std::string deep;
  for (int i = 0; i < 12; ++i) long_name(deep += fmt::format("{}folder-{}/", std::string(40, 'd'), i), '5');
  long_name(deep + "file", '0');
  long_name(std::string(255, 'n'), '0');
  return {.name = "OddNames", .layers = {tar}};
}

/// Extended records that libarchive knows and umoci does not, or that are there twice.
Difference records_of_some_readers() {
  auto tar = rooted();
  auto with = [&](Member entry, std::vector<std::pair<std::string, std::string>> records) {
    entry.pax = std::move(records);
    tar.add(entry);
  };
  with(member("closed", '0', 0600), {{"SCHILY.acl.access", "user::rwx,group::rwx,other::rwx"}});
  with(member("setuid", '0', 04755), {{"SCHILY.acl.access", "user::rw-,group::---,other::---"}});
  with(member("folder", '5', 0700), {{"SCHILY.acl.default", "user::rwx,group::rwx,other::rwx"}});
  auto null = member("null", '3', 0600);
  null.major = 1;
  null.minor = 3;
  with(null, {{"SCHILY.devmajor", "8"}, {"SCHILY.devminor", "0"}});
  auto file = member("file", '0', 0644);
  file.content = "x";
  with(file, {{"SCHILY.realsize", "1000"}, {"SUN.holesdata", " 0 1 1000"}});
  file.path = "attribute";
  with(file, {{"LIBARCHIVE.xattr.user.x", "MQ"}, {"RHT.security.selinux", "a:b:c:d"}});
  file.path = "twice";
  with(file,
       {{"path", "not-this"}, {"SCHILY.xattr.user.x", "1"}, {"path", "this"}, {"SCHILY.xattr.user.x", "2"}});
  file.path = "kept";
  with(file, {{"path", ""}, {"comment", "none"}, {"hdrcharset", "BINARY"}, {"mtime", "-1.5"}});
  return {.name = "RecordsOfSomeReaders", .layers = {tar}};
}

Difference replaced_types() {
  auto lower = rooted()
                   .folder("d")
                   .file("d/x", "x")
                   .file("f", "f")
                   .symlink("l", "f")
                   .folder("target")
                   .file("target/t", "t");
  lower.symlink("to-folder", "target")
      .add(member("p", '6', 0600))
      .folder("stays", 0700)
      .file("stays/a", "a")
      .folder("run");
  lower.folder("var").symlink("var/run", "../run");
  auto upper = TarBuilder().file("d", "a file now").folder("f").file("f/y", "y").file("l", "a file now");
  upper.folder("to-folder").file("to-folder/new", "new").file("p", "a file now");
  upper.add(member("stays", '5', 0755, 5, 6)).file("stays/b", "b").file("var/run/pid", "1");
  auto third = TarBuilder().symlink("f", "d").symlink("stays/a", "b").add(member("l", '6', 0644));
  return {.name = "ReplacedTypes", .layers = {lower, upper, third}};
}

/// Layers without a byte: readers in Go find no member in them.
Difference empty_layers(const char* name, const char* pack) {
  auto lower = rooted().folder("d").file("d/f", "f").symlink("l", "d");
  return {.name = name, .layers = {lower}, .pack = pack, .above = {"", std::string(1024, '\0')}};
}

Difference compressed(Difference image, const char* name, const char* pack) {
  image.name = name;
  image.pack = pack;
  return image;
}

INSTANTIATE_TEST_SUITE_P(Images, Differential,
                         ::testing::Values(plain(), many_layers(), whiteouts(), hard_links(), attributes(),
                                           devices(), odd_names(), replaced_types(),
                                           records_of_some_readers(), empty_layers("EmptyLayers", "gzip"),
                                           empty_layers("EmptyBlobs", "none"),
                                           compressed(many_layers(), "Zstd", "zstd"),
                                           compressed(whiteouts(), "Uncompressed", "none")),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace holt::image
