#include "cli/commands/commands.hpp"
#include "cli/cp_paths.hpp"
#include "cli/errors.hpp"
#include "cli/machines.hpp"
#include "cli/units.hpp"

#include <cerrno>
#include <charconv>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t k_piece = std::size_t{256} << 10;

/// The last name of a path, "" for one that has none ("/", "..").
std::string last_name(const std::string& path) {
  auto name = fs::path(path).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  auto text = name.filename().string();
  return text == "." || text == ".." ? "" : text;
}

std::string join(const std::string& folder, const std::string& name) {
  return folder.ends_with('/') ? folder + name : folder + "/" + name;
}

class CpCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "cp",
            .group = Group::machines,
            .summary = "Copy files between this host and a machine, without any program of the guest",
            .usage = "[flags] SOURCE DESTINATION      (one of them NAME:/path)",
            .example = "holt cp ./data.csv dev:/work/data.csv"};
  }

  void declare(Options& options) override {
    options.argument("SOURCE", source_, "Path, NAME:/path, or - for standard input with --raw");
    options.argument("DESTINATION", target_, "Path, NAME:/path, or - for standard output with --raw");
    options.flag("-r,--recursive", recursive_, "Folders with all in them");
    options.flag("-a,--archive", archive_, "The same");
    options.flag("-L,--follow-link", follow_, "Copy what links in the source point at (host to machine)");
    options.flag("--raw", raw_, "With '-': the bytes of one file");
    options.text("--mode", "OCTAL", mode_, "Mode of a file written into the machine");
    options.later_value("--chown", "changing owners in cp");
  }

  Outcome run(Session& session) override {
    auto from = parse_cp_side(source_);
    auto to = parse_cp_side(target_);
    bool guest_from = std::holds_alternative<GuestPath>(from);
    if (guest_from == std::holds_alternative<GuestPath>(to)) {
      throw usage_error("cp: exactly one side must be a machine's, NAME:/path");
    }
    bool stream = std::holds_alternative<Stream>(guest_from ? to : from);
    if (stream && !raw_) throw later_error("cp: '-' as a tar (use --raw for one file's bytes)");
    if (raw_ && !stream) throw usage_error("cp: --raw goes with '-'");

    auto begin = std::chrono::steady_clock::now();
    auto side = std::get<GuestPath>(guest_from ? from : to);
    auto machine = find_machine(session, side.machine);
    machine.start(session.start_options());
    session.output.clear_progress();
    CopyResult copied =
        guest_from ? copy_out(session, machine, side.path, to) : copy_in(session, machine, from, side.path);
    if (session.globals.json && !(stream && guest_from)) {
      auto elapsed = std::chrono::steady_clock::now() - begin;
      session.output.json(
          {{"files", copied.files},
           {"bytes", copied.bytes},
           {"durationMs", std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count()}});
    }
    return ToolExit{};
  }

 private:
  CopyResult copy_in(Session& session, const Machine& machine, const CpSide& from, std::string target) const {
    if (std::holds_alternative<Stream>(from)) return stream_in(session, machine, STDIN_FILENO, target, {});
    const auto& source = std::get<HostPath>(from).path;
    struct stat facts{};
    bool linked = ::lstat(source.c_str(), &facts) == 0 && S_ISLNK(facts.st_mode);
    // A link given by name is followed, as by cp(1) without -r.
    if (linked && !recursive_ && !archive_) ::stat(source.c_str(), &facts);
    if (::access(source.c_str(), F_OK) != 0)
      throw system_error(errno, fmt::format("Read {}", printable(source)), source);
    require_recursive(S_ISDIR(facts.st_mode), source);
    target = in_folder(session, machine, target, last_name(fs::absolute(source).string()));
    if (S_ISREG(facts.st_mode)) {
      Fd file(::open(source.c_str(), O_RDONLY | O_CLOEXEC));
      if (!file) throw system_error(errno, fmt::format("Read {}", printable(source)), source);
      FileWriteOptions options{.mode = facts.st_mode & 07777,
                               .size = static_cast<std::uint64_t>(facts.st_size)};
      return stream_in(session, machine, file.get(), target, options);
    }
    return machine.copy_in(source, target, copy_options(session));
  }

  CopyResult copy_out(Session& session, const Machine& machine, const std::string& source,
                      const CpSide& to) const {
    if (std::holds_alternative<Stream>(to)) return stream_out(session, machine, source);
    auto target = std::get<HostPath>(to).path;
    auto facts = machine.stat(source, session.call());
    require_recursive(facts.type == FileType::directory, source);
    std::error_code ignored;
    if (fs::is_directory(target, ignored)) {
      auto name = last_name(source);
      if (!name.empty()) target = join(target, name);
    } else if (target.ends_with('/') && facts.type != FileType::directory) {
      throw Error(ErrorCode::not_found, fmt::format("There is no folder {}", printable(target)),
                  {.subject = target});
    }
    return machine.copy_out(source, target, copy_options(session));
  }

  void require_recursive(bool is_folder, const std::string& path) const {
    if (!is_folder || recursive_ || archive_) return;
    throw Error(ErrorCode::is_directory, fmt::format("{} is a folder", printable(path)),
                {.subject = path, .hint = "Give -r to copy it with all in it."});
  }

  /// As cp(1): into the target where that is a folder, else under its name.
  static std::string in_folder(Session& session, const Machine& machine, const std::string& target,
                               const std::string& name) {
    bool folder = false;
    try {
      folder = machine.stat(target, session.call()).type == FileType::directory;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::not_found || target.ends_with('/')) throw;
    }
    return folder && !name.empty() ? join(target, name) : target;
  }

  CopyOptions copy_options(Session& session) const {
    CopyOptions options{.follow = follow_ ? FollowLinks::yes : FollowLinks::no};
    options.call = session.call();
    options.on_progress = [&session](const CopyResult& done) {
      if (!session.globals.quiet) {
        session.output.progress(fmt::format("holt: {} files, {}", done.files, show_size(done.bytes)));
      }
    };
    return options;
  }

  CopyResult stream_in(Session& session, const Machine& machine, int fd, const std::string& target,
                       FileWriteOptions options) const {
    options.call = session.call();
    if (mode_) options.mode = parse_mode(*mode_);
    auto writer = machine.open_write(target, options);
    CopyResult done{.files = 1};
    std::string piece(k_piece, '\0');
    while (true) {
      session.interrupts.token().throw_if_cancelled();
      ssize_t count = ::read(fd, piece.data(), piece.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw system_error(errno, "Read the source");
      if (count == 0) break;
      writer.write(std::string_view(piece).substr(0, static_cast<std::size_t>(count)));
      done.bytes += static_cast<std::uint64_t>(count);
    }
    writer.finish();
    return done;
  }

  static CopyResult stream_out(Session& session, const Machine& machine, const std::string& source) {
    auto reader = machine.open_read(source, {.call = session.call()});
    CopyResult done{.files = 1};
    while (auto piece = reader.next()) {
      session.output.out(*piece);
      done.bytes += piece->size();
    }
    return done;
  }

  static std::uint32_t parse_mode(const std::string& text) {
    std::uint32_t mode = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
    if (error != std::errc{} || end != text.data() + text.size() || mode > 07777) {
      throw usage_error(fmt::format("--mode: '{}' is no mode such as 644", printable(text, 40)));
    }
    return mode;
  }

  std::string source_;
  std::string target_;
  bool recursive_ = false;
  bool archive_ = false;
  bool follow_ = false;
  bool raw_ = false;
  std::optional<std::string> mode_;
};

}  // namespace

std::unique_ptr<Command> make_cp() {
  return std::make_unique<CpCommand>();
}

}  // namespace holt::cli
