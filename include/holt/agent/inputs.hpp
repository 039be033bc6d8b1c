// The small things that a program hands to an agent: prompts, instructions, settings, dependencies, the
// choice of a model and of a workspace. Each converts from what one would write.
//
//   AgentOptions{.instructions = {"Be brief.", [](const RunContext& ctx) { return ctx.deps<User>().name; }},
//                .model_settings = Json{{"max_tokens", 500}}}
//
// Plain values. Depends on base/, messages/, models/ and workspace/.
#pragma once

#include "holt/base/json.hpp"
#include "holt/base/task.hpp"
#include "holt/messages/content.hpp"
#include "holt/models/model.hpp"
#include "holt/workspace/workspace.hpp"

#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <variant>
#include <vector>

namespace holt {

class RunContext;

/// What the user says: one text, a list of items, or nothing.
class Prompt {
 public:
  Prompt() = default;
  Prompt(const char* text) : content_(UserContent(std::string(text))) {}
  Prompt(std::string text) : content_(UserContent(std::move(text))) {}
  Prompt(std::vector<UserContentItem> items) : content_(UserContent(std::move(items))) {}
  Prompt(UserContent content) : content_(std::move(content)) {}
  const std::optional<UserContent>& content() const { return content_; }

 private:
  std::optional<UserContent> content_;
};

/// A text for the model that a function makes when it is needed; an empty optional adds nothing.
using TextFunction = std::function<Task<std::optional<std::string>>(const RunContext&)>;

namespace detail {
template <class R>
struct TextResult : std::false_type {};
template <class R>
  requires std::convertible_to<R, std::optional<std::string>>
struct TextResult<R> : std::true_type {
  static constexpr bool is_task = false;
};
template <class R>
struct TextResult<Task<R>> : std::true_type {
  static constexpr bool is_task = true;
};

template <class Fn>
decltype(auto) call_text_function(Fn& fn, const RunContext& context) {
  if constexpr (std::invocable<Fn&, const RunContext&>)
    return fn(context);
  else
    return fn();
}
template <class Fn>
using TextFunctionResult =
    decltype(call_text_function(std::declval<Fn&>(), std::declval<const RunContext&>()));

template <class Fn>
concept TextCallable =
    !std::convertible_to<Fn, std::string> && (std::invocable<Fn&, const RunContext&> || std::invocable<Fn&>);

template <class Fn>
Task<std::optional<std::string>> text_of(std::shared_ptr<Fn> fn, const RunContext& context) {
  if constexpr (TextResult<TextFunctionResult<Fn>>::is_task) {
    auto pending = call_text_function(*fn, context);
    co_return co_await std::move(pending);
  } else {
    co_return std::optional<std::string>(call_text_function(*fn, context));
  }
}
template <class Fn>
TextFunction text_function(Fn fn) {
  auto shared = std::make_shared<Fn>(std::move(fn));
  return [shared](const RunContext& context) { return text_of<Fn>(shared, context); };
}
}  // namespace detail

/// An instruction: a text, or a function of nothing or `const RunContext&` that gives a text, an optional
/// text or a Task of these. Made anew for every request.
class Instruction {
 public:
  Instruction(const char* text) : text_(text) {}
  Instruction(std::string text) : text_(std::move(text)) {}
  template <detail::TextCallable Fn>
  Instruction(Fn fn, std::optional<std::string> id = std::nullopt)
      : function_(detail::text_function(std::move(fn))), id_(std::move(id)) {}

  bool dynamic() const { return static_cast<bool>(function_); }
  const std::string& text() const { return text_; }
  const TextFunction& function() const { return function_; }
  /// A name for a dynamic one, e.g. "capability:repo_context".
  const std::optional<std::string>& id() const { return id_; }

 private:
  std::string text_;
  TextFunction function_;
  std::optional<std::string> id_;
};

/// None, one, or a list.
class Instructions {
 public:
  Instructions() = default;
  Instructions(const char* text) : items_{Instruction(text)} {}
  Instructions(std::string text) : items_{Instruction(std::move(text))} {}
  Instructions(Instruction one) : items_{std::move(one)} {}
  Instructions(std::initializer_list<Instruction> items) : items_(items) {}
  Instructions(std::vector<Instruction> items) : items_(std::move(items)) {}
  template <detail::TextCallable Fn>
  Instructions(Fn fn) : items_{Instruction(std::move(fn))} {}
  const std::vector<Instruction>& items() const { return items_; }
  void add(Instruction instruction) { items_.push_back(std::move(instruction)); }

 private:
  std::vector<Instruction> items_;
};

/// A system prompt: a text, or a function. A dynamic one has a name and is evaluated again in later runs.
class SystemPrompt {
 public:
  SystemPrompt(const char* text) : text_(text) {}
  SystemPrompt(std::string text) : text_(std::move(text)) {}
  template <detail::TextCallable Fn>
  SystemPrompt(Fn fn) : function_(detail::text_function(std::move(fn))) {}
  /// A function whose parts are found again by `name` and refreshed in every run of the conversation.
  template <detail::TextCallable Fn>
  static SystemPrompt dynamic(std::string name, Fn fn) {
    SystemPrompt prompt(std::move(fn));
    prompt.dynamic_ref_ = std::move(name);
    return prompt;
  }
  const std::string& text() const { return text_; }
  const TextFunction& function() const { return function_; }
  const std::optional<std::string>& dynamic_ref() const { return dynamic_ref_; }

 private:
  std::string text_;
  TextFunction function_;
  std::optional<std::string> dynamic_ref_;
};

/// Model settings: an object, or a function that sees the settings merged before it through
/// RunContext::model_settings() and gives those to add.
class SettingsSource {
 public:
  SettingsSource() = default;
  SettingsSource(Json settings) : settings_(std::move(settings)) {}
  template <class Fn>
    requires(std::invocable<Fn&, const RunContext&> && !std::same_as<std::remove_cvref_t<Fn>, Json>)
  SettingsSource(Fn fn) : function_(std::move(fn)) {}

  const Json& settings() const { return settings_; }
  const std::function<Json(const RunContext&)>& function() const { return function_; }
  bool empty() const { return !function_ && settings_.empty(); }

 private:
  Json settings_ = Json::object();
  std::function<Json(const RunContext&)> function_;
};

/// An object of the program that tools see as ctx.deps<T>(): a value that is copied, a std::shared_ptr, or
/// std::ref of one that outlives the run.
class Deps {
 public:
  Deps() = default;
  template <class T>
    requires(!std::same_as<std::remove_cvref_t<T>, Deps>)
  Deps(T&& value) {
    set(std::forward<T>(value));
  }
  const std::shared_ptr<void>& object() const { return object_; }
  std::type_index type() const { return type_; }

 private:
  template <class T>
  void set(std::shared_ptr<T> object) {
    type_ = typeid(T);
    object_ = std::const_pointer_cast<std::remove_const_t<T>>(std::move(object));
  }
  template <class T>
  void set(std::reference_wrapper<T> object) {
    type_ = typeid(T);
    object_ = std::shared_ptr<void>(std::shared_ptr<void>(), &object.get());
  }
  template <class T>
  void set(T&& value) {
    using Value = std::remove_cvref_t<T>;
    type_ = typeid(Value);
    object_ = std::make_shared<Value>(std::forward<T>(value));
  }
  std::shared_ptr<void> object_;
  std::type_index type_ = typeid(void);
};

/// A model: its id ("anthropic:claude-sonnet-4-5", "test"), an object, or none.
class ModelChoice {
 public:
  ModelChoice() = default;
  ModelChoice(const char* id) : id_(id) {}
  ModelChoice(std::string id) : id_(std::move(id)) {}
  ModelChoice(ModelPtr model) : model_(std::move(model)) {}
  template <std::derived_from<Model> M>
  ModelChoice(std::shared_ptr<M> model) : model_(std::move(model)) {}

  bool empty() const { return !model_ && !id_; }
  /// The object, made from the id where there is none. Throws UserError as make_model().
  ModelPtr resolve() const;

 private:
  std::optional<std::string> id_;
  ModelPtr model_;
};

/// Asks for an environment of its own, whatever the history names.
struct NewWorkspace {};
inline constexpr NewWorkspace new_workspace{};

/// Which workspace a run gets: none named (the history's, else a fresh one), a new one, one by ref, or this
/// backend.
class WorkspaceChoice {
 public:
  WorkspaceChoice() = default;
  WorkspaceChoice(NewWorkspace) : choice_(NewWorkspace{}) {}
  WorkspaceChoice(WorkspaceRef ref) : choice_(std::move(ref)) {}
  WorkspaceChoice(Workspace workspace) : choice_(std::move(workspace)) {}
  template <std::derived_from<WorkspaceBackend> B>
  WorkspaceChoice(std::shared_ptr<B> backend) : choice_(Workspace(WorkspaceBackendPtr(std::move(backend)))) {}

  const std::variant<std::monostate, NewWorkspace, WorkspaceRef, Workspace>& value() const { return choice_; }

 private:
  std::variant<std::monostate, NewWorkspace, WorkspaceRef, Workspace> choice_;
};

/// How often a model may try again: calls of one tool, and outputs.
struct Retries {
  int tools = 1;
  int output = 1;
  Retries() = default;
  Retries(int both) : tools(both), output(both) {}
  Retries(int tool_retries, int output_retries) : tools(tool_retries), output(output_retries) {}
};

}  // namespace holt
