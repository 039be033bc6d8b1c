#include "holt/machine/operations.hpp"

#include "machine/background.hpp"
#include "machine/exec_stream.hpp"
#include "machine/file_streams.hpp"
#include "machine/guest_link.hpp"
#include "machine/machine_access.hpp"
#include "machine/tree_walk.hpp"

#include <chrono>
#include <functional>
#include <utility>

#include <fmt/format.h>

namespace holt {

using namespace machine;
using namespace protocol;

template <class T>
class Operation<T>::Impl {
 public:
  Impl() = default;
  virtual ~Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  virtual int fd() = 0;
  virtual std::optional<T> try_get() = 0;
  virtual void cancel() = 0;
  virtual void abandon() noexcept = 0;
};

namespace {

[[noreturn]] void throw_cancelled() {
  throw Error(ErrorCode::cancelled, "The call was cancelled");
}

/// Frames taken before an event loop gets its turn again.
constexpr int k_frames_a_turn = 16;

/// A call whose frames `take` makes the result of.
template <class T>
class FrameOperation final : public Operation<T>::Impl {
 public:
  using Connection = std::unique_ptr<StreamConnection>;
  /// May move the connection out with the result.
  using Take = std::function<std::optional<T>(Connection&, Frame)>;

  FrameOperation(Connection connection, const CallOptions& call, Take take)
      : connection_(std::move(connection)), patience_(call), take_(std::move(take)) {
    connection_->set_alarm(patience_.next_step().deadline);
  }
  ~FrameOperation() override {
    if (connection_) connection_->kill();
  }

  int fd() override { return open().poll_fd(); }
  void cancel() override {
    if (connection_) connection_->kill();
  }
  void abandon() noexcept override {
    if (!connection_) return;
    connection_->abandon();
    [[maybe_unused]] auto* kept = connection_.release();
  }

  std::optional<T> try_get() override {
    for (int turn = 0; turn < k_frames_a_turn; ++turn) {
      auto frame = open().try_next();
      if (frame.pending) break;
      if (!frame.value) throw_cancelled();
      connection_->set_alarm(patience_.next_step().deadline);
      if (auto result = take_(connection_, std::move(*frame.value))) return result;
    }
    return std::nullopt;
  }

 private:
  StreamConnection& open() {
    if (!connection_) throw Error(ErrorCode::invalid_state, "The call has given its result");
    return *connection_;
  }

  Connection connection_;
  Patience patience_;
  Take take_;
};

class ExecOperation final : public Operation<ExecResult>::Impl {
 public:
  ExecOperation(ExecStream stream, const ExecOptions& options)
      : stream_(std::move(stream)), collector_(options) {}

  int fd() override { return stream_.fd(); }
  void cancel() override { stream_.kill(); }
  void abandon() noexcept override { stream_.abandon(); }
  std::optional<ExecResult> try_get() override {
    for (int turn = 0; turn < k_frames_a_turn; ++turn) {
      auto event = stream_.try_next();
      if (event.pending) break;
      if (!event.value) throw_cancelled();
      if (auto result = collector_.take(std::move(*event.value))) return result;
    }
    return std::nullopt;
  }

 private:
  ExecStream stream_;
  ExecCollector collector_;
};

/// A file read whole.
class ReadOperation final : public Operation<std::string>::Impl {
 public:
  ReadOperation(Operation<FileReader> opening, FileCollector collector)
      : opening_(std::move(opening)), collector_(std::move(collector)) {}

  // The reader takes the opening's descriptor over.
  int fd() override { return reader_ ? reader_->fd() : opening_.fd(); }
  void cancel() override { reader_ ? reader_->cancel() : opening_.cancel(); }
  void abandon() noexcept override { reader_ ? reader_->abandon() : opening_.abandon(); }
  std::optional<std::string> try_get() override {
    if (!reader_) {
      reader_ = opening_.try_get();
      if (!reader_) return std::nullopt;
      collector_.announce(reader_->stat());
    }
    for (int turn = 0; turn < k_frames_a_turn; ++turn) {
      auto piece = reader_->try_next();
      if (piece.pending) break;
      if (!piece.value) return collector_.content();
      collector_.add(*piece.value);
    }
    return std::nullopt;
  }

 private:
  Operation<FileReader> opening_;
  std::optional<FileReader> reader_;
  FileCollector collector_;
};

template <class T, class Take>
Operation<T> operation(std::unique_ptr<StreamConnection> connection, const CallOptions& call, Take take) {
  return Operation<T>(std::make_unique<FrameOperation<T>>(std::move(connection), call, std::move(take)));
}

std::unique_ptr<StreamConnection> begin(const Machine& machine, const Request& request, Effect effect,
                                        const CallOptions& call) {
  return StreamConnection::open(folder_of(machine), request, effect, Patience(call).next_step(),
                                Sending::queues);
}

/// A request with one reply, which `convert` makes the result of.
template <class T, class Reply, class Convert>
Operation<T> ask_for(const Machine& machine, const Request& request, const CallOptions& call, Convert convert,
                     Effect effect = Effect::none) {
  return operation<T>(begin(machine, request, effect, call), call,
                      [convert](auto&, Frame frame) -> std::optional<T> {
                        if (frame.header.type != FrameType::reply) return std::nullopt;
                        auto reply = decode<Reply>(frame.payload);
                        if (!reply) throw guest_protocol_error(reply.error());
                        return convert(std::move(*reply));
                      });
}

/// A request that changes something and is only acknowledged.
Operation<NoResult> tell(const Machine& machine, const Request& request, const CallOptions& call) {
  return operation<NoResult>(begin(machine, request, Effect::possible, call), call,
                             [](auto&, const Frame& frame) -> std::optional<NoResult> {
                               if (frame.header.type != FrameType::reply) return std::nullopt;
                               return NoResult{};
                             });
}

ExecStream begin_stream(const Machine& machine, const Command& command, const ExecOptions& options,
                        std::uint64_t limit) {
  return open_command(folder_of(machine), command, options, limit, Sending::queues);
}

Operation<ExecResult> run(const Machine& machine, const Command& command, const ExecOptions& options) {
  if (options.stdin_mode == holt::StdinMode::pipe)
    throw InvalidArgument("exec() has no input pipe; use exec_stream()");
  auto stream = begin_stream(machine, command, options, ExecCollector::guest_limit(options));
  return Operation<ExecResult>(std::make_unique<ExecOperation>(std::move(stream), options));
}

Operation<CommandInfo> start_background(const Machine& machine, const Command& command,
                                        const ExecOptions& options) {
  return ask_for<CommandInfo, CommandStatus>(machine, start_request(command, options),
                                             {.deadline = options.deadline}, command_info, Effect::possible);
}

}  // namespace

template <class T>
Operation<T>::Operation(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
template <class T>
Operation<T>::Operation(Operation&&) noexcept = default;
template <class T>
Operation<T>& Operation<T>::operator=(Operation&&) noexcept = default;
template <class T>
Operation<T>::~Operation() = default;
template <class T>
int Operation<T>::fd() const {
  return impl_->fd();
}
template <class T>
std::optional<T> Operation<T>::try_get() {
  try {
    return impl_->try_get();
  } catch (...) {
    // A call that has failed, at its deadline for one, goes on nowhere.
    impl_->cancel();
    throw;
  }
}
template <class T>
void Operation<T>::cancel() {
  impl_->cancel();
}
template <class T>
void Operation<T>::abandon() noexcept {
  impl_->abandon();
}

template class Operation<ExecResult>;
template class Operation<std::string>;
template class Operation<FileReader>;
template class Operation<FileStat>;
template class Operation<bool>;
template class Operation<std::vector<DirEntry>>;
template class Operation<CommandInfo>;
template class Operation<std::vector<CommandInfo>>;
template class Operation<NoResult>;

Operation<ExecResult> Operations::exec(const std::vector<std::string>& argv,
                                       const ExecOptions& options) const {
  return run(machine_, {.argv = argv}, options);
}
Operation<ExecResult> Operations::exec_shell(const std::string& script, const ExecOptions& options) const {
  return run(machine_, {.script = script}, options);
}
ExecStream Operations::exec_stream(const std::vector<std::string>& argv, const ExecOptions& options) const {
  return begin_stream(machine_, {.argv = argv}, options, 0);
}
ExecStream Operations::exec_shell_stream(const std::string& script, const ExecOptions& options) const {
  return begin_stream(machine_, {.script = script}, options, 0);
}

Operation<CommandInfo> Operations::start_command(const std::vector<std::string>& argv,
                                                 const ExecOptions& options) const {
  return start_background(machine_, {.argv = argv}, options);
}
Operation<CommandInfo> Operations::start_shell_command(const std::string& script,
                                                       const ExecOptions& options) const {
  return start_background(machine_, {.script = script}, options);
}
Operation<std::vector<CommandInfo>> Operations::commands(const CallOptions& options) const {
  return ask_for<std::vector<CommandInfo>, CommandsReply>(machine_, CommandsRequest{}, options,
                                                          command_infos);
}
ExecStream Operations::attach_command(const std::string& id, const AttachOptions& options) const {
  return attach_to(folder_of(machine_), id, options, Sending::queues);
}
Operation<CommandInfo> Operations::wait_command(const std::string& id, const CallOptions& options) const {
  auto endless = options;
  if (!endless.deadline) endless.deadline = Deadline::never();
  return ask_for<CommandInfo, CommandStatus>(machine_, WaitCommandRequest{.id = id}, endless, command_info);
}
Operation<NoResult> Operations::signal_command(const std::string& id, int signal_number,
                                               const CallOptions& options) const {
  return tell(machine_, signal_request(id, signal_number), options);
}
Operation<CommandInfo> Operations::kill_command(const std::string& id, const CallOptions& options) const {
  return ask_for<CommandInfo, CommandStatus>(machine_, KillCommandRequest{.id = id}, options, command_info,
                                             Effect::possible);
}

Operation<FileReader> Operations::open_read(const std::string& path, const ReadOptions& options) const {
  return operation<FileReader>(begin(machine_, read_request(path, options), Effect::none, options.call),
                               options.call,
                               [options](auto& connection, const Frame& frame) -> std::optional<FileReader> {
                                 return reader_of(std::move(connection), options, frame);
                               });
}

Operation<std::string> Operations::read_file(const std::string& path, const ReadOptions& options) const {
  return Operation<std::string>(
      std::make_unique<ReadOperation>(open_read(path, options), FileCollector(path, options)));
}

FileWriter Operations::open_write(const std::string& path, const FileWriteOptions& options) const {
  return open_writer(folder_of(machine_), path, options, Sending::queues);
}

Operation<NoResult> Operations::write_file(const std::string& path, std::string bytes,
                                           const FileWriteOptions& options) const {
  auto sized = options;
  sized.size = bytes.size();
  auto connection = begin(machine_, write_request(path, sized), Effect::possible, options.call);
  connection->set_input(std::move(bytes));
  return operation<NoResult>(std::move(connection), options.call,
                             [size = *sized.size](auto&, const Frame& frame) -> std::optional<NoResult> {
                               if (frame.header.type != FrameType::reply) return std::nullopt;
                               check_written(frame.payload, size);
                               return NoResult{};
                             });
}

Operation<FileStat> Operations::stat(const std::string& path, const CallOptions& options) const {
  return ask_for<FileStat, FileStatus>(machine_, StatRequest{.path = path}, options, file_stat);
}
Operation<FileStat> Operations::lstat(const std::string& path, const CallOptions& options) const {
  return ask_for<FileStat, FileStatus>(machine_, StatRequest{.path = path, .links = Links::keep}, options,
                                       file_stat);
}
Operation<bool> Operations::exists(const std::string& path, const CallOptions& options) const {
  return ask_for<bool, ExistsReply>(machine_, ExistsRequest{.path = path}, options,
                                    [](const ExistsReply& reply) { return reply.exists; });
}
Operation<std::string> Operations::realpath(const std::string& path, const CallOptions& options) const {
  return ask_for<std::string, RealPathReply>(machine_, RealPathRequest{.path = path}, options,
                                             [](RealPathReply reply) { return std::move(reply.path); });
}
Operation<std::vector<DirEntry>> Operations::list(const std::string& path, const CallOptions& options) const {
  return operation<std::vector<DirEntry>>(
      begin(machine_, ListRequest{.path = path}, Effect::none, options), options,
      [collector = DirectoryCollector(path)](auto&, const Frame& frame) mutable {
        return collector.take(frame);
      });
}
TreeWalk Operations::walk(const std::string& path, const WalkOptions& options) const {
  return walk_tree(folder_of(machine_), path, options, Sending::queues);
}
Operation<NoResult> Operations::set_attributes(const std::string& path, const FileAttributes& attributes,
                                               const AttributeOptions& options) const {
  return tell(machine_, attributes_request(path, attributes, options), options.call);
}
Operation<NoResult> Operations::make_dir(const std::string& path, const CallOptions& options) const {
  return tell(machine_, MakeDirRequest{.path = path}, options);
}
Operation<NoResult> Operations::remove_path(const std::string& path, RemoveKind kind,
                                            const CallOptions& options) const {
  return tell(machine_, RemoveRequest{.path = path, .recursive = kind == RemoveKind::tree}, options);
}
Operation<NoResult> Operations::rename(const std::string& from, const std::string& to,
                                       const CallOptions& options) const {
  return tell(machine_, RenameRequest{.from = from, .to = to}, options);
}
Operation<NoResult> Operations::ping(const CallOptions& options) const {
  auto call = options;
  if (!call.deadline) call.deadline = Deadline::after(std::chrono::seconds(5));
  return operation<NoResult>(begin(machine_, StatusRequest{}, Effect::none, call), call,
                             [](auto&, const Frame& frame) -> std::optional<NoResult> {
                               if (frame.header.type != FrameType::reply) return std::nullopt;
                               return NoResult{};
                             });
}

}  // namespace holt
