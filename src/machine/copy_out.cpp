#include "machine/file_streams.hpp"
#include "machine/tree_copy.hpp"
#include "machine/tree_decoder.hpp"

#include <unistd.h>

namespace holt::machine {

using namespace protocol;

namespace {

/// Writes what comes below a host folder.
class HostSink final : public TreeSink {
 public:
  HostSink(const std::filesystem::path& target, const CopyOptions& options)
      : tree_(target), options_(options), gives_owners_(options.owners == Owners::kept && ::geteuid() == 0) {}

  void directory(const TreePath& path, const TreeEntry& entry) override {
    tree_.make_directory(path, facts(entry));
  }
  void link(const TreePath& path, const TreeEntry& entry) override {
    tree_.make_link(path, entry.link_target, facts(entry));
  }
  void begin_file(const TreePath& path, const TreeEntry& entry) override {
    auto host = facts(entry);
    if (path.empty() && options_.mode) host.mode = *options_.mode;
    tree_.begin_file(path, host);
  }
  void bytes(std::string_view bytes) override { tree_.write(bytes); }
  void hole(std::uint64_t size) override { tree_.skip(size); }
  void end_file() override { tree_.end_file(); }
  void finish() override { tree_.finish(); }

 private:
  HostEntry facts(const TreeEntry& entry) const {
    HostEntry host{.mode = entry.mode, .mtime_ns = nanoseconds(entry.mtime_s, entry.mtime_ns)};
    if (gives_owners_) host.owner = std::pair(entry.uid, entry.gid);
    return host;
  }

  HostTree tree_;
  const CopyOptions& options_;
  bool gives_owners_;
};

}  // namespace

CopyResult receive_tree(const MachineFolder& folder, const std::string& source, TreeSink& sink,
                        const CopyOptions& options) {
  Patience patience(options.call);
  CopyLog log(options);
  TreeDecoder decoder(sink, log);
  auto connection = StreamConnection::open(folder, TreeOutRequest{.path = source, .user = options.user},
                                           Effect::none, patience.next_step());
  try {
    for (auto more = TreeDecoder::More::yes; more == TreeDecoder::More::yes;) {
      auto frame = connection->next(patience.next_step());
      if (!frame) throw Error(ErrorCode::guest_protocol, "The guest program ended a tree without a reply");
      more = decoder.take(*frame);
    }
  } catch (...) {
    connection->kill();
    throw;
  }
  return std::move(log.result);
}

CopyResult copy_tree_out(const MachineFolder& folder, const std::string& source,
                         const std::filesystem::path& target, const CopyOptions& options) {
  HostSink sink(target, options);
  return receive_tree(folder, source, sink, options);
}

}  // namespace holt::machine
