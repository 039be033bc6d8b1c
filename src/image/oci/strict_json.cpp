#include "image/oci/strict_json.hpp"

#include "holt/base/error.hpp"

#include <unordered_set>

#include <fmt/format.h>

namespace holt::image {
namespace {

/// Reads a text without keeping it and stops at the first thing that is wrong.
class Checker final : public nlohmann::json_sax<Json> {
 public:
  enum class Fault { none, syntax, duplicate, depth, values };
  Fault fault() const { return fault_; }
  const std::string& key_in_question() const { return duplicate_; }
  std::size_t failed_at() const { return failed_at_; }

  bool null() override { return count(); }
  bool boolean(bool) override { return count(); }
  bool number_integer(std::int64_t) override { return count(); }
  bool number_unsigned(std::uint64_t) override { return count(); }
  bool number_float(double, const std::string&) override { return count(); }
  bool string(std::string&) override { return count(); }
  bool binary(Json::binary_t&) override { return count(); }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    if (keys_.back().insert(name).second) return count();
    duplicate_ = name;
    return fail(Fault::duplicate);
  }
  bool parse_error(std::size_t byte, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*reason*/) override {
    failed_at_ = byte;
    return fail(Fault::syntax);
  }

 private:
  bool fail(Fault fault) {
    fault_ = fault;
    return false;
  }
  bool count() { return ++values_ <= k_document_values || fail(Fault::values); }
  bool open() {
    if (keys_.size() == k_document_depth) return fail(Fault::depth);
    keys_.emplace_back();
    return count();
  }
  bool close() {
    keys_.pop_back();
    return true;
  }

  Fault fault_ = Fault::none;
  std::size_t values_ = 0;
  std::size_t failed_at_ = 0;
  std::vector<std::unordered_set<std::string>> keys_;
  std::string duplicate_;
};

Error invalid(std::string_view what, std::string_view reason) {
  return {ErrorCode::image_invalid, fmt::format("read {}: {}", what, reason)};
}

Json parse_strict(std::string_view bytes, std::string_view what) {
  Checker checker;
  Json::sax_parse(bytes, &checker);
  switch (checker.fault()) {
    case Checker::Fault::depth:
      throw Error(ErrorCode::limit_exceeded,
                  fmt::format("read {}: it is nested deeper than {}", what, k_document_depth));
    case Checker::Fault::values:
      throw Error(ErrorCode::limit_exceeded,
                  fmt::format("read {}: it has more than {} values", what, k_document_values));
    case Checker::Fault::duplicate:
      throw invalid(what,
                    fmt::format("the key '{}' is there twice", printable(checker.key_in_question(), 100)));
    case Checker::Fault::syntax:
      // Not left to parse_json: it would read on where this stopped, and keep what nothing bounds.
      throw invalid(what, fmt::format("it is not JSON at byte {}", checker.failed_at()));
    case Checker::Fault::none:
      break;
  }
  auto value = parse_json(bytes);
  if (!value) throw invalid(what, "it is not JSON: " + value.error().text());
  return std::move(*value);
}

}  // namespace

Json parse_strict_object(std::string_view bytes, std::string_view what) {
  Json value = parse_strict(bytes, what);
  if (!value.is_object()) throw invalid(what, "it is not a JSON object");
  return value;
}

Json parse_strict_list(std::string_view bytes, std::string_view what) {
  Json value = parse_strict(bytes, what);
  if (!value.is_array()) throw invalid(what, "it is not a JSON list");
  return value;
}

const Json* Fields::find(const char* key) const {
  auto it = object_.find(key);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

const Json* Fields::find(const char* key, Json::value_t type, std::string_view wanted) const {
  const Json* value = find(key);
  if (value && value->type() != type) refuse(fmt::format("'{}' is not {}", key, wanted));
  return value;
}

const Json* Fields::object(const char* key) const {
  return find(key, Json::value_t::object, "an object");
}

const Json* Fields::list(const char* key) const {
  return find(key, Json::value_t::array, "a list");
}

std::string Fields::checked(const Json& value, const char* key) const {
  if (!value.is_string()) refuse(fmt::format("'{}' holds what is not a string", key));
  const auto& text = value.get_ref<const std::string&>();
  if (text.find('\0') != std::string::npos) refuse(fmt::format("'{}' holds a NUL", key));
  return text;
}

std::string Fields::string(const char* key) const {
  const Json* value = find(key, Json::value_t::string, "a string");
  return value ? checked(*value, key) : std::string();
}

std::vector<std::string> Fields::strings(const char* key) const {
  std::vector<std::string> all;
  const Json* values = list(key);
  if (!values) return all;
  for (const Json& value : *values) all.push_back(checked(value, key));
  return all;
}

std::uint64_t Fields::size(const char* key) const {
  const Json* value = find(key);
  if (!value) refuse(fmt::format("'{}' is missing", key));
  auto number = json_integer<std::int64_t>(*value);
  if (!number || *number < 0) refuse(fmt::format("'{}' is not a whole number from 0 to 2^63-1", key));
  return static_cast<std::uint64_t>(*number);
}

void Fields::refuse(const std::string& reason) const {
  throw invalid(what_, reason);
}

}  // namespace holt::image
