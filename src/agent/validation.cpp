#include "holt/agent/validation.hpp"

#include "agent/validator.hpp"
#include "holt/messages/tool_result_text.hpp"

namespace holt {

Validated validate_value(const Json& schema, const Json& value, const ValidationOptions& options) {
  const Json* subject = &value;
  if (options.only_argument && value.is_object() && value.size() == 1) {
    if (auto wrapped = value.find(*options.only_argument); wrapped != value.end()) subject = &*wrapped;
  }
  detail::Outcome outcome = detail::Validator(schema).run(*subject);
  if (!outcome.ok()) return std::unexpected(std::move(outcome.errors));
  return std::move(outcome.value);
}

Validated validate_json(const Json& schema, std::string_view text, const ValidationOptions& options) {
  auto value = parse_json(text);
  if (value) return validate_value(schema, *value, options);
  return std::unexpected(std::vector<ErrorItem>{
      {.type = "json_invalid", .msg = "Not JSON: " + value.error().text(), .input = std::string(text)}});
}

Validated validate_arguments(const Json& schema, const Json& arguments, const ValidationOptions& options) {
  bool empty =
      arguments.is_null() || (arguments.is_string() && arguments.get_ref<const std::string&>().empty());
  if (empty) return validate_value(schema, Json::object(), options);
  if (arguments.is_string()) return validate_json(schema, arguments.get_ref<const std::string&>(), options);
  return validate_value(schema, arguments, options);
}

Json error_items_to_json(const std::vector<ErrorItem>& items) {
  Json list = Json::array();
  for (const ErrorItem& item : items) {
    Json each = Json::object();
    each["type"] = item.type;
    each["loc"] = item.loc;
    each["msg"] = item.msg;
    each["input"] = item.input;
    list.push_back(std::move(each));
  }
  return without_repeated_inputs(std::move(list));
}

}  // namespace holt
