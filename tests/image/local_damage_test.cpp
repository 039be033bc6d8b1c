// Local images whose bytes are not what their digests say.
#include "holt/base/encoding.hpp"
#include "image/local_fixture.hpp"

#include <archive.h>

namespace holt::image {
namespace {

namespace fs = std::filesystem;
using namespace test;
using LocalDamageTest = LocalImageTest;

struct Damage {
  std::string name;
  std::string (*apply)(std::string);
};
std::string flip(std::string bytes) {
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  return bytes;
}
const std::vector<Damage> k_damages{
    {"one bit flipped", flip},
    {"a byte at the front", [](std::string bytes) { return " " + bytes; }},
    {"a byte at the end", [](std::string bytes) { return bytes + "\n"; }},
    {"cut by one byte", [](std::string bytes) { return bytes.substr(0, bytes.size() - 1); }},
};

/// The image of IMG-01: its layer is gzip, so that other bytes can hold the same tar.
struct Subject {
  LayoutBuilder layout;
  std::string layer = test::compressed(k_layer, archive_write_add_filter_gzip);
  std::string config = dump_json(test::config_of({k_layer}));

  /// `config_size` and `layer_size` are added to what the manifest says.
  std::string write(int manifest_size = 0, int config_size = 0, int layer_size = 0) {
    layout = LayoutBuilder();
    auto with_size = [](Json descriptor, int more) {
      descriptor["size"] = descriptor["size"].get<std::int64_t>() + more;
      return descriptor;
    };
    Json manifest =
        test::manifest_of(with_size(layout.blob(k_oci_config, config), config_size),
                          Json::array({with_size(layout.blob(k_oci_layer_gzip, layer), layer_size)}));
    layout.list(with_size(layout.blob(k_oci_manifest, dump_json(manifest)), manifest_size), "app:1");
    return dump_json(manifest);
  }
};

TEST_F(LocalDamageTest, IMG_01_ABlobOfALayoutThatIsNotWhatItsNameSays) {
  Subject subject;
  std::string manifest = subject.write();
  auto expect_mismatch = [&](const LayoutBuilder& layout, const std::string& what, const std::string& named) {
    for (const fs::path& source : {folder(layout), file("lying.tar", layout.tar())}) {
      EXPECT_EQ(import_error(source), ErrorCode::digest_mismatch)
          << what << " in " << source << ": " << sentence_;
      EXPECT_TRUE(says(named)) << what << ": " << sentence_;
    }
    EXPECT_TRUE(store_.list().empty()) << what;
  };
  for (const std::string& blob : {manifest, subject.config, subject.layer}) {
    for (const Damage& damage : k_damages) {
      LayoutBuilder damaged = subject.layout;
      damaged.file("blobs/sha256/" + sha256_hex(blob), damage.apply(blob));
      expect_mismatch(damaged, damage.name, sha256_hex(blob));
    }
  }
  LayoutBuilder packed_anew = subject.layout;
  packed_anew.file("blobs/sha256/" + sha256_hex(subject.layer), k_layer);
  expect_mismatch(packed_anew, "the layer packed in another way", sha256_hex(subject.layer));
  for (int off : {-1, 1}) {
    std::string said = "size off by " + std::to_string(off);
    expect_mismatch((subject.write(off), subject.layout), said, sha256_hex(manifest));
    subject.write(0, off);
    expect_mismatch(subject.layout, said, sha256_hex(subject.config));
    subject.write(0, 0, off);
    expect_mismatch(subject.layout, said, sha256_hex(subject.layer));
  }
  subject.write();
  EXPECT_EQ(import(folder(subject.layout)).reference, "app:1") << "after all refusals the good one is taken";
}

TEST_F(LocalDamageTest, IMG_02_ALayerOfASavedArchiveIsHeldAgainstTheConfiguration) {
  auto files = test::saved_files({{.image = {.layers = {k_layer}}, .tags = {"app:1"}}});
  files[sha256_hex(k_layer) + "/layer.tar"] = layer_with("hello", "another content");
  EXPECT_EQ(import_error(file("lying.tar", test::tar_of(files))), ErrorCode::digest_mismatch) << sentence_;
  for (std::size_t count : {0U, 2U}) {
    auto lying = test::saved_files(
        {{.image = {.layers = {k_layer}, .config = test::config_of(std::vector(count, k_layer))},
          .tags = {"app:1"}}});
    ErrorCode code = import_error(file("lying.tar", test::tar_of(lying)));
    EXPECT_TRUE(code == ErrorCode::digest_mismatch || code == ErrorCode::image_invalid)
        << count << ": " << sentence_;
  }
  EXPECT_TRUE(store_.list().empty());
}

}  // namespace
}  // namespace holt::image
