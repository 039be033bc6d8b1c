// Tools: functions of a program that a model may call.
//
//   struct Add { int a; int b; };
//   BOOST_DESCRIBE_STRUCT(Add, (), (a, b))
//   holt::Tool add = holt::tool("add", "Adds two numbers.", [](Add args) { return args.a + args.b; });
//   holt::Tool list = holt::tool("list", "Lists the workspace.",
//                                [](holt::RunContext& ctx) -> holt::Task<std::vector<std::string>> { ... });
//
// A function takes a described struct (its parameters) or nothing, `RunContext&` in front of it if wanted. It
// returns a value that becomes JSON, a ToolReturn, a ToolDenied, nothing, or a Task of these. A coroutine
// runs on the run's strand; a plain function on a thread of its own, so it may block, and it should look at
// ctx.cancellation() where it blocks long. Depends on base/, messages/, models/ and agent/schema.hpp.
#pragma once

#include "holt/agent/schema.hpp"
#include "holt/base/error.hpp"
#include "holt/base/task.hpp"
#include "holt/messages/content.hpp"
#include "holt/models/model.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace holt {

class RunContext;

using Seconds = std::chrono::duration<double>;

/// A tool's result with more than a value.
struct ToolReturn {
  Json return_value = nullptr;                        ///< what the model gets as the result
  std::optional<UserContent> content = std::nullopt;  ///< shown to the model behind all results of the round
  Json metadata = nullptr;                            ///< kept in the history, never sent
};

/// A tool's answer that the call was not allowed.
struct ToolDenied {
  std::string message = "Tool call denied.";
};

using ToolValue = std::variant<ToolReturn, ToolDenied>;

// What a tool throws to say more than a value. None of these ends the run by itself.

/// Asks the model for another try; counts against the tool's retries.
class ModelRetry : public Error {
 public:
  explicit ModelRetry(const std::string& message) : Error(ErrorCode::invalid_state, message) {}
};

/// Tells the model that the call failed for good; costs no retry.
class ToolFailed : public Error {
 public:
  explicit ToolFailed(const std::string& message) : Error(ErrorCode::invalid_state, message) {}
};

/// The call needs a person's approval first.
class ApprovalRequired : public Error {
 public:
  explicit ApprovalRequired(Json metadata = nullptr);
  const Json& metadata() const { return *metadata_; }

 private:
  std::shared_ptr<const Json> metadata_;
};

/// The call is carried out elsewhere; its result comes in a later run.
class CallDeferred : public Error {
 public:
  explicit CallDeferred(Json metadata = nullptr);
  const Json& metadata() const { return *metadata_; }

 private:
  std::shared_ptr<const Json> metadata_;
};

/// From a hook: take this as the tool's result and do not run it.
class SkipToolExecution : public Error {
 public:
  explicit SkipToolExecution(ToolValue result);
  const ToolValue& result() const { return *result_; }

 private:
  std::shared_ptr<const ToolValue> result_;
};

/// Validated arguments in, result out. Called on the run's strand; must not outlive the arguments.
using ToolFunction = std::function<Task<ToolValue>(RunContext&, Json arguments)>;
/// The definition to offer in this step, or nothing to hide the tool. Called before each model request.
using ToolPrepare = std::function<std::optional<ToolDefinition>(const RunContext&, ToolDefinition)>;
/// A look at valid arguments; throws ModelRetry to have them made anew.
using ToolArgumentsCheck = std::function<void(const RunContext&, const Json& arguments)>;

struct ToolOptions {
  std::optional<int> max_retries =
      std::nullopt;  ///< failed tries in a row before the run fails; none: the agent's
  std::optional<Seconds> timeout = std::nullopt;  ///< above 0; none: the agent's
  bool sequential = false;                        ///< runs alone: calls before it end first, later ones wait
  bool requires_approval = false;                 ///< every call waits for a person's approval
  std::optional<bool> strict = std::nullopt;  ///< the provider's strict schema mode; none: decided by schema
  Json metadata = nullptr;                    ///< of the definition; never sent
  std::optional<std::string> tool_kind = std::nullopt;  ///< recorded in calls and results
  ToolPrepare prepare = nullptr;
  ToolArgumentsCheck check_arguments = nullptr;
};

/// A tool: definition and function. A cheap copyable handle on an immutable object; thread-safe.
class Tool {
 public:
  /// A tool with a schema from elsewhere; `fn` gets the validated arguments. Throws UserError for an empty
  /// name, a schema that is no object, a timeout not above 0 or negative retries.
  static Tool from_schema(std::string name, std::string description, Json parameters_schema, ToolFunction fn,
                          ToolOptions options = {});

  const ToolDefinition& definition() const;
  const std::string& name() const { return definition().name; }
  const ToolOptions& options() const;
  /// Precondition: `arguments` fit the definition's schema.
  Task<ToolValue> call(RunContext& context, Json arguments) const;

 private:
  struct Data;
  explicit Tool(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

namespace detail {

template <class T>
struct TaskValue {
  using type = T;
  static constexpr bool is_task = false;
};
template <class T>
struct TaskValue<Task<T>> {
  using type = T;
  static constexpr bool is_task = true;
};

template <class... A>
struct ToolParameters;
template <>
struct ToolParameters<> {
  using arguments = void;
  static constexpr bool takes_context = false;
};
template <class A>
struct ToolParameters<A> {
  static constexpr bool takes_context = std::same_as<std::remove_cvref_t<A>, RunContext>;
  using arguments = std::conditional_t<takes_context, void, std::remove_cvref_t<A>>;
};
template <class C, class A>
struct ToolParameters<C, A> {
  static_assert(std::same_as<std::remove_cvref_t<C>, RunContext>,
                "a tool takes one described struct, with RunContext& in front of it if wanted");
  static constexpr bool takes_context = true;
  using arguments = std::remove_cvref_t<A>;
};

template <class Fn>
struct ToolSignature : ToolSignature<decltype(&Fn::operator())> {};
template <class R, class... A>
struct ToolSignature<R (*)(A...)> : ToolParameters<A...> {
  using result = R;
};
template <class R, class... A>
struct ToolSignature<R(A...)> : ToolSignature<R (*)(A...)> {};
template <class C, class R, class... A>
struct ToolSignature<R (C::*)(A...)> : ToolSignature<R (*)(A...)> {};
template <class C, class R, class... A>
struct ToolSignature<R (C::*)(A...) const> : ToolSignature<R (*)(A...)> {};
template <class C, class R, class... A>
struct ToolSignature<R (C::*)(A...) noexcept> : ToolSignature<R (*)(A...)> {};
template <class C, class R, class... A>
struct ToolSignature<R (C::*)(A...) const noexcept> : ToolSignature<R (*)(A...)> {};

template <class T>
ToolValue to_tool_value(T value) {
  if constexpr (std::same_as<T, ToolReturn> || std::same_as<T, ToolDenied> || std::same_as<T, ToolValue>) {
    return value;
  } else {
    return ToolReturn{.return_value = encode_json(value)};
  }
}

/// A copy of the context for a tool's own thread, with the token that ends the thread's work.
std::shared_ptr<RunContext> context_for_thread(const RunContext& context, const CancellationToken& token);
/// Arguments that the C++ type cannot hold (an integer too large) as a ModelRetry.
[[noreturn]] void throw_as_retry(const Error& error);

template <class Arguments>
Arguments decode_arguments(const Json& arguments) {
  try {
    return decode_json<Arguments>(arguments);
  } catch (const Error& e) {
    throw_as_retry(e);
  }
}

/// Decoded arguments; nothing for a tool without parameters.
template <class Arguments>
struct DecodedArguments {
  explicit DecodedArguments(const Json& arguments) : value(decode_arguments<Arguments>(arguments)) {}
  Arguments value;
};
template <>
struct DecodedArguments<void> {
  explicit DecodedArguments(const Json&) {}
};

template <class Fn, class Arguments>
decltype(auto) invoke_tool_function(Fn& fn, RunContext& context, DecodedArguments<Arguments>& arguments) {
  using Signature = ToolSignature<Fn>;
  if constexpr (std::is_void_v<Arguments>) {
    if constexpr (Signature::takes_context)
      return fn(context);
    else
      return fn();
  } else {
    if constexpr (Signature::takes_context)
      return fn(context, std::move(arguments.value));
    else
      return fn(std::move(arguments.value));
  }
}

// Free functions with the closure and the arguments in their frame: a coroutine that is a lambda's operator()
// refers to the lambda, and maybe to its parameters, until it ends.
template <class Fn>
Task<ToolValue> call_coroutine_tool(std::shared_ptr<Fn> fn, RunContext& context, Json arguments) {
  using Signature = ToolSignature<Fn>;
  using Value = typename TaskValue<typename Signature::result>::type;
  DecodedArguments<typename Signature::arguments> decoded(arguments);
  auto pending = invoke_tool_function(*fn, context, decoded);
  if constexpr (std::is_void_v<Value>) {
    co_await std::move(pending);
    ToolReturn nothing;
    co_return ToolValue(std::move(nothing));
  } else {
    Value value = co_await std::move(pending);
    co_return to_tool_value(std::move(value));
  }
}

template <class Fn>
Task<ToolValue> call_plain_tool(std::shared_ptr<Fn> fn, RunContext& context, Json arguments) {
  using Signature = ToolSignature<Fn>;
  DecodedArguments<typename Signature::arguments> decoded(arguments);
  auto work = [&](const CancellationToken& token) -> ToolValue {
    auto own = context_for_thread(context, token);
    if constexpr (std::is_void_v<typename Signature::result>) {
      invoke_tool_function(*fn, *own, decoded);
      return ToolReturn{};
    } else {
      return to_tool_value(invoke_tool_function(*fn, *own, decoded));
    }
  };
  auto pending = blocking(work);
  co_return co_await std::move(pending);
}

}  // namespace detail

/// A tool made of a function, see above. Throws as Tool::from_schema.
template <class Fn>
Tool tool(std::string name, std::string description, Fn fn, ToolOptions options = {}) {
  using Signature = detail::ToolSignature<Fn>;
  auto shared = std::make_shared<Fn>(std::move(fn));
  ToolFunction function;
  if constexpr (detail::TaskValue<typename Signature::result>::is_task) {
    function = [shared](RunContext& context, Json arguments) {
      return detail::call_coroutine_tool<Fn>(shared, context, std::move(arguments));
    };
  } else {
    function = [shared](RunContext& context, Json arguments) {
      return detail::call_plain_tool<Fn>(shared, context, std::move(arguments));
    };
  }
  return Tool::from_schema(std::move(name), std::move(description),
                           parameters_schema<typename Signature::arguments>(), std::move(function),
                           std::move(options));
}

}  // namespace holt
