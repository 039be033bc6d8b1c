// Schemas of C++ types, and values from and to JSON.
#include "holt/agent/schema.hpp"

#include "holt/agent/tool.hpp"
#include "support/fixtures.hpp"

#include <gtest/gtest.h>

namespace holt::test {
namespace {

struct Replacement {
  std::string old_text;
  std::string new_text;
};
BOOST_DESCRIBE_STRUCT(Replacement, (), (old_text, new_text))
void describe(Schema<Replacement>& schema) {
  schema.text("One exact replacement.");
}

struct EditFile {
  std::string path;
  std::optional<std::string> old_text;
  std::optional<std::vector<Replacement>> replacements;
};
BOOST_DESCRIBE_STRUCT(EditFile, (), (path, old_text, replacements))
void describe(Schema<EditFile>& schema) {
  schema.field(&EditFile::path).text("File to edit.");
}

enum class Mode { foreground, background };
BOOST_DESCRIBE_ENUM(Mode, foreground, background)

struct Everything {
  Mode mode = Mode::foreground;
  bool flag = false;
  double ratio = 0;
  std::map<std::string, int> counts;
  std::variant<int, std::string> either;
  Json anything;
  std::optional<int> maybe;
};
BOOST_DESCRIBE_STRUCT(Everything, (), (mode, flag, ratio, counts, either, anything, maybe))
void describe(Schema<Everything>& schema) {
  schema.field(&Everything::mode).default_value(Mode::background);
  schema.field(&Everything::ratio).above(0).at_most(1);
  schema.field(&Everything::maybe).at_least(3);
}

struct Tree {
  int value = 0;
  std::vector<Tree> children;
};
BOOST_DESCRIBE_STRUCT(Tree, (), (value, children))

Json parsed(const char* text) {
  return *parse_json(text);
}

void expect_json(const Json& actual, const char* expected) {
  EXPECT_TRUE(json_equal(actual, parsed(expected))) << dump_json(actual, {.indent = 1});
}

TEST(Schema, ParametersAreThoseOfTheStruct) {
  expect_json(parameters_schema<EditFile>(), R"({
    "$defs": {"Replacement": {"description": "One exact replacement.", "properties": {"old_text": {"type": "string"},
      "new_text": {"type": "string"}}, "required": ["old_text", "new_text"], "title": "Replacement", "type": "object"}},
    "additionalProperties": false,
    "properties": {
      "path": {"description": "File to edit.", "type": "string"},
      "old_text": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null},
      "replacements": {"anyOf": [{"items": {"$ref": "#/$defs/Replacement"}, "type": "array"}, {"type": "null"}],
        "default": null}},
    "required": ["path"], "type": "object"})");
  expect_json(parameters_schema<void>(),
              R"({"additionalProperties": false, "properties": {}, "type": "object"})");
}

TEST(Schema, EveryKindOfFieldHasOne) {
  expect_json(parameters_schema<Everything>(), R"({
    "additionalProperties": false,
    "properties": {
      "mode": {"enum": ["foreground", "background"], "type": "string", "default": "background"},
      "flag": {"type": "boolean"},
      "ratio": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
      "counts": {"additionalProperties": {"type": "integer"}, "type": "object"},
      "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
      "anything": {},
      "maybe": {"anyOf": [{"type": "integer", "minimum": 3}, {"type": "null"}], "default": null}},
    "required": ["flag", "ratio", "counts", "either", "anything"], "type": "object"})");
}

TEST(Schema, AStructMayHoldItself) {
  Json schema = parameters_schema<Tree>();
  expect_json(schema["properties"]["children"], R"({"items": {"$ref": "#/$defs/Tree"}, "type": "array"})");
  expect_json(schema["$defs"]["Tree"]["properties"]["children"],
              R"({"items": {"$ref": "#/$defs/Tree"}, "type": "array"})");
}

TEST(Schema, ValuesComeBackFromJson) {
  Everything value;
  value.mode = Mode::background;
  value.counts = {{"a", 1}};
  value.either = "text";
  value.anything = parsed(R"({"k": [1]})");
  value.maybe = 5;
  auto again = decode_json<Everything>(encode_json(value));
  EXPECT_EQ(again.mode, Mode::background);
  EXPECT_EQ(again.counts, value.counts);
  EXPECT_EQ(again.either, value.either);
  EXPECT_EQ(again.anything, value.anything);
  EXPECT_EQ(again.maybe, 5);
}

TEST(Schema, WhatDoesNotFitIsAnError) {
  EXPECT_THROW(decode_json<int>(Json(1LL << 40)), Error);
  EXPECT_THROW(decode_json<unsigned>(Json(-1)), Error);
  EXPECT_THROW(decode_json<int>(json_big_integer("99999999999999999999")), Error);
  EXPECT_THROW(decode_json<Mode>(Json("sideways")), Error);
  EXPECT_THROW(decode_json<std::vector<int>>(Json("x")), Error);
  EXPECT_EQ(decode_json<double>(json_big_integer("100000000000000000000")), 1e20);
}

}  // namespace
}  // namespace holt::test
