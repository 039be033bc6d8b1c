// Errors of holt's public interface: one set of codes, one exception type under which all others stand.
//
//   try {
//     auto machine = holt::Machine::connect("dev");
//   } catch (const holt::Error& e) {
//     if (e.code() == holt::ErrorCode::not_found) ...
//     std::cerr << e.what() << "\n" << e.hint() << "\n";
//   }
//
// Depends on the standard library only.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holt {

/// Stable, machine-readable kinds of failure. The words printed for them are in docs/reference.md.
enum class ErrorCode {
  usage,
  not_found,
  conflict,
  invalid_state,
  invalid_config,
  not_supported,
  kvm_unavailable,
  hypervisor_unavailable,
  unsupported_platform,
  runtime_not_installed,
  timeout,
  cancelled,
  storage_full,
  storage_error,
  permission_denied,
  is_directory,
  not_a_directory,
  not_regular,
  too_large,
  image_invalid,
  digest_mismatch,
  limit_exceeded,
  unauthorized,
  network_error,
  blocked,
  guest_protocol,
  guest_lost,
  outcome_unknown,
  internal,
};

/// The published word of a code, e.g. "NOT_FOUND".
std::string_view to_string(ErrorCode code);

/// The code of a published word; nothing for an unknown word.
std::optional<ErrorCode> error_code_from(std::string_view word);

/// What an error carries beside its code and sentence. All optional.
struct ErrorDetails {
  std::string subject = {};              ///< name of the machine, image or file that the error concerns
  std::string hint = {};                 ///< what the user can do, one sentence
  bool retryable = false;                ///< true when nothing was done and the same call may succeed later
  std::vector<std::string> causes = {};  ///< sentences of the errors below this one, outermost first
};

/// What a layer adds to an error that it passes on, e.g. the messages of the run that failed. The layer that
/// adds it knows the type.
class ErrorContext {
 public:
  virtual ~ErrorContext() = default;
};

/// Base of everything holt throws. what() is one sentence: what was tried, on what, why it failed.
/// Never holds a secret, the value of an environment variable or a stack trace.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message, ErrorDetails details = {});

  ErrorCode code() const { return code_; }
  const std::string& subject() const { return details_.subject; }
  const std::string& hint() const { return details_.hint; }
  bool retryable() const { return details_.retryable; }
  const std::vector<std::string>& causes() const { return details_.causes; }
  const std::shared_ptr<const ErrorContext>& context() const { return context_; }
  /// Gives this error, while it is being passed on, its context.
  void attach(std::shared_ptr<const ErrorContext> context) { context_ = std::move(context); }

 private:
  ErrorCode code_;
  ErrorDetails details_;
  std::shared_ptr<const ErrorContext> context_;
};

/// The program is set up wrongly: no such capability, unsupported operation, ambiguous choice.
class UserError : public Error {
 public:
  explicit UserError(const std::string& message) : Error(ErrorCode::invalid_config, message) {}
};

/// An argument outside what the call documents (Python's TypeError and ValueError).
class InvalidArgument : public Error {
 public:
  explicit InvalidArgument(const std::string& message) : Error(ErrorCode::invalid_config, message) {}
};

/// An error of the operating system, by errno: "ACTION: strerror". ENOSPC becomes storage_full, ENOENT
/// not_found, EACCES and EPERM permission_denied, EISDIR is_directory, ENOTDIR not_a_directory, EEXIST
/// conflict, everything else storage_error.
Error system_error(int error_number, const std::string& action, std::string subject = {});

/// The code that system_error() gives an errno.
ErrorCode error_code_of_errno(int error_number);

/// Foreign text made fit to be shown: control bytes and invalid UTF-8 escaped as \xNN, cut at `limit` bytes.
/// For messages and logs that quote a guest, a server or a file.
std::string printable(std::string_view text, std::size_t limit = 4096);

}  // namespace holt
