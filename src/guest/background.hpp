// Commands that are found again: those without a stream, and those with a key, whose repeat must not start
// them anew. Their logs, and the streams that look at them. Loop thread only.
#pragma once

#include "guest/command.hpp"
#include "guest/command_log.hpp"
#include "guest/stream.hpp"
#include "holt/protocol/messages.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holt::guest {

class BackgroundCommands;

enum class CommandKind { background, foreground };

/// Somebody who wants to know when a background command has written or ended.
class CommandViewer : public StreamHandler {
 public:
  virtual void on_change() = 0;
};

/// One command, for as long as it is remembered.
class BackgroundCommand : public std::enable_shared_from_this<BackgroundCommand> {
 public:
  BackgroundCommand(BackgroundCommands& all, std::string id, CommandKind kind,
                    const protocol::StartCommandRequest& request);

  const std::string& id() const { return id_; }
  CommandKind kind() const { return kind_; }
  const std::string& key() const { return key_; }
  /// True for what this command was started with.
  bool is_of(CommandKind kind, const protocol::ExecRequest& request) const;
  bool has_ended() const { return result_ || failure_; }
  CommandLog& log() { return log_; }
  /// Set when it has ended.
  const std::optional<protocol::ExecReply>& result() const { return result_; }
  /// Why it could not be started at all, or that it was cancelled.
  const std::optional<Failure>& failure() const { return failure_; }
  pid_t pid() const { return pid_; }
  protocol::CommandStatus status() const;
  /// Nothing once no process of it is left.
  std::shared_ptr<Command> command() const { return command_.lock(); }
  void set_command(const std::shared_ptr<Command>& command) { command_ = command; }

  void add(CommandViewer& viewer) { viewers_.push_back(&viewer); }
  void remove(CommandViewer& viewer) { viewers_.remove(&viewer); }
  void tell_viewers();

  // Of its sink.
  void on_started(pid_t pid) { pid_ = pid; }
  void on_output(std::size_t stream, std::string_view bytes);
  void on_end(const protocol::ExecReply& reply);
  void on_failure(const Failure& failure);

 private:
  BackgroundCommands* all_;
  std::string id_;
  CommandKind kind_;
  std::string key_;
  std::size_t fingerprint_ = 0;
  std::vector<std::string> argv_;
  bool terminal_ = false;
  std::int64_t started_at_ns_ = 0;
  pid_t pid_ = 0;
  CommandLog log_;
  std::optional<protocol::ExecReply> result_;
  std::optional<Failure> failure_;
  std::weak_ptr<Command> command_;
  std::list<CommandViewer*> viewers_;
};

/// All of a machine's life, within bounds: the oldest that have ended are forgotten, and logs give way when
/// they take too much memory together.
class BackgroundCommands {
 public:
  BackgroundCommands();

  /// A new command, and what it will be known by. Refuses with LIMIT_EXCEEDED.
  Outcome<std::shared_ptr<BackgroundCommand>> add(CommandKind kind,
                                                  const protocol::StartCommandRequest& request);
  static std::unique_ptr<CommandSink> sink_of(std::shared_ptr<BackgroundCommand> command);
  /// For one that was never started.
  void forget(const BackgroundCommand& command);
  /// NOT_FOUND for an id of another life, or one forgotten.
  Outcome<std::shared_ptr<BackgroundCommand>> find(const std::string& id) const;
  /// The command that this request, or one like it, has started by its key; nothing for a key that is new.
  /// CONFLICT when the key was another command's, or when what became of its command is no longer kept.
  Outcome<std::shared_ptr<BackgroundCommand>> find_key(CommandKind kind,
                                                       const protocol::ExecRequest& request) const;
  /// Those in the background.
  protocol::CommandsReply list() const;

  /// The handler of a stream, which on_change() sets going once it is the stream's.
  static std::shared_ptr<CommandViewer> attach(std::shared_ptr<BackgroundCommand> command,
                                               const protocol::AttachCommandRequest& request, Outlet outlet);
  static std::shared_ptr<CommandViewer> wait_for_end(std::shared_ptr<BackgroundCommand> command,
                                                     Outlet outlet);
  /// For a caller of the command itself: its `cancel` is for the command.
  static std::shared_ptr<CommandViewer> repeat(std::shared_ptr<BackgroundCommand> command, Outlet outlet);
  /// The channel takes data again.
  void on_drained();

 private:
  friend class BackgroundCommand;
  void keep_within_memory();
  void make_room();

  std::size_t most_memory_;
  std::list<std::shared_ptr<BackgroundCommand>> commands_;  // oldest first
  std::deque<std::string> forgotten_keys_;                  // oldest first
};

}  // namespace holt::guest
