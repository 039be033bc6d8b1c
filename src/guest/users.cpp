#include "guest/users.hpp"

#include "holt/base/fd.hpp"

#include <algorithm>
#include <charconv>
#include <fcntl.h>
#include <optional>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace holt::guest {
namespace {

constexpr std::size_t k_max_database = std::size_t{1} << 20;
constexpr std::size_t k_max_groups = 256;

std::string read_database(const char* path) {
  Fd fd(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  if (static_cast<std::size_t>(status.st_size) > k_max_database) return {};
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  auto count = ::read(fd.get(), text.data(), text.size());
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

std::string_view take_until(std::string_view& rest, char end) {
  auto at = rest.find(end);
  auto piece = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
  return piece;
}

/// The id in a decimal text; -1 as a 32-bit number means "unchanged" to the kernel and is no id.
std::optional<std::uint32_t> parse_id(std::string_view text) {
  std::uint32_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value == UINT32_MAX) return std::nullopt;
  return value;
}

bool looks_like_number(std::string_view text) {
  return !text.empty() && (text[0] == '-' || text[0] == '+' || (text[0] >= '0' && text[0] <= '9'));
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 256 && std::ranges::all_of(text, [](unsigned char c) {
    return c > ' ' && c != ':' && c != '/' && c != 0x7f;
  });
}

struct Account {
  std::string name;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::string home;
};

/// Account by name, or by id where `id` is set.
std::optional<Account> find_account(std::string_view name, std::optional<std::uint32_t> id) {
  auto text = read_database("/etc/passwd");
  std::string_view rest = text;
  while (!rest.empty()) {
    auto line = take_until(rest, '\n');
    Account account;
    account.name = take_until(line, ':');
    take_until(line, ':');
    auto uid = parse_id(take_until(line, ':'));
    auto gid = parse_id(take_until(line, ':'));
    take_until(line, ':');
    account.home = take_until(line, ':');
    if (!uid || !gid) continue;
    if (id ? *uid != *id : account.name != name) continue;
    account.uid = *uid;
    account.gid = *gid;
    return account;
  }
  return std::nullopt;
}

template <class Visit>
void each_group(Visit visit) {
  auto text = read_database("/etc/group");
  std::string_view rest = text;
  while (!rest.empty()) {
    auto line = take_until(rest, '\n');
    auto name = take_until(line, ':');
    take_until(line, ':');
    auto gid = parse_id(take_until(line, ':'));
    if (gid) visit(name, *gid, line);
  }
}

std::optional<std::uint32_t> find_group(std::string_view name) {
  std::optional<std::uint32_t> found;
  each_group([&](std::string_view group, std::uint32_t gid, std::string_view) {
    if (!found && group == name) found = gid;
  });
  return found;
}

std::vector<gid_t> groups_of(std::string_view user, gid_t primary) {
  std::vector<gid_t> groups = {primary};
  each_group([&](std::string_view, std::uint32_t gid, std::string_view members) {
    while (!members.empty()) {
      if (take_until(members, ',') != user) continue;
      if (groups.size() < k_max_groups && std::ranges::find(groups, gid) == groups.end())
        groups.push_back(gid);
    }
  });
  return groups;
}

std::unexpected<Failure> bad_user(std::string_view text) {
  return refuse(ErrorCode::invalid_config, "neither the name nor the id of a user", std::string(text));
}

}  // namespace

Outcome<Identity> find_user(std::string_view text) {
  if (text.empty()) text = "root";
  auto rest = text;
  auto user = take_until(rest, ':');
  bool has_group = user.size() < text.size();
  auto group = rest;

  Identity identity;
  auto id = parse_id(user);
  if (!id && (looks_like_number(user) || !is_name(user))) return bad_user(text);
  auto account = find_account(user, id);
  if (!account && !id && user != "root") {
    return refuse(ErrorCode::not_found, "no such user in the machine: " + std::string(user),
                  std::string(user));
  }
  if (account) {
    identity.uid = account->uid;
    identity.gid = account->gid;
    if (account->home.starts_with('/')) identity.home = account->home;
  } else {
    identity.uid = id.value_or(0);
    if (identity.uid == 0) identity.home = "/root";
  }
  if (!has_group) {
    identity.groups = account ? groups_of(account->name, identity.gid) : std::vector<gid_t>{identity.gid};
    return identity;
  }
  auto gid = parse_id(group);
  if (!gid && (looks_like_number(group) || !is_name(group))) return bad_user(text);
  if (!gid) gid = find_group(group);
  if (!gid) {
    return refuse(ErrorCode::not_found, "no such group in the machine: " + std::string(group),
                  std::string(group));
  }
  identity.gid = *gid;
  identity.groups = {*gid};
  return identity;
}

Outcome<std::optional<std::pair<uid_t, gid_t>>> find_owner(std::string_view text) {
  if (text.empty()) return std::nullopt;
  auto user = find_user(text);
  if (!user) return std::unexpected(user.error());
  bool has_group = text.find(':') != std::string_view::npos;
  return std::pair(user->uid, has_group ? user->gid : static_cast<gid_t>(-1));
}

// The raw calls, since glibc's wrappers would change the other threads as well.
ActAs::ActAs(const Identity& user) {
  if (user.is_root() || (user.uid == ::geteuid() && user.gid == ::getegid())) return;
  changed_ = true;
  ::syscall(SYS_setgroups, user.groups.size(), user.groups.data());
  ::setfsgid(user.gid);
  ::setfsuid(user.uid);
  works_ = ::setfsuid(static_cast<uid_t>(-1)) == static_cast<int>(user.uid);
}

ActAs::~ActAs() {
  if (!changed_) return;
  ::setfsuid(::geteuid());
  ::setfsgid(::getegid());
  ::syscall(SYS_setgroups, 0, nullptr);
}

}  // namespace holt::guest
