// How a run's output types are offered to a model and recognised in its answers.
#pragma once

#include "holt/agent/output.hpp"
#include "holt/agent/validation.hpp"
#include "holt/models/model.hpp"

#include <expected>
#include <optional>
#include <string>
#include <vector>

namespace holt::detail {

/// Made once a run from its OutputSpec; immutable.
class OutputPlan {
 public:
  explicit OutputPlan(OutputSpec spec);

  /// In order of the spec's choices; empty where no output tool is ever offered.
  const std::vector<ToolDefinition>& tools() const { return tools_; }
  const std::optional<OutputObjectDefinition>& object() const { return object_; }
  OutputMode mode() const { return mode_; }
  /// Text is an output: plain, or JSON of a type.
  bool allows_text() const { return spec_.text || takes_json_text(); }
  bool plain_text() const { return spec_.text; }
  bool takes_json_text() const;
  bool allows_null() const { return spec_.null; }
  std::optional<std::size_t> choice_of_tool(const std::string& name) const;
  const OutputSpec& spec() const { return spec_; }

  /// A value, or error items.
  using Checked = std::expected<RawOutput, Json>;
  /// Arguments of an output tool as they arrived.
  Checked check_arguments(std::size_t choice, const Json& arguments) const;
  /// Text that should be JSON, a fence around it stripped.
  Checked check_text(const std::string& text) const;

 private:
  Checked take(std::size_t choice, Validated validated) const;
  void make_tools();
  void make_object();
  Json wrapped_schema(const OutputChoice& choice) const;
  OutputSpec spec_;
  OutputMode mode_ = OutputMode::text;
  std::vector<ToolDefinition> tools_;
  std::optional<OutputObjectDefinition> object_;
};

/// `text` without a Markdown fence around an object.
std::string strip_fence(const std::string& text);

}  // namespace holt::detail
