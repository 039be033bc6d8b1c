#include "holt/agent/validation.hpp"

#include "support/fixtures.hpp"

#include <random>

#include <gtest/gtest.h>

namespace holt {
namespace {

Json parsed(std::string_view text) {
  auto value = parse_json(text);
  if (!value) throw std::runtime_error(std::string(text) + ": " + value.error().text());
  return *value;
}

/// The converted value, or the error items behind "errors: ".
std::string outcome(std::string_view schema, std::string_view value, const ValidationOptions& options = {}) {
  auto result = validate_value(parsed(schema), parsed(value), options);
  return result ? dump_json(*result) : "errors: " + dump_json(error_items_to_json(result.error()));
}

/// "TYPE LOC" of each error item.
std::string problems(std::string_view schema, std::string_view value) {
  auto result = validate_value(parsed(schema), parsed(value));
  if (result) return "accepted " + dump_json(*result);
  std::string out;
  for (const auto& item : result.error())
    out += (out.empty() ? "" : "; ") + item.type + " " + dump_json(item.loc);
  return out;
}

TEST(Validation, EveryRecordedRowGivesTheRecordedItems) {
  test::Tally tally("validation rows");
  Json table = test::read_fixture(test::fixtures_directory() / "misc/validation_errors.json");
  for (const Json& row : table["cases"]) {
    const Json& schema = table["tools"][row["tool"].get<std::string>()];
    ValidationOptions options;
    if (schema.contains("title")) options.only_argument = "p";
    const Json& arguments = row["arguments"];
    Validated result = arguments.is_string() ? validate_json(schema, arguments.get<std::string>(), options)
                                             : validate_value(schema, arguments, options);
    Json errors = result ? Json(nullptr) : error_items_to_json(result.error());
    bool passed = json_equal(errors, row["errors"]);
    EXPECT_TRUE(passed) << dump_json(row) << "\n" << dump_json(errors);
    tally.count(passed);
  }
  EXPECT_GT(tally.passed(), 0U);
}

constexpr std::string_view k_tool =
    R"({"type":"object","additionalProperties":false,"required":["path"],"properties":{"path":{"type":"string"},)"
    R"("line":{"default":1,"type":"integer"},"flag":{"default":false,"type":"boolean"}}})";

TEST(Validation, ConvertsLenientlyAndFillsInDefaults) {
  EXPECT_EQ(outcome(k_tool, R"({"flag":"true","line":"7","path":"x"})"),
            R"({"path":"x","line":7,"flag":true})");
  EXPECT_EQ(outcome(k_tool, R"({"path":"x","line":2.0})"), R"({"path":"x","line":2,"flag":false})");
}

TEST(Validation, EmptyArgumentsAreAnEmptyObject) {
  Json schema = parsed(R"({"type":"object","properties":{"a":{"type":"integer","default":3}}})");
  for (const Json& arguments : {Json(""), Json(nullptr), Json("{}"), Json::object()}) {
    auto result = validate_arguments(schema, arguments);
    ASSERT_TRUE(result);
    EXPECT_EQ(dump_json(*result), R"({"a":3})");
  }
  EXPECT_EQ(validate_arguments(schema, Json("{")).error()[0].type, "json_invalid");
}

TEST(Validation, TheOnlyArgumentIsTakenBareAndWrapped) {
  std::string_view schema =
      R"({"type":"object","title":"Inner","required":["x"],"properties":{"x":{"type":"integer"}}})";
  EXPECT_EQ(outcome(schema, R"({"p":{"x":1}})", {.only_argument = "p"}), R"({"x":1})");
  EXPECT_EQ(outcome(schema, R"({"x":1})", {.only_argument = "p"}), R"({"x":1})");
}

TEST(Validation, FieldErrorsComeBeforeUnknownFieldsAndRepeatedInputIsLeftOut) {
  EXPECT_EQ(problems(k_tool, R"({"b":1,"line":"x","a":2})"),
            R"(missing ["path"]; int_parsing ["line"]; extra_forbidden ["b"]; extra_forbidden ["a"])");
  std::string_view two = R"({"type":"object","required":["a","b"],"properties":{"a":{},"b":{}}})";
  EXPECT_EQ(outcome(two, "{}"),
            R"(errors: [{"type":"missing","loc":["a"],"msg":"Required, but missing","input":{}},)"
            R"({"type":"missing","loc":["b"],"msg":"Required, but missing"}])");
}

TEST(Validation, UnionsTakeTheBestFitAndNameTheirMembers) {
  std::string_view schema = R"({"anyOf":[{"type":"integer"},{"type":"string"}]})";
  EXPECT_EQ(outcome(schema, R"("7")"), R"("7")");
  EXPECT_EQ(outcome(schema, "7"), "7");
  EXPECT_EQ(outcome(schema, "7.0"), "7");
  std::string_view lists =
      R"({"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"object","additionalProperties":{"type":"integer"}},{"type":"null"}]})";
  EXPECT_EQ(problems(lists, "5"), R"(list_type ["list[str]"]; dict_type ["dict[str,int]"])");
  EXPECT_EQ(problems(lists, "null"), "accepted null");
  EXPECT_EQ(problems(R"({"type":["integer","null"]})", R"("x")"), "int_parsing []");
  std::string_view structs =
      R"({"$defs":{"A":{"type":"object","title":"A","required":["x"],"properties":{"x":{"type":"integer"}}},)"
      R"("B":{"type":"object","title":"B","required":["x","y"],"properties":{"x":{"type":"integer"},"y":{"type":"integer"}}}},)"
      R"("anyOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"}]})";
  EXPECT_EQ(outcome(structs, R"({"x":1,"y":2})"), R"({"x":1,"y":2})");
  EXPECT_EQ(outcome(structs, R"({"x":1})"), R"({"x":1})");
  EXPECT_EQ(problems(structs, R"({"y":1})"), R"(missing ["A","x"]; missing ["B","x"])");
}

TEST(Validation, TaggedUnionsFollowTheTag) {
  std::string_view schema =
      R"({"$defs":{"A":{"type":"object","properties":{"k":{"const":"a"},"x":{"type":"integer"}}}},)"
      R"("oneOf":[{"$ref":"#/$defs/A"}],"discriminator":{"propertyName":"k","mapping":{"a":"#/$defs/A"}}})";
  EXPECT_EQ(outcome(schema, R"({"k":"a","x":"1"})"), R"({"k":"a","x":1})");
  EXPECT_EQ(problems(schema, R"({"k":"a","x":"z"})"), R"(int_parsing ["a","x"])");
  EXPECT_EQ(problems(schema, R"({"k":"b"})"), "union_tag_invalid []");
  EXPECT_EQ(problems(schema, "{}"), "union_tag_not_found []");
}

TEST(Validation, LimitsAreChecked) {
  auto message = [](std::string_view schema, std::string_view value) {
    auto result = validate_value(parsed(schema), parsed(value));
    return result ? std::string("accepted") : result.error()[0].type + ": " + result.error()[0].msg;
  };
  EXPECT_EQ(message(R"({"type":"number","exclusiveMinimum":0.5})", "0.5"),
            "greater_than: Expected more than 0.5");
  EXPECT_EQ(message(R"({"type":"number","exclusiveMaximum":2.0})", "2"), "less_than: Expected less than 2");
  EXPECT_EQ(message(R"({"type":"integer","multipleOf":3})", "7"), "multiple_of: Expected a multiple of 3");
  EXPECT_EQ(message(R"({"type":"number","multipleOf":0.1})", "0.3"), "accepted");
  EXPECT_EQ(message(R"({"type":"integer","maximum":18446744073709551615})", "18446744073709551615"),
            "accepted");
  EXPECT_EQ(message(R"({"type":"integer","minimum":-5})", "18446744073709551615"), "accepted");
  EXPECT_EQ(message(R"({"type":"integer","maximum":10})", "123456789012345678901234567890"),
            "less_than_equal: Expected 10 or less");
  EXPECT_EQ(message(R"({"type":"array","minItems":2})", "[1]"), "too_short: Expected 2 or more items, not 1");
  EXPECT_EQ(message(R"({"type":"array","maxItems":1})", "[1,2]"),
            "too_long: Expected 1 or fewer items, not 2");
  EXPECT_EQ(message(R"({"type":"string","maxLength":2})", "\"\xc3\xbc\xc3\xbc\""), "accepted");
  EXPECT_EQ(message(R"({"type":"string","pattern":"^.{2}$"})", "\"\xc3\xbc\xc3\xbc\""), "accepted");
  EXPECT_EQ(message(R"({"enum":["a",1,true]})", "1.0"), "accepted");
  EXPECT_EQ(message(R"({"enum":["a",1]})", "true"), "literal_error: Expected 'a' or 1");
}

TEST(Validation, UnknownFieldsAreIgnoredByStructsAndKeptByMaps) {
  EXPECT_EQ(outcome(R"({"type":"object","properties":{"a":{}}})", R"({"b":1,"a":2})"), R"({"a":2})");
  EXPECT_EQ(outcome(R"({"type":"object"})", R"({"b":1})"), R"({"b":1})");
  EXPECT_EQ(outcome(R"({"type":"object","properties":{"a":{}},"additionalProperties":{"type":"integer"}})",
                    R"({"b":"1","a":2})"),
            R"({"a":2,"b":1})");
}

TEST(Validation, BrokenAndForeignSchemasAreNoCondition) {
  for (std::string_view schema : {R"({})", R"(true)", R"({"$ref":"#/nowhere"})", R"({"$ref":"#"})",
                                  R"({"$ref":"http://x/"})", R"({"type":"hologram"})", R"({"type":7})",
                                  R"({"anyOf":[]})", R"({"type":"string","pattern":"(("})"}) {
    EXPECT_EQ(outcome(schema, R"("x")"), R"("x")") << schema;
  }
}

TEST(Validation, WorkAndErrorsAreBounded) {
  // Two members that both look at the same child: work doubles with each level.
  Json schema = parsed(
      R"({"$defs":{"A":{"type":"object","properties":{"c":{"anyOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"}]}}},)"
      R"("B":{"type":"object","properties":{"c":{"anyOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"}]}}}},"$ref":"#/$defs/A"})");
  Json value = "x";
  for (int i = 0; i < 150; ++i) {
    Json outer = Json::object();
    outer["c"] = std::move(value);
    value = std::move(outer);
  }
  EXPECT_FALSE(validate_value(schema, value));
  Json many = Json::array();
  for (int i = 0; i < 20'000; ++i) many.push_back("x");
  auto result = validate_value(parsed(R"({"type":"array","items":{"type":"integer"}})"), many);
  EXPECT_EQ(result.error().size(), 1000U);
  std::string text(200'000, 'a');
  Json regex = parsed(R"({"type":"string","pattern":"^(a|b|ab)*c$"})");
  EXPECT_FALSE(validate_value(regex, text));
  EXPECT_FALSE(validate_value(parsed(R"({"type":"string","pattern":"(a*)*(a*)*(a*)*c"})"), text));
}

TEST(Validation, RandomValuesNeverBreakIt) {
  Json table = test::read_fixture(test::fixtures_directory() / "misc/validation_errors.json");
  std::mt19937 random(5);
  std::vector<std::string> pieces = {"{",        "}",         "[",     "]",        ",",     ":",
                                     "\"path\"", "\"items\"", "\"d\"", "\"mode\"", "\"a\"", "1",
                                     "2.5",      "null",      "true",  "NaN",      "1e400", "\"7\""};
  for (int round = 0; round < 20'000; ++round) {
    std::string text = "{";
    for (std::size_t n = random() % 12; n > 0; --n) text += pieces[random() % pieces.size()];
    for (const auto& [name, schema] : table["tools"].items()) {
      auto result = validate_arguments(schema, Json(text));
      if (result) EXPECT_TRUE(validate_value(schema, *result)) << dump_json(*result);
    }
  }
}

}  // namespace
}  // namespace holt
