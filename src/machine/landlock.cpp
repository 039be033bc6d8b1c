#include "machine/landlock.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace holt::machine {
namespace {

// linux/landlock.h
constexpr unsigned k_version_flag = 1;
constexpr int k_path_beneath = 1;
constexpr std::uint64_t k_execute = 1 << 0;
constexpr std::uint64_t k_write_file = 1 << 1;
constexpr std::uint64_t k_read_file = 1 << 2;
constexpr std::uint64_t k_read_dir = 1 << 3;
constexpr std::uint64_t k_all_of_version_1 = (1 << 13) - 1;
constexpr std::uint64_t k_refer = 1 << 13;               // version 2
constexpr std::uint64_t k_truncate = 1 << 14;            // version 3
constexpr std::uint64_t k_ioctl_dev = 1 << 15;           // version 5
constexpr std::uint64_t k_tcp = (1 << 0) | (1 << 1);     // bind and connect, version 4
constexpr std::uint64_t k_scopes = (1 << 0) | (1 << 1);  // abstract sockets and signals, version 6

struct RulesetAttributes {
  std::uint64_t files;
  std::uint64_t network;
  std::uint64_t scopes;
};
struct [[gnu::packed]] PathBeneath {
  std::uint64_t allowed;
  std::int32_t folder;
};

std::uint64_t rights_of_files(int version) {
  std::uint64_t rights = k_all_of_version_1;
  if (version >= 2) rights |= k_refer;
  if (version >= 3) rights |= k_truncate;
  if (version >= 5) rights |= k_ioctl_dev;
  return rights;
}

std::uint64_t rights_of(LandlockRule::Access access) {
  switch (access) {
    case LandlockRule::Access::read:
      // A program stands among the files, too.
      return k_read_file | k_execute;
    case LandlockRule::Access::write:
      return k_read_file | k_write_file | k_truncate;
    case LandlockRule::Access::tree:
      return k_read_file | k_read_dir | k_execute;
    case LandlockRule::Access::device:
      return k_read_file | k_write_file | k_ioctl_dev;
  }
  return 0;
}

}  // namespace

int landlock_version() {
  auto version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0UL, k_version_flag);
  return version < 0 ? 0 : static_cast<int>(version);
}

bool confine_by_landlock(int version, const std::vector<LandlockRule>& rules) noexcept {
  RulesetAttributes attributes{.files = rights_of_files(version),
                               .network = version >= 4 ? k_tcp : 0,
                               .scopes = version >= 6 ? k_scopes : 0};
  // A kernel refuses attributes that it does not know, unless they are zero.
  int ruleset = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0U));
  if (ruleset < 0) return false;
  for (const auto& rule : rules) {
    int fd = ::open(rule.path, O_PATH | O_CLOEXEC);
    if (fd < 0) continue;
    PathBeneath beneath{.allowed = rights_of(rule.access) & attributes.files, .folder = fd};
    auto added = ::syscall(SYS_landlock_add_rule, ruleset, k_path_beneath, &beneath, 0U);
    ::close(fd);
    if (added != 0) return false;
  }
  auto done = ::syscall(SYS_landlock_restrict_self, ruleset, 0U);
  ::close(ruleset);
  return done == 0;
}

}  // namespace holt::machine
