// Where a command's output and its end go. Loop thread only.
#pragma once

#include "guest/outcome.hpp"
#include "holt/protocol/frame.hpp"
#include "holt/protocol/messages.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace holt::guest {

class CommandSink {
 public:
  virtual ~CommandSink() = default;
  /// The program runs.
  virtual void started(pid_t pid) = 0;
  /// Bytes that output() takes now; 0 holds the command's output up until Command::on_drained().
  virtual std::size_t room() const = 0;
  /// `type` is output or error_output; at most room() bytes.
  virtual void output(protocol::FrameType type, std::string_view bytes) = 0;
  /// So many bytes of a piece of input have been dealt with.
  virtual void input_taken(std::size_t bytes) = 0;
  /// One of these is the last call.
  virtual void ended(const protocol::ExecReply& reply) = 0;
  virtual void failed(const Failure& failure) = 0;
};

}  // namespace holt::guest
