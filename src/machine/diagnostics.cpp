#include "holt/machine/diagnostics.hpp"

#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "holt/base/json.hpp"
#include "holt/base/log.hpp"
#include "machine/event_log.hpp"
#include "machine/info.hpp"
#include "machine/record.hpp"
#include "machine/tar_writer.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace holt {

using namespace machine;

namespace {

constexpr off_t k_log_tail = off_t{64} << 10;
// Shorter values ("1", "yes") are in every log for other reasons.
constexpr std::size_t k_shortest_secret = 4;
constexpr std::string_view k_redacted = "(redacted)";

/// Takes the values of machines' environments out of texts.
class Redactor {
 public:
  void learn(const MachineFolder& folder) {
    try {
      for (auto& [name, value] : folder.read_env()) {
        if (value.size() >= k_shortest_secret) secrets_.push_back(std::move(value));
      }
    } catch (const Error& e) {
      // A damaged file has no values that a machine could have written anywhere.
      logger("machine")->debug("{}", e.what());
    }
    // One that holds another goes first.
    std::ranges::sort(secrets_, std::greater{}, &std::string::size);
  }

  std::string clean(std::string text) const {
    for (const auto& secret : secrets_) {
      for (std::size_t at = 0; (at = text.find(secret, at)) != std::string::npos; at += k_redacted.size())
        text.replace(at, secret.size(), k_redacted);
    }
    return text;
  }

 private:
  std::vector<std::string> secrets_;
};

std::string tail_of(const std::filesystem::path& file) {
  Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info{};
  if (!fd || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  std::string text(static_cast<std::size_t>(std::min(info.st_size, k_log_tail)), '\0');
  auto count = ::pread(fd.get(), text.data(), text.size(), info.st_size - static_cast<off_t>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

/// The machine object as everybody may see it, its labels without their values.
std::string object_of(const MachineFolder& folder) {
  auto json = parse_json(machine_json(machine_info(folder)));
  if (!json) throw Error(ErrorCode::internal, "A machine object is no JSON: " + json.error().text());
  for (auto& [key, value] : (*json)["labels"].items()) value = k_redacted;
  return dump_json(*json, {.indent = 2});
}

std::string events_of(const MachineFolder& folder) {
  std::string lines;
  for (const auto& event : EventLog(folder.event_log()).read()) lines += encode_event(event) + "\n";
  return lines;
}

void add_machine(std::vector<DiagnosticText>& texts, const MachineFolder& folder, const Redactor& redactor) {
  auto add = [&](const char* name, std::string text) {
    auto path = fmt::format("machines/{}/{}", folder.path().filename().string(), name);
    if (!text.empty()) texts.push_back({.name = path, .text = redactor.clean(std::move(text))});
  };
  add("machine.json", object_of(folder));
  add("status.json", tail_of(folder.status_file()));
  add("events.jsonl", events_of(folder));
  add("monitor.log", tail_of(folder.path() / "monitor.log"));
  add("console.log", tail_of(folder.console_log()));
}

}  // namespace

std::vector<DiagnosticText> machine_diagnostics(const HostConfig& host) {
  MachineFolders folders(host.directories);
  auto names = folders.names();
  Redactor redactor;
  for (const auto& name : names) redactor.learn(folders.of(name));
  std::vector<DiagnosticText> texts;
  for (const auto& name : names) {
    try {
      add_machine(texts, folders.of(name), redactor);
    } catch (const Error& e) {
      if (e.code() != ErrorCode::not_found) throw;  // it has gone meanwhile
    }
  }
  return texts;
}

void write_bundle(const std::filesystem::path& file, const std::vector<DiagnosticText>& texts) {
  Fd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd && errno == EEXIST) {
    throw Error(ErrorCode::conflict, fmt::format("{} is there already", printable(file.string(), 300)),
                {.subject = file, .hint = "Choose another name, or remove it."});
  }
  if (!fd) throw system_error(errno, fmt::format("write {}", printable(file.string(), 300)), file);
  try {
    TarOutput output = [&](std::string_view bytes) { write_all(fd.get(), bytes); };
    TarWriter tar(output, file.filename().string());
    auto now = std::chrono::floor<std::chrono::seconds>(wall_now()).time_since_epoch().count();
    for (const auto& [name, text] : texts) {
      auto path = TreePath::from(name);
      if (!path) throw InvalidArgument(fmt::format("'{}' is no name for a file", printable(name, 100)));
      tar.begin_file(*path, {.size = text.size(), .mode = 0600, .mtime_s = now});
      tar.bytes(text);
      tar.end_file();
    }
    tar.finish();
  } catch (...) {
    ::unlink(file.c_str());
    throw;
  }
}

}  // namespace holt
