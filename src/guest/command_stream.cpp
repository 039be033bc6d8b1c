#include "guest/command_stream.hpp"

#include <utility>

namespace holt::guest {
namespace {

using protocol::FrameType;

class StreamSink : public CommandSink {
 public:
  StreamSink(std::shared_ptr<CommandOutlet> end, std::shared_ptr<BackgroundCommand> record)
      : end_(std::move(end)), record_(std::move(record)) {}

  void started(pid_t pid) override {
    if (record_) record_->on_started(pid);
    end_->outlet.send(FrameType::started, protocol::encode(protocol::ExecStarted{.pid = pid}));
  }
  std::size_t room() const override { return end_->outlet.congested() ? 0 : end_->credit.payload_room(); }
  void output(FrameType type, std::string_view bytes) override {
    if (record_) record_->on_output(type == FrameType::output ? 0 : 1, bytes);
    end_->credit.spend(bytes.size());
    end_->outlet.send(type, std::string(bytes));
  }
  void input_taken(std::size_t bytes) override { end_->outlet.release(bytes); }
  void ended(const protocol::ExecReply& reply) override {
    if (record_) record_->on_end(reply);
    end_->outlet.reply(reply);
  }
  void failed(const Failure& failure) override {
    if (record_) record_->on_failure(failure);
    end_->outlet.fail(failure);
  }

 private:
  std::shared_ptr<CommandOutlet> end_;
  std::shared_ptr<BackgroundCommand> record_;
};

std::uint32_t u16_at(std::string_view bytes, std::size_t at) {
  return static_cast<unsigned char>(bytes[at]) |
         static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + 1])) << 8;
}

}  // namespace

CommandStream::CommandStream(Loop& loop, Outlet outlet, std::optional<Cgroup> cgroup,
                             std::shared_ptr<BackgroundCommand> record)
    : record_(std::move(record)),
      end_(std::make_shared<CommandOutlet>(CommandOutlet{.outlet = outlet})),
      command_(
          std::make_shared<Command>(loop, std::make_unique<StreamSink>(end_, record_), std::move(cgroup))) {}

void CommandStream::on_disconnect() {
  // Whoever repeats a recorded one is told of its end.
  record_ ? command_->cancel() : command_->abandon();
}

std::expected<void, protocol::ProtocolError> CommandStream::on_credit(std::uint32_t bytes) {
  auto granted = end_->credit.grant(bytes);
  if (granted) command_->on_drained();
  return granted;
}

void CommandStream::on_frame(protocol::Frame frame) {
  bool is_last = frame.header.has(protocol::FrameFlag::end_of_data);
  switch (frame.header.type) {
    case FrameType::input:
      command_->feed(std::move(frame.payload));
      if (is_last) command_->end_of_input();
      break;
    case FrameType::cancel:
      command_->cancel();
      break;
    case FrameType::signal:
      if (auto number = signal_of(frame)) command_->signal(*number);
      break;
    case FrameType::resize:
      if (auto size = size_of(frame)) command_->resize(*size);
      break;
    default:
      break;
  }
}

std::optional<int> signal_of(const protocol::Frame& frame) {
  if (frame.payload.size() != 1) return std::nullopt;
  return frame.payload[0];
}

std::optional<protocol::TerminalSize> size_of(const protocol::Frame& frame) {
  if (frame.payload.size() != 2 * sizeof(std::uint16_t)) return std::nullopt;
  return protocol::TerminalSize{.rows = u16_at(frame.payload, 0), .columns = u16_at(frame.payload, 2)};
}

}  // namespace holt::guest
