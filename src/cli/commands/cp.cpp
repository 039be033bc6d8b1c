#include "cli/commands/commands.hpp"
#include "cli/cp_paths.hpp"
#include "cli/errors.hpp"
#include "cli/machines.hpp"
#include "cli/stdin_reader.hpp"
#include "cli/units.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <poll.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::cli {
namespace {

namespace fs = std::filesystem;

/// The last name of a path, "" for one that has none ("/", "..") or means a folder's content ("x/.").
std::string last_name(const std::string& path) {
  if (path == "." || path.ends_with("/.")) return "";
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
            .examples = {"holt cp ./data.csv dev:/work/data.csv", "holt cp -r dev:/work ./work",
                         "tar c . | holt cp - dev:/work"}};
  }

  void declare(Options& options) override {
    options.argument("SOURCE", source_, "Path, NAME:/path, or - for a tar on standard input");
    options.argument("DESTINATION", target_, "Path, NAME:/path, or - for a tar on standard output");
    options.flag("-r,--recursive", recursive_, "Folders with all in them");
    options.flag("-a,--archive", archive_,
                 "The same, and keep the numbers of owners where the writer is root");
    options.flag("-L,--follow-link", follow_, "Copy what links in the source point at (host to machine)");
    options.flag("--raw", raw_, "With '-': the bytes of one file, no tar");
    options.text("--mode", "OCTAL", mode_, "Mode of a single file");
    options.text("--chown", "USER[:GROUP]", chown_, "Owner of all that is written into the machine");
  }

  Outcome run(Session& session) override {
    auto from = parse_cp_side(source_);
    auto to = parse_cp_side(target_);
    bool guest_from = std::holds_alternative<GuestPath>(from);
    if (guest_from == std::holds_alternative<GuestPath>(to)) {
      throw usage_error("cp: exactly one side must be a machine's, NAME:/path");
    }
    bool stream = std::holds_alternative<Stream>(guest_from ? to : from);
    if (raw_ && !stream) throw usage_error("cp: --raw goes with '-'");
    if (chown_ && guest_from) throw usage_error("cp: --chown goes with copies into a machine");
    if (follow_ && guest_from) throw usage_error("cp: -L goes with copies into a machine");
    if (mode_ && stream && !raw_)
      throw usage_error("cp: --mode goes with a single file, and a tar has its own");

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
           {"skipped", copied.skipped},
           {"failed", copied.failed},
           {"durationMs", std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count()}});
    }
    return ToolExit{report_problems(session, copied)};
  }

 private:
  /// Names what was left out; the exit code that follows from it.
  int report_problems(Session& session, const CopyResult& copied) const {
    session.output.clear_progress();
    for (const auto& problem : copied.problems) {
      auto path = problem.path.empty() ? printable(source_) : problem.path;
      bool skipped = problem.kind == CopyProblem::Kind::skipped;
      auto text = fmt::format("{}: {}: {}", skipped ? "skipped" : "not copied", path, problem.message);
      skipped ? session.note(text) : session.output.note(text);
    }
    auto unnamed = copied.skipped + copied.failed - copied.problems.size();
    if (unnamed > 0) session.note(fmt::format("and {} more", unnamed));
    return copied.failed > 0 ? k_exit_failed : k_exit_ok;
  }

  CopyResult copy_in(Session& session, const Machine& machine, const CpSide& from, std::string target) const {
    if (std::holds_alternative<Stream>(from)) {
      return raw_ ? stream_in(session, machine, target) : tar_in(session, machine, target);
    }
    const auto& source = std::get<HostPath>(from).path;
    struct stat facts{};
    if (::stat(source.c_str(), &facts) != 0 && ::lstat(source.c_str(), &facts) != 0) {
      throw system_error(errno, fmt::format("Read {}", printable(source)), source);
    }
    require_recursive(S_ISDIR(facts.st_mode), source);
    target = in_folder(session, machine, target, last_name(fs::absolute(source).string()));
    return machine.copy_in(source, target, copy_options(session));
  }

  CopyResult copy_out(Session& session, const Machine& machine, const std::string& source,
                      const CpSide& to) const {
    if (std::holds_alternative<Stream>(to)) {
      return raw_ ? stream_out(session, machine, source) : tar_out(session, machine, source);
    }
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
    if (is_folder && mode_) throw usage_error("cp: --mode goes with a single file");
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
    CopyOptions options{.follow = follow_ ? FollowLinks::yes : FollowLinks::no,
                        .owners = archive_ ? Owners::kept : Owners::of_user,
                        .owner = chown_.value_or(""),
                        .mode = mode_ ? std::optional(parse_mode(*mode_)) : std::nullopt};
    options.call = session.call();
    options.on_progress = [&session](const CopyResult& done) {
      if (!session.globals.quiet) {
        session.output.progress(fmt::format("holt: {} files, {}", done.files, show_size(done.bytes)));
      }
    };
    return options;
  }

  CopyResult tar_in(Session& session, const Machine& machine, const std::string& target) const {
    std::string piece;
    return machine.copy_tar_in([&] { return read_input(session.interrupts, piece); }, target,
                               copy_options(session));
  }

  CopyResult tar_out(Session& session, const Machine& machine, const std::string& source) const {
    return machine.copy_tar_out(
        source, [&](std::string_view bytes) { session.output.out(bytes); }, copy_options(session));
  }

  CopyResult stream_in(Session& session, const Machine& machine, const std::string& target) const {
    FileWriteOptions options{.mode = mode_ ? std::optional(parse_mode(*mode_)) : std::nullopt,
                             .owner = chown_.value_or("")};
    options.call = session.call();
    auto writer = machine.open_write(target, options);
    CopyResult done{.files = 1};
    std::string buffer;
    for (auto piece = read_input(session.interrupts, buffer); !piece.empty();
         piece = read_input(session.interrupts, buffer)) {
      writer.write(piece);
      done.bytes += piece.size();
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
  std::optional<std::string> chown_;
};

}  // namespace

std::unique_ptr<Command> make_cp() {
  return std::make_unique<CpCommand>();
}

}  // namespace holt::cli
