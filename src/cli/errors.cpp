#include "cli/errors.hpp"

#include <fmt/format.h>

namespace holt::cli {

Error usage_error(const std::string& message, const std::string& hint) {
  return Error(ErrorCode::usage, message, {.hint = hint});
}

CodedError file_error(std::string_view flag, const Error& cause, const std::string& hint) {
  return CodedError(Error(cause.code(), fmt::format("{}: {}", flag, cause.what()),
                          {.subject = cause.subject(), .hint = cause.hint().empty() ? hint : cause.hint()}),
                    k_exit_usage);
}

Error later_error(const std::string& what) {
  return Error(ErrorCode::not_supported, what + " comes with a later version of holt",
               {.hint = "This version refuses it instead of leaving it out silently."});
}

Json error_json(const Error& error) {
  Json body = Json::object();
  body["code"] = to_string(error.code());
  body["message"] = error.what();
  body["machine"] = error.subject().empty() ? Json(nullptr) : Json(error.subject());
  body["hint"] = error.hint().empty() ? Json(nullptr) : Json(error.hint());
  body["retryable"] = error.retryable();
  body["cause"] = error.causes();
  return Json{{"error", std::move(body)}};
}

void show_error(Output& output, const Error& error, ErrorStyle style) {
  if (style == ErrorStyle::json) {
    auto text = dump_json(error_json(error)) + "\n";
    if (!output.printed()) {
      try {
        output.out(text);
      } catch (const Error&) {  // the copy on standard error still says it
      } catch (const BrokenPipe&) {
      }
    }
    output.err(text);
    return;
  }
  output.note(printable(error.what()));
  for (const auto& cause : error.causes()) output.note("because: " + printable(cause));
  if (!error.hint().empty()) output.note("hint: " + printable(error.hint()));
}

}  // namespace holt::cli
