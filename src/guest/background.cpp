#include "guest/background.hpp"

#include "guest/command_stream.hpp"
#include "holt/protocol/flow.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <ranges>
#include <sys/random.h>
#include <sys/sysinfo.h>
#include <utility>

namespace holt::guest {
namespace {

using protocol::FrameType;

constexpr std::size_t k_frame = std::size_t{64} << 10;
/// All logs together: an eighth of the memory, within these.
constexpr std::size_t k_least_memory = std::size_t{4} << 20;
constexpr std::size_t k_most_memory = std::size_t{128} << 20;
/// Keys of commands that are forgotten themselves, so that a late repeat still starts nothing.
constexpr std::size_t k_forgotten_keys = 4096;
/// Of a command's words in a status, so that the list of all fits into a frame.
constexpr std::size_t k_shown_words = 400;

std::size_t log_memory() {
  struct sysinfo info{};
  if (::sysinfo(&info) != 0) return k_least_memory;
  return std::clamp<std::size_t>(info.totalram * info.mem_unit / 8, k_least_memory, k_most_memory);
}

std::int64_t wall_clock_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Random, so that one of another life is never taken for one of this.
std::string new_id() {
  std::array<unsigned char, 6> bytes{};
  [[maybe_unused]] auto got = ::getrandom(bytes.data(), bytes.size(), 0);
  constexpr std::string_view k_digits = "0123456789abcdef";
  std::string id;
  for (auto byte : bytes) {
    id += k_digits[byte >> 4];
    id += k_digits[byte & 15];
  }
  return id;
}

std::vector<std::string> shown_words(const protocol::ExecRequest& command) {
  auto words = command.script ? std::vector<std::string>{"/bin/sh", "-c", *command.script} : command.argv;
  std::size_t size = 0;
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (size + word->size() + 1 > k_shown_words) {
      word->resize(std::min(word->size(), k_shown_words - size));
      words.erase(word + 1, words.end());
      words.emplace_back("...");
      break;
    }
    size += word->size() + 1;
  }
  return words;
}

std::size_t fingerprint_of(const protocol::ExecRequest& command) {
  return std::hash<std::string>()(protocol::encode_request(command));
}

class LogSink : public CommandSink {
 public:
  explicit LogSink(std::shared_ptr<BackgroundCommand> command) : command_(std::move(command)) {}
  void started(pid_t pid) override { command_->on_started(pid); }
  std::size_t room() const override { return k_frame; }
  void output(FrameType type, std::string_view bytes) override {
    command_->on_output(type == FrameType::output ? 0 : 1, bytes);
  }
  void input_taken(std::size_t) override {}
  void ended(const protocol::ExecReply& reply) override { command_->on_end(reply); }
  void failed(const Failure& failure) override { command_->on_failure(failure); }

 private:
  std::shared_ptr<BackgroundCommand> command_;
};

/// A stream that waits for a command's end, and before that sends its log where that is wanted.
class EndViewer : public CommandViewer {
 public:
  EndViewer(std::shared_ptr<BackgroundCommand> command, Outlet outlet)
      : command_(std::move(command)), outlet_(outlet) {
    command_->add(*this);
  }
  ~EndViewer() override { command_->remove(*this); }

  void on_change() override {
    if (command_->result()) finish([&] { outlet_.reply(command_->status()); });
    if (command_->failure()) finish([&] { outlet_.fail(*command_->failure()); });
  }
  void on_frame(protocol::Frame frame) override {
    if (frame.header.type != FrameType::cancel) return;
    finish([&] { outlet_.fail(refuse(ErrorCode::cancelled, "no longer wanted").error()); });
  }
  std::expected<void, protocol::ProtocolError> on_credit(std::uint32_t bytes) override {
    return credit_.grant(bytes);
  }
  void on_disconnect() override { over_ = true; }

 protected:
  template <class Answer>
  void finish(Answer answer) {
    if (std::exchange(over_, true)) return;
    answer();
  }

  std::shared_ptr<BackgroundCommand> command_;
  Outlet outlet_;
  protocol::SendCredit credit_;
  bool over_ = false;
};

class LogViewer : public EndViewer {
 public:
  LogViewer(std::shared_ptr<BackgroundCommand> command, const protocol::AttachCommandRequest& request,
            Outlet outlet)
      : EndViewer(std::move(command), outlet), position_{request.stdout_offset, request.stderr_offset} {
    outlet_.send(FrameType::started, protocol::encode(protocol::ExecStarted{.pid = command_->pid()}));
  }

  void on_change() override {
    if (over_) return;
    while (auto piece = command_->log().read(position_)) {
      auto size = std::min({piece->bytes.size(), credit_.payload_room(), k_frame});
      if (size == 0 || outlet_.congested()) return;
      lost_[piece->stream] |= piece->offset > position_[piece->stream];
      credit_.spend(size);
      outlet_.send(piece->stream == 0 ? FrameType::output : FrameType::error_output,
                   std::string(piece->bytes.substr(0, size)));
      position_[piece->stream] = piece->offset + size;
    }
    if (command_->result()) finish([&] { outlet_.reply(reply()); });
    if (command_->failure()) finish([&] { outlet_.fail(*command_->failure()); });
  }

  void on_frame(protocol::Frame frame) override {
    auto running = command_->command();
    auto number = frame.header.type == FrameType::signal ? signal_of(frame) : std::nullopt;
    auto size = frame.header.type == FrameType::resize ? size_of(frame) : std::nullopt;
    if (running && number) running->signal(*number);
    if (running && size) running->resize(*size);
    if (frame.header.type == FrameType::input) outlet_.release(frame.payload.size());
    EndViewer::on_frame(std::move(frame));
  }

  std::expected<void, protocol::ProtocolError> on_credit(std::uint32_t bytes) override {
    auto granted = EndViewer::on_credit(bytes);
    if (granted) on_change();
    return granted;
  }

 private:
  protocol::ExecReply reply() const {
    auto reply = command_->result().value_or(protocol::ExecReply{});
    const auto& log = command_->log();
    reply.stdout_truncated |= lost_[0] || log.has_lost(0, position_[0]);
    reply.stderr_truncated |= lost_[1] || log.has_lost(1, position_[1]);
    return reply;
  }

  CommandLog::Position position_;
  std::array<bool, CommandLog::k_streams> lost_{};
};

class RepeatViewer : public LogViewer {
 public:
  RepeatViewer(std::shared_ptr<BackgroundCommand> command, Outlet outlet)
      : LogViewer(std::move(command), {}, outlet) {}

  void on_frame(protocol::Frame frame) override {
    auto running = frame.header.type == FrameType::cancel ? command_->command() : nullptr;
    if (running) running->cancel();
    LogViewer::on_frame(std::move(frame));
  }
};

}  // namespace

BackgroundCommand::BackgroundCommand(BackgroundCommands& all, std::string id, CommandKind kind,
                                     const protocol::StartCommandRequest& request)
    : all_(&all),
      id_(std::move(id)),
      kind_(kind),
      key_(request.command.key),
      fingerprint_(key_.empty() ? 0 : fingerprint_of(request.command)),
      argv_(shown_words(request.command)),
      terminal_(request.command.terminal.has_value()),
      started_at_ns_(wall_clock_ns()),
      log_(request.log_limit) {}

bool BackgroundCommand::is_of(CommandKind kind, const protocol::ExecRequest& request) const {
  return kind == kind_ && fingerprint_of(request) == fingerprint_;
}

protocol::CommandStatus BackgroundCommand::status() const {
  return {.id = id_,
          .pid = pid_,
          .argv = argv_,
          .terminal = terminal_,
          .result = result_,
          .started_at_ns = started_at_ns_,
          .stdout_bytes = log_.written(0),
          .stderr_bytes = log_.written(1),
          .log_truncated = log_.has_lost(0, 0) || log_.has_lost(1, 0)};
}

void BackgroundCommand::tell_viewers() {
  // One that is answered here goes when the loop comes round, not before.
  for (auto* viewer : viewers_) viewer->on_change();
}

void BackgroundCommand::on_output(std::size_t stream, std::string_view bytes) {
  log_.append(stream, bytes);
  // A viewer takes it before it can be given up for want of room.
  tell_viewers();
  all_->keep_within_memory();
}

void BackgroundCommand::on_end(const protocol::ExecReply& reply) {
  result_ = reply;
  tell_viewers();
}

void BackgroundCommand::on_failure(const Failure& failure) {
  failure_ = failure;
  tell_viewers();
}

BackgroundCommands::BackgroundCommands() : most_memory_(log_memory()) {}

Outcome<std::shared_ptr<BackgroundCommand>> BackgroundCommands::add(
    CommandKind kind, const protocol::StartCommandRequest& request) {
  make_room();
  if (commands_.size() >= protocol::k_max_commands) {
    return refuse(ErrorCode::limit_exceeded, "the machine has as many background commands as it can keep");
  }
  return commands_.emplace_back(std::make_shared<BackgroundCommand>(*this, new_id(), kind, request));
}

void BackgroundCommands::make_room() {
  if (commands_.size() < protocol::k_max_commands) return;
  auto oldest = std::ranges::find_if(commands_, [](const auto& command) { return command->has_ended(); });
  if (oldest == commands_.end()) return;
  if (const auto& key = (*oldest)->key(); !key.empty()) forgotten_keys_.push_back(key);
  if (forgotten_keys_.size() > k_forgotten_keys) forgotten_keys_.pop_front();
  commands_.erase(oldest);
}

std::unique_ptr<CommandSink> BackgroundCommands::sink_of(std::shared_ptr<BackgroundCommand> command) {
  return std::make_unique<LogSink>(std::move(command));
}

void BackgroundCommands::forget(const BackgroundCommand& command) {
  commands_.remove_if([&](const auto& known) { return known.get() == &command; });
}

Outcome<std::shared_ptr<BackgroundCommand>> BackgroundCommands::find(const std::string& id) const {
  auto found = std::ranges::find(commands_, id, [](const auto& command) { return command->id(); });
  if (found != commands_.end()) return *found;
  return refuse(ErrorCode::not_found,
                "no such background command in this life of the machine, which ends them", id);
}

Outcome<std::shared_ptr<BackgroundCommand>> BackgroundCommands::find_key(
    CommandKind kind, const protocol::ExecRequest& request) const {
  if (request.key.empty()) return nullptr;
  auto found = std::ranges::find(commands_, request.key, [](const auto& command) { return command->key(); });
  if (found != commands_.end()) {
    if ((*found)->is_of(kind, request)) return *found;
    return refuse(ErrorCode::conflict, "another command was started with this idempotency key");
  }
  if (std::ranges::find(forgotten_keys_, request.key) == forgotten_keys_.end()) return nullptr;
  return refuse(ErrorCode::conflict,
                "the command with this idempotency key ended, and its result is no longer kept");
}

protocol::CommandsReply BackgroundCommands::list() const {
  protocol::CommandsReply reply;
  for (const auto& command : commands_) {
    if (command->kind() == CommandKind::background) reply.commands.push_back(command->status());
  }
  return reply;
}

std::shared_ptr<CommandViewer> BackgroundCommands::attach(std::shared_ptr<BackgroundCommand> command,
                                                          const protocol::AttachCommandRequest& request,
                                                          Outlet outlet) {
  return std::make_shared<LogViewer>(std::move(command), request, outlet);
}

std::shared_ptr<CommandViewer> BackgroundCommands::wait_for_end(std::shared_ptr<BackgroundCommand> command,
                                                                Outlet outlet) {
  return std::make_shared<EndViewer>(std::move(command), outlet);
}

std::shared_ptr<CommandViewer> BackgroundCommands::repeat(std::shared_ptr<BackgroundCommand> command,
                                                          Outlet outlet) {
  return std::make_shared<RepeatViewer>(std::move(command), outlet);
}

void BackgroundCommands::on_drained() {
  for (const auto& command : commands_) command->tell_viewers();
}

void BackgroundCommands::keep_within_memory() {
  auto memory = [](const auto& command) { return command->log().memory(); };
  std::size_t used = 0;
  for (const auto& command : commands_) used += memory(command);
  while (used > most_memory_) {
    // What has ended gives way first, the oldest before the others; then the largest log.
    auto victim = std::ranges::find_if(
        commands_, [&](const auto& command) { return command->has_ended() && memory(command) > 0; });
    if (victim == commands_.end()) victim = std::ranges::max_element(commands_, {}, memory);
    used -= memory(*victim);
    (*victim)->log().give_up_oldest();
    used += memory(*victim);
  }
}

}  // namespace holt::guest
