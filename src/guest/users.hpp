// Users and groups of the image, read from /etc/passwd and /etc/group by a parser of our own: the guest
// program is static, and glibc's getpwnam would load libraries of the image.
#pragma once

#include "guest/outcome.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace holt::guest {

/// Whose rights a command or a file operation has.
struct Identity {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
  std::string home = "/";

  bool is_root() const { return uid == 0 && gid == 0; }
};

/// Resolves "name", "uid", "name:group" or "uid:gid"; an empty text is root. Numbers need no entry. NOT_FOUND
/// for an unknown name, INVALID_CONFIG for what is neither name nor number. Files over 1 MiB or not regular
/// count as missing.
Outcome<Identity> find_user(std::string_view text);

/// Resolves "user" or "user:group" as find_user() does, for chown(2): without a group that is -1, which keeps
/// it. Nothing for an empty text.
Outcome<std::optional<std::pair<uid_t, gid_t>>> find_owner(std::string_view text);

/// The calling thread's file system rights, as those of a user, until the end of life. Threads other than the
/// caller keep theirs. Does nothing for root.
class ActAs {
 public:
  explicit ActAs(const Identity& user);
  ~ActAs();
  ActAs(const ActAs&) = delete;
  ActAs& operator=(const ActAs&) = delete;
  /// False when the rights could not be taken (the guest program itself is not root).
  bool works() const { return works_; }

 private:
  bool changed_ = false;
  bool works_ = true;
};

}  // namespace holt::guest
