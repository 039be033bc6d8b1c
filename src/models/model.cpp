#include "holt/models/model.hpp"

namespace holt {

ModelSettings merge_settings(ModelSettings earlier, const ModelSettings& later) {
  if (!earlier.is_object()) earlier = Json::object();
  if (later.is_object()) earlier.update(later);
  return earlier;
}

ModelRequestParameters Model::resolve(ModelRequestParameters parameters, const ModelSettings&) const {
  if (parameters.output_mode != OutputMode::automatic) return parameters;
  auto mode = profile().text("default_structured_output_mode", "tool");
  if (mode == "native") {
    parameters.output_mode = OutputMode::native;
    parameters.output_tools.clear();
  } else if (mode == "prompted") {
    parameters.output_mode = OutputMode::prompted;
    parameters.output_tools.clear();
  } else {
    parameters.output_mode = OutputMode::tool;
    parameters.allow_text_output = false;
  }
  return parameters;
}

}  // namespace holt
