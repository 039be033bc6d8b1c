#include "workspace/derived_files.hpp"

#include "holt/base/encoding.hpp"
#include "holt/base/ids.hpp"
#include "holt/workspace/rules.hpp"
#include "holt/workspace/workspace.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <exception>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

namespace holt::derived {
namespace asio = boost::asio;
namespace {

constexpr std::size_t k_read_block = 65536;
constexpr std::size_t k_write_block = 49152;  // 65,536 characters of base64
constexpr int k_read_attempts = 3;

// Exit codes of the scripts. Programs in them use other ones.
constexpr int k_exit_missing = 102;
constexpr int k_exit_permission = 113;
constexpr int k_exit_exists = 117;
constexpr int k_exit_loop = 119;
constexpr int k_exit_not_directory = 120;
constexpr int k_exit_directory = 121;
constexpr int k_exit_not_regular = 122;

/// `gone PATH` ends the script saying why there is nothing at PATH: the nearest ancestor that exists tells.
constexpr std::string_view k_gone = R"(
gone() {
  d=$1
  while [ "$d" != / ]; do
    d=${d%/*}; d=${d:-/}
    if [ -d "$d" ]; then [ -x "$d" ] || exit 113; exit 102; fi
    if [ -e "$d" ]; then exit 120; fi
  done
  exit 102
}
)";

/// Prints "d", "o" (neither file nor directory) or the size of a file.
constexpr std::string_view k_stat = R"(
[ -e "$1" ] || gone "$1"
if [ -d "$1" ]; then echo d
elif [ ! -f "$1" ]; then echo o
else [ -r "$1" ] || exit 113; wc -c < "$1"; fi
)";

constexpr std::string_view k_read = R"(
dd if="$1" bs=65536 skip="$2" count=1 2>/dev/null | base64
)";

constexpr std::string_view k_prepare_write = R"(
if [ -d "$1" ]; then exit 121; fi
if [ -e "$1" ]; then [ -f "$1" ] || exit 122; [ -w "$1" ] || exit 113; fi
p=${1%/*}; p=${p:-/}
d=$p
while [ ! -d "$d" ]; do [ -e "$d" ] && exit 120; d=${d%/*}; d=${d:-/}; done
mkdir -p -- "$p" || { [ -w "$d" ] || exit 113; exit 1; }
[ -w "$p" ] && [ -x "$p" ] || exit 113
)";

constexpr std::string_view k_append = R"(
printf %s "$2" >> "$1"
)";

/// The copy comes first so that the new file has the old one's mode. $1 temporary, $2 target.
constexpr std::string_view k_commit = R"(
if [ -e "$2" ]; then cp -p -- "$2" "$1.decoded" || exit 1; fi
base64 -d < "$1" > "$1.decoded" && mv -f -- "$1.decoded" "$2" && rm -f -- "$1"
)";

constexpr std::string_view k_clean = R"(
rm -f -- "$1" "$1.decoded"
)";

/// Records TYPE NAME NUL, as base64. Globs instead of find: names only, in the directory itself.
constexpr std::string_view k_list = R"(
[ -e "$1" ] || gone "$1"
[ -d "$1" ] || exit 120
[ -r "$1" ] && [ -x "$1" ] || exit 113
cd -- "$1" || exit 113
for f in * .[!.]* ..?*; do
  if [ -d "$f" ]; then printf 'd%s\0' "$f"
  elif [ -e "$f" ] || [ -L "$f" ]; then printf 'f%s\0' "$f"; fi
done | base64
)";

constexpr std::string_view k_make_dir = R"(
[ -d "$1" ] && exit 0
if [ -e "$1" ] || [ -L "$1" ]; then exit 117; fi
d=${1%/*}; d=${d:-/}
while [ ! -d "$d" ]; do [ -e "$d" ] && exit 120; d=${d%/*}; d=${d:-/}; done
mkdir -p -- "$1" || { [ -w "$d" ] || exit 113; exit 1; }
)";

constexpr std::string_view k_remove = R"(
[ -e "$1" ] || [ -L "$1" ] || gone "$1"
rm -rf -- "$1" || { p=${1%/*}; [ -w "${p:-/}" ] || exit 113; exit 1; }
)";

constexpr std::string_view k_exists = R"(
test -e "$1"
)";

/// Linux follows 40 links at most.
constexpr std::string_view k_realpath = R"(
nl='
'
rest=${1#/} out= links=0
while [ -n "$rest" ]; do
  case $rest in
    */*) c=${rest%%/*} rest=${rest#*/} ;;
    *) c=$rest rest= ;;
  esac
  case $c in
    ''|.) continue ;;
    ..) out=${out%/*}; continue ;;
  esac
  if [ -L "$out/$c" ]; then
    links=$((links + 1))
    [ "$links" -le 40 ] || exit 119
    t=$(readlink "$out/$c" && printf x) || exit 113
    t=${t%x} t=${t%"$nl"}
    case $t in /*) out= ;; esac
    rest=$t/$rest
  else
    out=$out/$c
  fi
done
printf %s "${out:-/}" | base64
)";

constexpr std::string_view k_probe = R"(
for p in base64 cp dd mkdir mv readlink rm wc; do command -v "$p" >/dev/null 2>&1 || printf ' %s' "$p"; done
)";

[[noreturn]] void throw_failure(const CommandResult& result, const std::string& path) {
  switch (result.exit_code) {
    case k_exit_missing:
      throw PathError(PathErrorKind::not_found, path);
    case k_exit_permission:
      throw PathError(PathErrorKind::permission, path);
    case k_exit_exists:
      throw PathError(PathErrorKind::exists, path);
    case k_exit_loop:
      throw PathError(ELOOP, path);
    case k_exit_not_directory:
      throw PathError(PathErrorKind::not_a_directory, path);
    case k_exit_directory:
      throw PathError(PathErrorKind::is_a_directory, path);
    case k_exit_not_regular:
      throw PathError(PathErrorKind::not_regular, path);
    default:
      break;
  }
  std::string text = result.err;
  while (text.ends_with('\n')) text.pop_back();
  if (text.empty()) text = fmt::format("a file command ended with {}", result.exit_code);
  throw WorkspaceError(printable(text));
}

Task<CommandResult> run_script(SupportsCommands& commands, std::string_view script, std::string path,
                               std::vector<std::string> more = {},
                               std::optional<Duration> timeout = std::nullopt) {
  check_backend_path(path);
  std::vector<std::string> argv{"/bin/sh", "-c", std::string(script), "sh", path};
  for (auto& argument : more) argv.push_back(std::move(argument));
  CommandOptions options;
  options.timeout = timeout;
  WorkspaceCommand command(std::move(argv));
  co_return co_await commands.run(std::move(command), std::move(options));
}

Task<std::string> output_of(SupportsCommands& commands, std::string script, std::string path,
                            std::vector<std::string> more = {}) {
  CommandResult result = co_await run_script(commands, script, path, std::move(more));
  if (result.exit_code != 0) throw_failure(result, path);
  co_return std::move(result.out);
}

Task<std::string> decoded_output_of(SupportsCommands& commands, std::string script, std::string path,
                                    std::vector<std::string> more = {}) {
  std::string out = co_await output_of(commands, std::move(script), path, std::move(more));
  std::erase_if(out, [](char c) { return c == '\n' || c == '\r'; });
  auto bytes = base64_decode(out);
  if (!bytes) throw WorkspaceError("the workspace's base64 output is damaged: " + printable(path));
  co_return std::move(*bytes);
}

std::string with_gone(std::string_view script) {
  return std::string(k_gone) += script;
}

struct Stat {
  enum class Kind { file, directory, other } kind = Kind::other;
  std::uint64_t size = 0;
};

Task<Stat> stat_of(SupportsCommands& commands, std::string path) {
  std::string out = co_await output_of(commands, with_gone(k_stat), path);
  std::erase_if(out, [](char c) { return c == '\n' || c == ' '; });
  Stat stat;
  if (out == "d") {
    stat.kind = Stat::Kind::directory;
  } else if (out != "o") {
    auto [end, error] = std::from_chars(out.data(), out.data() + out.size(), stat.size);
    if (error != std::errc() || end != out.data() + out.size()) {
      throw WorkspaceError("the workspace tells no size of " + printable(path));
    }
    stat.kind = Stat::Kind::file;
  }
  co_return stat;
}

[[noreturn]] void throw_damaged(const std::string& path, const std::string& missing) {
  std::string text = "reading gave damaged output: " + printable(path);
  if (!missing.empty()) text = "the workspace lacks programs that file operations need:" + printable(missing);
  throw WorkspaceError(text);
}

/// One pass over the file; nothing when a block had not the length that `size` says.
Task<std::optional<std::string>> read_blocks(SupportsCommands& commands, std::string path,
                                             std::uint64_t size) {
  std::string bytes;
  for (std::uint64_t block = 0; bytes.size() < size; ++block) {
    std::size_t expected = std::min<std::uint64_t>(k_read_block, size - bytes.size());
    std::vector<std::string> number{std::to_string(block)};
    std::string piece = co_await decoded_output_of(commands, std::string(k_read), path, std::move(number));
    if (piece.size() != expected) co_return std::nullopt;
    bytes += piece;
  }
  co_return bytes;
}

Task<std::string> read_regular(SupportsCommands& commands, std::string path) {
  Stat stat = co_await stat_of(commands, path);
  for (int attempt = 0; attempt < k_read_attempts; ++attempt) {
    if (stat.kind == Stat::Kind::directory) throw PathError(PathErrorKind::is_a_directory, path);
    if (stat.kind == Stat::Kind::other) throw PathError(PathErrorKind::not_regular, path);
    auto bytes = co_await read_blocks(commands, path, stat.size);
    if (bytes) co_return std::move(*bytes);
    std::uint64_t before = stat.size;
    stat = co_await stat_of(commands, path);
    if (stat.size != before) continue;
    CommandResult probe = co_await run_script(commands, k_probe, path);
    throw_damaged(path, probe.out);
  }
  throw WorkspaceError("the file changed while it was read: " + printable(path));
}

Task<void> send(SupportsCommands& commands, std::string temporary, std::string target,
                std::string_view data) {
  do {
    std::string_view piece = data.substr(0, k_write_block);
    data.remove_prefix(piece.size());
    std::vector<std::string> text{base64_encode(piece, Base64Alphabet::standard)};
    co_await output_of(commands, std::string(k_append), temporary, std::move(text));
  } while (!data.empty());
  std::vector<std::string> to{target};
  co_await output_of(commands, std::string(k_commit), temporary, std::move(to));
}

/// Never throws Error: what failed before is what the caller hears of.
Task<void> remove_temporaries(SupportsCommands& commands, std::string temporary) {
  try {
    co_await run_script(commands, k_clean, temporary, {}, std::chrono::seconds(10));
  } catch (const Error&) {
    co_return;
  }
}

}  // namespace

Task<std::string> read_bytes(SupportsCommands& commands, std::string path) {
  std::string limit;
  try {
    co_return co_await read_regular(commands, std::move(path));
  } catch (const WorkspaceOutputLimitError& e) {
    limit = e.what();
  }
  throw WorkspaceError(limit, ErrorCode::limit_exceeded);
}

Task<void> write_bytes(SupportsCommands& commands, std::string path, std::string data) {
  std::string target = co_await realpath(commands, path);
  co_await output_of(commands, std::string(k_prepare_write), target);
  std::string parent = target.substr(0, target.rfind('/'));
  std::string temporary = fmt::format("{}/.pydantic-ai-{}.tmp", parent, random_hex(32));
  std::exception_ptr failure;
  try {
    co_await send(commands, temporary, target, data);
  } catch (...) {
    failure = std::current_exception();
  }
  if (!failure) co_return;
  // The temporaries go also when the caller was cancelled, and when it is once more: a coroutine of its own,
  // which the second cancellation does not reach.
  co_await asio::this_coro::reset_cancellation_state();
  auto executor = co_await asio::this_coro::executor;
  auto removed = asio::co_spawn(executor, remove_temporaries(commands, temporary),
                                asio::bind_cancellation_slot(asio::cancellation_slot(), asio::use_awaitable));
  co_await std::move(removed);
  std::rethrow_exception(failure);
}

Task<FileEntry> stat(SupportsCommands& commands, std::string path) {
  Stat found = co_await stat_of(commands, path);
  FileEntry entry;
  entry.name = path.substr(path.rfind('/') + 1);
  entry.path = path;
  entry.is_dir = found.kind == Stat::Kind::directory;
  if (found.kind == Stat::Kind::file) entry.size = found.size;
  co_return entry;
}

Task<std::vector<FileEntry>> list_dir(SupportsCommands& commands, std::string path) {
  std::string records = co_await decoded_output_of(commands, with_gone(k_list), path);
  std::vector<FileEntry> entries;
  for (std::size_t at = 0; at < records.size();) {
    std::size_t end = records.find('\0', at);
    if (end == std::string::npos || end == at) throw WorkspaceError("the workspace's listing is damaged");
    FileEntry entry;
    entry.is_dir = records[at] == 'd';
    entry.name = records.substr(at + 1, end - at - 1);
    entry.path = join_path(path, entry.name);
    entries.push_back(std::move(entry));
    at = end + 1;
  }
  std::ranges::sort(entries, {}, &FileEntry::path);
  co_return entries;
}

Task<void> make_dir(SupportsCommands& commands, std::string path) {
  co_await output_of(commands, std::string(k_make_dir), path);
}

Task<void> remove(SupportsCommands& commands, std::string path, std::string working_dir) {
  std::string parent = path.substr(0, path.rfind('/'));
  std::string real = normalize_path(
      join_path(co_await realpath(commands, parent.empty() ? "/" : parent), path.substr(parent.size() + 1)));
  if (is_below(working_dir, real) || is_below(working_dir, path)) {
    throw InvalidArgument("The working directory and what is above it cannot be removed");
  }
  co_await output_of(commands, with_gone(k_remove), path);
}

Task<bool> exists(SupportsCommands& commands, std::string path) {
  CommandResult result = co_await run_script(commands, k_exists, path);
  if (result.exit_code > 1) throw_failure(result, path);
  co_return result.exit_code == 0;
}

Task<std::string> realpath(SupportsCommands& commands, std::string path) {
  std::string real = co_await decoded_output_of(commands, std::string(k_realpath), path);
  if (!real.starts_with('/')) throw WorkspaceError("the workspace resolved no path of " + printable(path));
  co_return real;
}

}  // namespace holt::derived
