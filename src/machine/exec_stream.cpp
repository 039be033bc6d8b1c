#include "machine/exec_stream.hpp"

#include "machine/guest_link.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>

#include <fmt/format.h>

namespace holt {

using namespace machine;
using namespace protocol;

namespace {

using namespace std::chrono_literals;

constexpr std::size_t k_input_limit = std::size_t{64} << 20;
// A host's deadline stands so far behind the guest's own timeout, which kills with a result.
constexpr auto k_timeout_margin = 5s;
constexpr auto k_connect_deadline = 10s;
// As file operations: a guest that says nothing of a command in all of this does not serve any.
constexpr auto k_answer_deadline = 30s;

constexpr std::size_t k_preview = std::size_t{64} << 10;
constexpr std::uint32_t k_longest_side = 65535;
constexpr int k_last_signal = 64;

ExecResult result_of(const std::string& payload) {
  auto reply = decode<ExecReply>(payload);
  if (!reply) throw guest_protocol_error(reply.error());
  return exec_result(*reply);
}

Deadline deadline_of(const ExecOptions& options) {
  if (options.deadline) return *options.deadline;
  return options.timeout ? Deadline::after(*options.timeout + k_timeout_margin) : Deadline::never();
}

}  // namespace

class ExecStream::Impl {
 public:
  Impl(std::unique_ptr<StreamConnection> connection, const ExecOptions& options)
      : connection_(std::move(connection)), deadline_(deadline_of(options)), cancel_(options.cancel) {
    if (options.stdin_mode == holt::StdinMode::data && !options.input.empty())
      connection_->set_input(options.input);
  }
  ~Impl() {
    if (connection_) connection_->kill();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::optional<ExecEvent> next(const CallOptions& options) {
    while (!ended_) {
      auto frame = take(options);
      if (!frame) return std::nullopt;
      if (auto event = event_of(std::move(*frame))) return event;
    }
    return std::nullopt;
  }

  Tried<ExecEvent> try_next() {
    while (!ended_) {
      auto frame = try_take();
      if (frame.pending) return Tried<ExecEvent>::not_yet();
      if (!frame.value) break;
      if (auto event = event_of(std::move(*frame.value))) return {.value = std::move(event)};
    }
    return Tried<ExecEvent>::end();
  }

  void write_stdin(std::string_view bytes, const CallOptions& options) {
    connection_->send_input(bytes, wait(options));
  }
  StreamConnection& connection() { return *connection_; }
  void abandon() noexcept {
    connection_->abandon();
    [[maybe_unused]] auto* kept = connection_.release();
  }

 private:
  std::optional<ExecEvent> event_of(Frame frame) {
    switch (frame.header.type) {
      case FrameType::output:
        return ExecEvent{.kind = ExecEvent::Kind::out, .data = std::move(frame.payload)};
      case FrameType::error_output:
        return ExecEvent{.kind = ExecEvent::Kind::err, .data = std::move(frame.payload)};
      case FrameType::started:
        return std::nullopt;
      case FrameType::reply:
        ended_ = true;
        return ExecEvent{.kind = ExecEvent::Kind::exit, .result = result_of(frame.payload)};
      default:
        ended_ = true;
        throw Error(ErrorCode::guest_protocol, "The guest program sent a frame that no command has");
    }
  }

  Wait wait(const CallOptions& options) const {
    return {.deadline = options.deadline ? options.deadline->earlier(deadline_) : deadline_,
            .cancel = options.cancel ? options.cancel : cancel_};
  }

  std::optional<Frame> take(const CallOptions& options) {
    try {
      return connection_->next(wait(options));
    } catch (const Error& e) {
      // After a deadline of the call alone the stream goes on.
      bool goes_on = e.code() == ErrorCode::timeout && options.deadline && options.deadline->passed();
      if (!goes_on || deadline_.passed()) ended_ = true;
      throw;
    }
  }

  Tried<Frame> try_take() {
    try {
      return connection_->try_next();
    } catch (const Error&) {
      ended_ = true;
      throw;
    }
  }

  std::unique_ptr<StreamConnection> connection_;
  Deadline deadline_;
  std::optional<CancellationToken> cancel_;
  std::atomic<bool> ended_ = false;
};

ExecStream::ExecStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ExecStream::ExecStream(ExecStream&&) noexcept = default;
ExecStream& ExecStream::operator=(ExecStream&&) noexcept = default;
ExecStream::~ExecStream() = default;

std::optional<ExecEvent> ExecStream::next(const CallOptions& options) {
  return impl_->next(options);
}
Tried<ExecEvent> ExecStream::try_next() {
  return impl_->try_next();
}
std::size_t ExecStream::try_write_stdin(std::string_view bytes) {
  auto& connection = impl_->connection();
  auto taken = connection.try_send_input(bytes);
  // To a command that has ended everything is written.
  return taken == 0 && connection.ended() ? bytes.size() : taken;
}
int ExecStream::input_fd() const {
  return impl_->connection().room_fd();
}
void ExecStream::abandon() noexcept {
  impl_->abandon();
}
void ExecStream::write_stdin(std::string_view bytes, const CallOptions& options) {
  impl_->write_stdin(bytes, options);
}
void ExecStream::close_stdin() {
  impl_->connection().end_input();
}
void ExecStream::signal(int signal_number) {
  if (signal_number < 1 || signal_number > k_last_signal)
    throw InvalidArgument(fmt::format("{} is no signal", signal_number));
  impl_->connection().send_signal(signal_number);
}
void ExecStream::resize(holt::TerminalSize size) {
  if (size.rows > k_longest_side || size.columns > k_longest_side)
    throw InvalidArgument(fmt::format("A terminal has at most {} rows and columns", k_longest_side));
  impl_->connection().send_size(static_cast<std::uint16_t>(size.rows),
                                static_cast<std::uint16_t>(size.columns));
}
void ExecStream::kill() {
  impl_->connection().kill();
}
int ExecStream::fd() const {
  return impl_->connection().poll_fd();
}

OutputLimitError::OutputLimitError(std::size_t limit, std::string out, std::string err)
    : Error(ErrorCode::limit_exceeded,
            fmt::format("The command wrote more than {} bytes and was killed", limit),
            {.hint = "Raise the output limit, or let the command write to a file."}),
      limit_(limit),
      out_(std::move(out)),
      err_(std::move(err)) {
  out_.resize(std::min(out_.size(), k_preview));
  err_.resize(std::min(err_.size(), k_preview));
}

namespace machine {

ExecResult exec_result(const ExecReply& reply) {
  auto code = reply.exit_code.value_or(0);
  auto signal_number = reply.signal.value_or(1);
  bool possible = code >= 0 && code <= 255 && signal_number >= 1 && signal_number <= k_last_signal;
  if (reply.exit_code.has_value() == reply.signal.has_value() || !possible) {
    throw Error(ErrorCode::guest_protocol, "The guest program told no possible end of the command");
  }
  ExecResult result;
  if (reply.exit_code) result.exit_code = static_cast<int>(code);
  if (reply.signal) result.signal = static_cast<int>(signal_number);
  result.timed_out = reply.timed_out;
  result.oom = reply.oom;
  result.out_truncated = reply.stdout_truncated;
  result.err_truncated = reply.stderr_truncated;
  auto us = std::min<std::uint64_t>(reply.duration_us, std::uint64_t{1} << 52);
  result.duration = std::chrono::microseconds(us);
  return result;
}

namespace {

CommandLimits limits_of(const ResourceLimits& limits) {
  return {.cpu_seconds = limits.cpu_seconds,
          .file_bytes = limits.file_size,
          .open_files = limits.open_files,
          .processes = limits.processes,
          .memory_bytes = limits.memory,
          .core_bytes = limits.core_size};
}

bool has_any(const ResourceLimits& limits) {
  return limits.cpu_seconds || limits.file_size || limits.open_files || limits.processes || limits.memory ||
         limits.core_size;
}

protocol::TerminalSize size_of(holt::TerminalSize size) {
  if (size.rows > k_longest_side || size.columns > k_longest_side)
    throw InvalidArgument(fmt::format("A terminal has at most {} rows and columns", k_longest_side));
  return {.rows = size.rows, .columns = size.columns};
}

}  // namespace

ExecRequest exec_request(const Command& command, const ExecOptions& options, std::uint64_t output_limit) {
  if (command.argv.empty() && !command.script) throw InvalidArgument("There is no command: argv is empty");
  if (!command.argv.empty() && command.argv.front().empty())
    throw InvalidArgument("The command's name is empty");
  if (options.timeout && *options.timeout <= Duration::zero())
    throw InvalidArgument("The timeout is not above zero");
  if (options.input.size() > k_input_limit) {
    throw Error(ErrorCode::too_large, fmt::format("The input has more than {} bytes", k_input_limit),
                {.hint = "Use a stream and write_stdin()."});
  }
  if (options.stop_signal < 0 || options.stop_signal > k_last_signal)
    throw InvalidArgument("The stop signal is not 1 to 64");
  bool has_input = options.stdin_mode == holt::StdinMode::pipe || !options.input.empty();
  ExecRequest request{.argv = command.argv,
                      .script = command.script,
                      .cwd = options.working_dir,
                      .user = options.user,
                      .stdin_mode = has_input ? protocol::StdinMode::stream : protocol::StdinMode::none,
                      .output_limit = output_limit,
                      .stop_signal = static_cast<std::uint32_t>(options.stop_signal),
                      .key = options.idempotency_key};
  for (const auto& [name, value] : options.env) request.env.push_back({.name = name, .value = value});
  if (options.timeout) {
    // Rounded up: a timeout of a microsecond is none of zero.
    request.timeout_ms = std::chrono::ceil<std::chrono::milliseconds>(*options.timeout).count();
  }
  if (options.terminal) request.terminal = size_of(*options.terminal);
  if (has_any(options.limits)) request.limits = limits_of(options.limits);
  return request;
}

ExecStream stream_of(std::unique_ptr<StreamConnection> connection, const ExecOptions& options) {
  connection->set_answer_deadline(Deadline::after(k_answer_deadline));
  return ExecStream(std::make_unique<ExecStream::Impl>(std::move(connection), options));
}

ExecStream open_command(const MachineFolder& folder, const Command& command, const ExecOptions& options,
                        std::uint64_t output_limit, Sending sending) {
  auto request = exec_request(command, options, output_limit);
  Wait wait{.deadline = deadline_of(options).earlier(Deadline::after(k_connect_deadline)),
            .cancel = options.cancel};
  auto connection = StreamConnection::open(folder, request, Effect::possible, wait, sending);
  if (sending == Sending::queues) connection->set_alarm(deadline_of(options));
  return stream_of(std::move(connection), options);
}

ExecResult run_command(const MachineFolder& folder, const Command& command, const ExecOptions& options) {
  if (options.stdin_mode == holt::StdinMode::pipe)
    throw InvalidArgument("exec() has no input pipe; use exec_stream()");
  auto stream = open_command(folder, command, options, ExecCollector::guest_limit(options));
  ExecCollector collector(options);
  while (auto event = stream.next()) {
    if (auto result = collector.take(std::move(*event))) return std::move(*result);
  }
  throw Error(ErrorCode::cancelled, "The command was killed");
}

std::uint64_t ExecCollector::guest_limit(const ExecOptions& options) {
  // 0 means no limit to the guest program: one byte more than wanted then tells that there was output. So it
  // does at once, where a command is not to go on with too much.
  bool one_more = options.output_limit == 0 || options.over_limit == OverLimit::fail;
  return std::uint64_t{options.output_limit} + (one_more ? 1 : 0);
}

void ExecCollector::Output::add(std::string_view piece, std::size_t limit) {
  more = more || text.size() + piece.size() > limit;
  text.append(piece, 0, limit - std::min(limit, text.size()));
}

void ExecCollector::check_limit() {
  if (over_limit_ == OverLimit::cut || (!out_.more && !err_.more)) return;
  throw OutputLimitError(limit_, std::move(out_.text), std::move(err_.text));
}

std::optional<ExecResult> ExecCollector::take(ExecEvent event) {
  switch (event.kind) {
    case ExecEvent::Kind::out:
      out_.add(event.data, limit_);
      check_limit();
      return std::nullopt;
    case ExecEvent::Kind::err:
      err_.add(event.data, limit_);
      check_limit();
      return std::nullopt;
    case ExecEvent::Kind::exit:
      break;
  }
  auto result = std::move(event.result);
  result.out_truncated = result.out_truncated || out_.more;
  result.err_truncated = result.err_truncated || err_.more;
  result.out = std::move(out_.text);
  result.err = std::move(err_.text);
  return result;
}

}  // namespace machine
}  // namespace holt
