#include "machine/event_log.hpp"

#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "holt/base/fd.hpp"
#include "holt/base/files.hpp"
#include "holt/base/json.hpp"
#include "holt/base/log.hpp"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace holt::machine {
namespace {

// Two files of this size at most: some 1,000 events each.
constexpr off_t k_limit = off_t{256} << 10;
constexpr std::size_t k_longest_message = 1000;
// The size is looked at before a line is written, by several writers at once.
constexpr std::size_t k_read_limit = std::size_t{4} << 20;

}  // namespace

std::string encode_event(const MachineEvent& event) {
  return dump_json({{"at", rfc3339(event.at)},
                    {"atUs", event.at.time_since_epoch().count()},
                    {"kind", event.kind},
                    {"message", utf8_replace(event.message.substr(0, k_longest_message))},
                    {"code", event.code ? Json(to_string(*event.code)) : Json()}});
}

std::optional<MachineEvent> decode_event(std::string_view line) {
  auto json = parse_json(line);
  if (!json || !json->is_object()) return std::nullopt;
  auto text = [&](const char* name) {
    auto value = json->value(name, Json());
    return value.is_string() ? value.get<std::string>() : std::string();
  };
  auto at = json_integer<std::int64_t>(json->value("atUs", Json()));
  if (!at || text("kind").empty()) return std::nullopt;
  return MachineEvent{.at = WallTime(std::chrono::microseconds(*at)),
                      .kind = text("kind"),
                      .message = text("message"),
                      .code = error_code_from(text("code"))};
}

void EventLog::append(MachineEvent event) const noexcept {
  try {
    if (event.at == WallTime{}) event.at = wall_now();
    Fd fd(::open(file_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    struct stat info{};
    if (fd && ::fstat(fd.get(), &info) == 0 && info.st_size > k_limit) {
      // Another writer may do the same at once: then the older file is short, and nothing is lost but that.
      ::rename(file_.c_str(), older().c_str());
      fd = Fd(::open(file_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    }
    auto line = encode_event(event) + "\n";
    if (!fd || ::write(fd.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      logger("machine")->debug("an event was not written to {}", file_.string());
    }
  } catch (const std::exception&) {
    // Out of memory: there is nobody to tell.
  }
}

std::vector<MachineEvent> EventLog::read() const {
  std::vector<MachineEvent> events;
  for (const auto& file : {older(), file_}) {
    auto text = read_file_if_exists(file, k_read_limit).value_or("");
    std::size_t at = 0;
    for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', at)) {
      if (auto event = decode_event(std::string_view(text).substr(at, end - at)))
        events.push_back(std::move(*event));
      at = end + 1;
    }
  }
  return events;
}

std::filesystem::path EventLog::older() const {
  auto name = file_;
  name += ".1";
  return name;
}

}  // namespace holt::machine
