// A tree that a guest sends, into a folder of the host or into a tar. Nothing may appear beside the target,
// and no file of the host may change through a link.
#include "fuzz.hpp"
#include "holt/base/files.hpp"
#include "holt/protocol/messages.hpp"
#include "machine/copy_log.hpp"
#include "machine/host_tree.hpp"
#include "machine/tar_writer.hpp"
#include "machine/tree_decoder.hpp"

#include <fcntl.h>
#include <string>
#include <unistd.h>

using namespace holt;
using namespace holt::machine;
using namespace holt::protocol;

namespace {

/// Writes to the host but no files of any size.
class SmallHostSink final : public TreeSink {
 public:
  explicit SmallHostSink(const std::filesystem::path& target) : tree_(target) {}
  void directory(const TreePath& path, const TreeEntry& entry) override {
    tree_.make_directory(path, {.mode = entry.mode});
  }
  void link(const TreePath& path, const TreeEntry& entry) override {
    tree_.make_link(path, entry.link_target, {});
  }
  void begin_file(const TreePath& path, const TreeEntry& entry) override {
    tree_.begin_file(path, {.mode = entry.mode});
  }
  void bytes(std::string_view bytes) override { tree_.write(bytes); }
  void hole(std::uint64_t size) override { tree_.skip(size); }
  void end_file() override { tree_.end_file(); }
  void finish() override { tree_.finish(); }

 private:
  HostTree tree_;
};

/// One folder for all runs, in memory where the host has such a place.
struct World {
  World() : dir(std::filesystem::exists("/dev/shm") ? "/dev/shm" : std::filesystem::temp_directory_path()) {
    std::filesystem::create_directory(dir.path() / "outside");
    write_file_atomically(dir.path() / "outside/canary", "alive");
  }
  TempDir dir;
};

/// The next frame; entries are written from choices, so that most are well-formed, or taken as they come.
Frame next_frame(fuzz::Input& input) {
  auto choice = input.byte();
  Frame frame;
  switch (choice % 8) {
    case 0:
    case 1:
    case 2: {
      TreeEntry entry{.path = std::string(input.take(input.byte() % 24U)),
                      .type = static_cast<protocol::FileType>(input.byte() % 5),
                      .size = input.byte(),
                      .mode = static_cast<std::uint32_t>(input.byte() << 4),
                      .link_target = std::string(input.take(input.byte() % 24U)),
                      .holes = (choice & 16) != 0,
                      .failed = (choice & 96) == 96};
      frame.header.type = FrameType::entry;
      frame.payload = encode(entry);
      break;
    }
    case 3:
      frame.header.type = FrameType::entry;
      frame.payload = encode(TreeHole{.length = input.byte()});
      break;
    case 4:
      frame.header.type = FrameType::entry;
      frame.payload = input.piece();
      break;
    case 5:
    case 6:
      frame.header.type = FrameType::output;
      frame.payload = input.take(input.byte());
      break;
    default:
      frame.header.type = FrameType::reply;
      frame.payload = (choice & 32) != 0 ? std::string(input.piece()) : encode(TreeReply{});
      break;
  }
  return frame;
}

void run(TreeSink& sink, fuzz::Input& input) {
  CopyOptions options;
  CopyLog log(options);
  TreeDecoder decoder(sink, log);
  try {
    // The root first, as guests send it; without it nothing below can be written.
    decoder.take({.header = {.type = FrameType::entry},
                  .payload = encode(TreeEntry{.type = protocol::FileType::directory, .mode = 0755})});
    while (!input.empty() && decoder.take(next_frame(input)) == TreeDecoder::More::yes) {
    }
  } catch (const Error& error) {
    fuzz::require(*error.what() != '\0');
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static World world;
  fuzz::Input input(data, size);
  if ((input.byte() & 1) != 0) {
    std::size_t written = 0;
    TarOutput output = [&](std::string_view bytes) { written += bytes.size(); };
    TarWriter writer(output, "root");
    run(writer, input);
    return 0;
  }
  auto target = world.dir.path() / "target";
  {
    SmallHostSink sink(target);
    run(sink, input);
  }
  remove_tree(target);
  fuzz::require(read_file(world.dir.path() / "outside/canary", 100) == "alive");
  std::size_t names = 0;
  for (const auto& entry : std::filesystem::directory_iterator(world.dir.path()))
    names += entry.exists() ? 1 : 0;
  fuzz::require(names == 1);
  return 0;
}
