// What operations on a workspace throw, beside UserError (the program is set up wrongly) and InvalidArgument
// (a relative path, an empty command, a timeout of zero).
//
//   try {
//     co_await workspace.read_text("notes.md");
//   } catch (const holt::PathError& e) {
//     if (e.kind() == holt::PathErrorKind::not_found) ...
//   }
//
// Errors of a provider that may pass (a machine that is starting elsewhere) are none of these: they come
// through as they are. Depends on base/ only.
#pragma once

#include "holt/base/error.hpp"

#include <cstddef>
#include <string>

namespace holt {

/// The workspace refuses or fails an operation on purpose.
class WorkspaceError : public Error {
 public:
  explicit WorkspaceError(const std::string& message, ErrorCode code = ErrorCode::invalid_state)
      : Error(code, message) {}
};

/// The environment is gone or unusable for good: deleted, not on this host, ended during a command.
class WorkspaceUnavailableError : public WorkspaceError {
 public:
  explicit WorkspaceUnavailableError(const std::string& message, ErrorCode code = ErrorCode::not_found)
      : WorkspaceError(message, code) {}
};

/// A command ran longer than its timeout. `out` and `err` hold what it wrote until then.
class WorkspaceTimeoutError : public WorkspaceError {
 public:
  explicit WorkspaceTimeoutError(const std::string& message, std::string out = {}, std::string err = {})
      : WorkspaceError(message, ErrorCode::timeout), out_(std::move(out)), err_(std::move(err)) {}
  const std::string& out() const { return out_; }
  const std::string& err() const { return err_; }

 private:
  std::string out_;
  std::string err_;
};

/// A command wrote more than the workspace keeps. `out` and `err` hold the beginnings, 64 KiB each at most.
class WorkspaceOutputLimitError : public WorkspaceError {
 public:
  WorkspaceOutputLimitError(std::size_t limit, std::string out, std::string err);
  std::size_t limit() const { return limit_; }  ///< bytes over both outputs
  const std::string& out() const { return out_; }
  const std::string& err() const { return err_; }

 private:
  std::size_t limit_;
  std::string out_;
  std::string err_;
};

/// A read-only workspace refused a change or a command.
class WorkspaceReadOnlyError : public WorkspaceError {
 public:
  explicit WorkspaceReadOnlyError(const std::string& message)
      : WorkspaceError(message, ErrorCode::permission_denied) {}
};

/// Why a path could not be used.
enum class PathErrorKind {
  not_found,
  not_a_directory,
  is_a_directory,
  exists,
  permission,
  not_regular,  ///< a FIFO, socket or device; has no errno
  other,        ///< errno says what
};

/// A failure at one path (Python's FileNotFoundError and its kin, and the bare OSError).
class PathError : public Error {
 public:
  /// The kind follows from `error_number`.
  PathError(int error_number, std::string path);
  /// Of the kind; its usual errno.
  PathError(PathErrorKind kind, std::string path);

  PathErrorKind kind() const { return kind_; }
  const std::string& path() const { return path_; }   ///< absolute, of the workspace
  int error_number() const { return error_number_; }  ///< 0 when there is none
  /// The system's words for the errno, as strerror(3); "not a regular file" without one.
  std::string reason() const;

 private:
  PathErrorKind kind_;
  std::string path_;
  int error_number_;
};

}  // namespace holt
