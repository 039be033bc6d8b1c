// A foreign tar on its way into a machine: whatever its members are called, the items for the guest have
// paths below the target, announced sizes and known folders.
#include "fuzz.hpp"
#include "holt/base/error.hpp"
#include "machine/copy_log.hpp"
#include "machine/host_tree.hpp"
#include "machine/tar_items.hpp"

#include <set>
#include <string>

using namespace holt;
using namespace holt::machine;

namespace {

class Checker final : public TreeTarget {
 public:
  void entry(const protocol::TreeEntry& entry) override {
    fuzz::require(left_ == 0 && TreePath::from(entry.path).has_value());
    auto slash = entry.path.rfind('/');
    bool is_root = entry.path.empty();
    if (!is_root)
      fuzz::require(folders_.contains(slash == std::string::npos ? "" : entry.path.substr(0, slash)));
    if (entry.type == protocol::FileType::directory) fuzz::require(folders_.insert(entry.path).second);
    if (!entry.hard_link.empty()) fuzz::require(TreePath::from(entry.hard_link).has_value());
    if (entry.type == protocol::FileType::regular && entry.hard_link.empty()) left_ = entry.size;
  }
  void bytes(std::string_view bytes) override { take(bytes.size()); }
  void hole(std::uint64_t size) override {
    fuzz::require(size > 0);
    take(size);
  }
  bool complete() const { return left_ == 0; }

 private:
  void take(std::uint64_t size) {
    fuzz::require(size <= left_);
    left_ -= size;
  }

  std::set<std::string> folders_;
  std::uint64_t left_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  auto step = std::size_t{1} + input.byte() * std::size_t{8};
  CopyOptions options;
  CopyLog log(options);
  Checker checker;
  try {
    send_tar([&] { return input.take(step); }, checker, log);
    fuzz::require(checker.complete());
  } catch (const Error& error) {
    fuzz::require(*error.what() != '\0');
  }
  return 0;
}
