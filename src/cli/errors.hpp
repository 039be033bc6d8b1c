// How an error is shown: a sentence and a hint for people, one JSON object for programs.
#pragma once

#include "cli/outcome.hpp"
#include "cli/output.hpp"
#include "holt/base/error.hpp"

#include <string>
#include <string_view>

namespace holt::cli {

enum class ErrorStyle { text, json };

/// A mistake in the command line or in a file that it names (exit code 2).
Error usage_error(const std::string& message, const std::string& hint = {});
/// The same for a file that a flag names and that cannot be used: the kind of `cause`, in front of its
/// sentence the flag, and `hint` where the cause has none.
CodedError file_error(std::string_view flag, const Error& cause, const std::string& hint = {});
/// Something that this version refuses and a later one has.
Error later_error(const std::string& what);

/// {"error":{"code","message","machine","hint","retryable","cause"}}
Json error_json(const Error& error);
/// Text: "holt: MESSAGE" and "holt: hint: HINT" on standard error. JSON: the object as the last line of
/// standard error, on standard output too when nothing has been printed there.
void show_error(Output& output, const Error& error, ErrorStyle style);

}  // namespace holt::cli
