#include "holt/base/json.hpp"

#include "holt/base/lenient.hpp"
#include "support/fixtures.hpp"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace holt {
namespace {

std::string error_of(std::string_view text) {
  auto value = parse_json(text);
  return value ? "accepted: " + dump_json(*value) : value.error().text();
}

std::string rewritten(std::string_view text) {
  auto value = parse_json(text);
  return value ? dump_json(*value) : "refused: " + value.error().text();
}

TEST(Json, WritesFloatsWithTheShortestDigitsThatRoundTrip) {
  EXPECT_EQ(json_number(1.0), "1.0");
  EXPECT_EQ(json_number(0.1), "0.1");
  EXPECT_EQ(json_number(-0.0), "-0.0");
  EXPECT_EQ(json_number(1e22), "1e+22");
  EXPECT_EQ(json_number(1e-7), "1e-7");
  EXPECT_EQ(json_number(1e-6), "1e-6");
  EXPECT_EQ(json_number(0.00001), "0.00001");
  EXPECT_EQ(json_number(0.000012345), "0.000012345");
  EXPECT_EQ(json_number(1e15), "1000000000000000.0");
  EXPECT_EQ(json_number(1e16), "1e+16");
  EXPECT_EQ(json_number(123456789012345680.0), "1.2345678901234568e+17");
  EXPECT_EQ(json_number(1234.5), "1234.5");
  EXPECT_EQ(json_number(5e-324), "5e-324");
  EXPECT_EQ(json_number(std::nan("")), "null");
  EXPECT_EQ(json_number(-std::numeric_limits<double>::infinity()), "null");
}

TEST(Json, KeepsIntegersOfAnySizeExactly) {
  for (const char* text : {"0", "-1", "9223372036854775807", "9223372036854775808", "18446744073709551615",
                           "18446744073709551616", "-9223372036854775808", "-9223372036854775809",
                           "123456789012345678901234567890"}) {
    EXPECT_EQ(rewritten(text), text);
  }
  EXPECT_EQ(rewritten("-0"), "0");
  std::string digits(4300, '9');
  EXPECT_EQ(rewritten(digits), digits);
  EXPECT_EQ(error_of(digits + "9"), "number too large (line 1, column 4301)");
}

TEST(Json, ReadsWhatIsNoNumberInJsonAsNull) {
  for (const char* text : {"NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e99999999999999999999"}) {
    EXPECT_EQ(rewritten(text), "null") << text;
  }
  EXPECT_EQ(rewritten("1e-400"), "0.0");
  EXPECT_EQ(rewritten("-1e-99999999999999999999"), "-0.0");
  EXPECT_EQ(rewritten("0." + std::string(400, '0') + "1e401"), "1.0");
}

TEST(Json, EscapesOnlyWhatMustBeEscaped) {
  Json value = std::string("\"\\/\b\f\n\r\t\x01\x1f\x7f<>&\xe2\x80\xa8\xc3\xbc\xf0\x9f\x98\x80");
  EXPECT_EQ(dump_json(value),
            "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f<>&\xe2\x80\xa8\xc3\xbc\xf0\x9f\x98\x80\"");
  EXPECT_EQ(dump_json("\xc3\xbc\xf0\x9f\x98\x80", {.ascii_only = true}), R"("\u00fc\ud83d\ude00")");
  EXPECT_EQ(dump_json("a\xff\xc3"), "\"a\xef\xbf\xbd\xef\xbf\xbd\"");
}

TEST(Json, WritesSpacedAndPrettyForms) {
  Json value = Json::parse(R"({"a":[1,{}],"b":[]})");
  EXPECT_EQ(dump_json(value, {.spaces = true}), R"({"a": [1, {}], "b": []})");
  EXPECT_EQ(dump_json(value, {.indent = 2}), "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
}

TEST(Json, LastOfEqualKeysCountsAtThePlaceOfTheFirst) {
  EXPECT_EQ(rewritten(R"({"a":1,"b":2,"a":3})"), R"({"a":3,"b":2})");
  std::string many = "{";
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 40; ++i) many += "\"k" + std::to_string(i) + "\":" + std::to_string(round) + ",";
  }
  many.back() = '}';
  auto value = parse_json(many);
  ASSERT_TRUE(value);
  EXPECT_EQ(value->size(), 40U);
  EXPECT_EQ(value->begin().key(), "k0");
  EXPECT_EQ((*value)["k39"], 1);
}

TEST(Json, ManyKeysTakeLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += "\"key" + std::to_string(i) + "\":1,";
  text.back() = '}';
  auto value = parse_json(text);
  ASSERT_TRUE(value);
  EXPECT_EQ(value->size(), 200'000U);
  EXPECT_TRUE(json_equal(*value, *value));
}

TEST(Json, RefusesNestingOverTwoHundredAndOneValues) {
  std::string open(201, '[');
  std::string close(201, ']');
  EXPECT_EQ(rewritten(open + close), open + close);
  EXPECT_EQ(error_of("[" + open + close + "]"), "nested too deeply (line 1, column 202)");
  EXPECT_EQ(error_of(std::string(1'000'000, '[')), "nested too deeply (line 1, column 202)");
  std::string objects;
  for (int i = 0; i < 300; ++i) objects += "{\"a\":";
  EXPECT_EQ(error_of(objects), "nested too deeply (line 1, column 1006)");
}

struct Refusal {
  const char* text;
  const char* error;
};
class JsonRefusal : public testing::TestWithParam<Refusal> {};
TEST_P(JsonRefusal, SaysReasonAndPlace) {
  EXPECT_EQ(error_of(GetParam().text), GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(
    All, JsonRefusal,
    testing::Values(Refusal{"", "ends where a value should be (line 1, column 0)"},
                    Refusal{" \n ", "ends where a value should be (line 2, column 1)"},
                    Refusal{"{", "ends inside an object (line 1, column 1)"},
                    Refusal{"{\"a\"", "ends inside an object (line 1, column 4)"},
                    Refusal{"{\"a\":", "ends where a value should be (line 1, column 5)"},
                    Refusal{"{\"path\": \"x\"", "ends inside an object (line 1, column 12)"},
                    Refusal{"{\"path\": \"x\",}", "comma with nothing behind it (line 1, column 14)"},
                    Refusal{"{\"a\":1,", "ends where a value should be (line 1, column 7)"},
                    Refusal{"{\"a\" 1}", "no `:` here (line 1, column 6)"},
                    Refusal{"{\"a\":1 \"b\"}", "no `,` or `}` here (line 1, column 8)"},
                    Refusal{"{1:2}", "a key that is no string (line 1, column 2)"},
                    Refusal{"{\"a\":1,2}", "a key that is no string (line 1, column 8)"},
                    Refusal{"[", "ends inside a list (line 1, column 1)"},
                    Refusal{"[1", "ends inside a list (line 1, column 2)"},
                    Refusal{"[1,", "ends where a value should be (line 1, column 3)"},
                    Refusal{"[1,]", "comma with nothing behind it (line 1, column 4)"},
                    Refusal{"[1 2]", "no `,` or `]` here (line 1, column 4)"},
                    Refusal{"[,]", "no value here (line 1, column 2)"},
                    Refusal{"?", "no value here (line 1, column 1)"},
                    Refusal{"\xef\xbb\xbf{}", "no value here (line 1, column 1)"},
                    Refusal{"trux", "no known word here (line 1, column 4)"},
                    Refusal{"tru", "ends where a value should be (line 1, column 3)"},
                    Refusal{"nothing", "no known word here (line 1, column 2)"},
                    Refusal{"-Inf", "ends where a value should be (line 1, column 4)"},
                    Refusal{"1 1", "text behind the value (line 1, column 3)"},
                    Refusal{"{}\n\n x", "text behind the value (line 3, column 2)"},
                    Refusal{"01", "malformed number (line 1, column 2)"},
                    Refusal{"-", "ends where a value should be (line 1, column 1)"},
                    Refusal{"-x", "malformed number (line 1, column 2)"},
                    Refusal{"1.x", "malformed number (line 1, column 3)"},
                    Refusal{"1.", "ends where a value should be (line 1, column 2)"},
                    Refusal{"1e+", "ends where a value should be (line 1, column 3)"},
                    Refusal{"1e+x", "malformed number (line 1, column 4)"},
                    Refusal{"\"a", "ends inside a string (line 1, column 2)"},
                    Refusal{"\"a\\", "ends inside a string (line 1, column 3)"},
                    Refusal{"\"\\x\"", "unknown escape (line 1, column 3)"},
                    Refusal{"\"\\u12\"", "ends inside a string (line 1, column 6)"},
                    Refusal{"\"\\u12g4\"", "unknown escape (line 1, column 6)"},
                    Refusal{"\"\\ud800\"", "cut hex escape (line 1, column 8)"},
                    Refusal{"\"\\ud800\\n\"", "cut hex escape (line 1, column 9)"},
                    Refusal{"\"\\udc00\"", "unpaired surrogate (line 1, column 7)"},
                    Refusal{"\"\\ud800\\ud800\"", "unpaired surrogate (line 1, column 13)"},
                    Refusal{"\"a\tb\"", "bare control character in a string (line 1, column 3)"},
                    Refusal{"\"a\xff\"", "a string that is not UTF-8 (line 1, column 1)"}));

TEST(Json, AcceptsNulAndSurrogatePairs) {
  EXPECT_EQ(rewritten("\"\\u0000\\ud83d\\ude00\""), "\"\\u0000\xf0\x9f\x98\x80\"");
}

TEST(Json, AnIntegerIsReadOnlyWhereItFits) {
  auto byte = [](const char* text) { return json_integer<std::int8_t>(*parse_json(text)); };
  EXPECT_EQ(byte("127"), 127);
  EXPECT_EQ(byte("-128"), -128);
  for (const char* text : {"128", "-129", "1.0", "1e400", "NaN", "true", "\"1\"", "null",
                           "18446744073709551615", "123456789012345678901234567890"}) {
    EXPECT_EQ(byte(text), std::nullopt) << text;
  }
  EXPECT_EQ(json_integer<std::uint64_t>(*parse_json("18446744073709551615")), UINT64_MAX);
  EXPECT_EQ(json_integer<std::int64_t>(*parse_json("18446744073709551615")), std::nullopt);
  EXPECT_EQ(json_integer<std::uint64_t>(*parse_json("-1")), std::nullopt);
}

TEST(Json, TheWholePartOfAFloatIsReadOnlyWhereItFits) {
  auto whole = [](const char* text) { return json_whole_part(*parse_json(text)); };
  EXPECT_EQ(whole("2.9"), 2);
  EXPECT_EQ(whole("-2.9"), -2);
  EXPECT_EQ(whole("7"), 7);
  EXPECT_EQ(whole("-9223372036854775808.0"), INT64_MIN);
  for (const char* text : {"9223372036854775808.0", "1e400", "-1e400", "NaN", "\"1\""}) {
    EXPECT_EQ(whole(text), std::nullopt) << text;
  }
}

TEST(Json, EqualityIgnoresKeyOrderAndTellsOneFromTrue) {
  auto equal = [](const char* a, const char* b) { return json_equal(*parse_json(a), *parse_json(b)); };
  EXPECT_TRUE(equal(R"({"a":1,"b":[2.0]})", R"({"b":[2],"a":1.0})"));
  EXPECT_FALSE(equal("1", "true"));
  EXPECT_FALSE(equal("1", "\"1\""));
  EXPECT_FALSE(equal("9007199254740993", "9007199254740992.0"));
  EXPECT_TRUE(equal("10000000000000000000000", "1e22"));
  EXPECT_TRUE(equal("NaN", "NaN"));
  EXPECT_FALSE(equal("[1]", "[1,1]"));
  EXPECT_FALSE(equal("18446744073709551615", "-1"));
}

/// Random values of every type, with texts that need escapes.
class RandomJson {
 public:
  explicit RandomJson(unsigned seed) : random_(seed) {}

  Json value(int depth) {
    switch (below(depth > 0 ? 9 : 7)) {
      case 0:
        return nullptr;
      case 1:
        return below(2) == 0;
      case 2:
        return static_cast<std::int64_t>(random_());
      case 3:
        return random_();
      case 4:
        return json_big_integer(std::string(below(2) == 0 ? "-" : "") + "99999999" +
                                std::to_string(random_()) + "00000000000");
      case 5:
        return number();
      case 6:
        return text();
      case 7: {
        Json list = Json::array();
        for (std::size_t n = below(5); n > 0; --n) list.push_back(value(depth - 1));
        return list;
      }
      default: {
        Json object = Json::object();
        for (std::size_t n = below(5); n > 0; --n) object[text()] = value(depth - 1);
        return object;
      }
    }
  }

  std::size_t below(std::size_t n) { return random_() % n; }

 private:
  double number() {
    double value = 0;
    do {
      std::uint64_t bits = random_();
      std::memcpy(&value, &bits, sizeof value);
    } while (!std::isfinite(value));
    return below(2) == 0 ? value : static_cast<double>(below(1'000'000)) / 1000;
  }
  std::string text() {
    static const std::vector<std::string> k_pieces = {
        "a", "\"", "\\", "\n", "\x01", std::string(1, '\0'), "\xc3\xbc", "\xf0\x9f\x98\x80", "/", "key"};
    std::string out;
    for (std::size_t n = below(6); n > 0; --n) out += k_pieces[below(k_pieces.size())];
    return out;
  }
  std::mt19937_64 random_;
};

TEST(Json, EveryValueIsReadBackAsItWasWritten) {
  RandomJson random(7);
  for (int round = 0; round < 5000; ++round) {
    Json value = random.value(5);
    for (JsonStyle style :
         {JsonStyle{}, JsonStyle{.spaces = true}, JsonStyle{.ascii_only = true}, JsonStyle{.indent = 3}}) {
      std::string text = dump_json(value, style);
      auto again = parse_json(text);
      ASSERT_TRUE(again) << text << ": " << again.error().text();
      ASSERT_TRUE(json_equal(*again, value)) << text;
      ASSERT_EQ(dump_json(*again, style), text);
    }
  }
}

TEST(Json, NoPrefixAndNoDamageOfATextMakesTheReaderFail) {
  RandomJson random(11);
  std::vector<std::string> texts = {
      "[1.5e-3,true,false,null,NaN,-Infinity,\"\\ud83d\\ude00\\u00e9\\n\",{\"a\":{}}]"};
  for (const auto& path : test::fixture_files("misc")) texts.push_back(read_file(path, 1 << 24));
  for (auto& text : texts) {
    for (std::size_t end = 0; end < std::min<std::size_t>(text.size(), 2000); ++end) {
      auto value = parse_json(std::string_view(text).substr(0, end));
      if (!value) EXPECT_LE(value.error().column, end + 1);
    }
    std::string head = text.substr(0, 4000);
    for (int round = 0; round < 2000; ++round) {
      std::string damaged = head;
      for (std::size_t n = random.below(4) + 1; n > 0; --n) {
        damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
      }
      if (auto value = parse_json(damaged)) EXPECT_TRUE(parse_json(dump_json(*value)));
    }
  }
}

TEST(Lenient, IntegersComeFromWhatMeansOne) {
  auto text = [](const Json& value) {
    auto integer = lenient_integer(value);
    return integer ? dump_json(*integer) : std::string("no");
  };
  EXPECT_EQ(text("7"), "7");
  EXPECT_EQ(text(" +07 "), "7");
  EXPECT_EQ(text("-0"), "0");
  EXPECT_EQ(text("1_000"), "1000");
  EXPECT_EQ(text("7.00"), "7");
  EXPECT_EQ(text("123456789012345678901234567890"), "123456789012345678901234567890");
  EXPECT_EQ(text(1.0), "1");
  EXPECT_EQ(text(1e22), "10000000000000000000000");
  EXPECT_EQ(text(-0.0), "0");
  EXPECT_EQ(text(true), "1");
  for (const char* bad : {"", " ", "x", "1.5", "1.", ".0", "1__0", "_1", "1e3", "--1", "0x1", "\xd9\xa1"}) {
    EXPECT_EQ(lenient_integer(bad).error(), LenientProblem::not_parsable) << bad;
  }
  EXPECT_EQ(lenient_integer(1.5).error(), LenientProblem::has_fraction);
  EXPECT_EQ(lenient_integer(std::nan("")).error(), LenientProblem::not_finite);
  EXPECT_EQ(lenient_integer(std::string(4301, '1')).error(), LenientProblem::too_large);
  EXPECT_EQ(lenient_integer(nullptr).error(), LenientProblem::wrong_type);
}

TEST(Lenient, FloatsAndBooleansComeFromWhatMeansOne) {
  EXPECT_EQ(lenient_float("1e5"), 1e5);
  EXPECT_EQ(lenient_float(" -.5 "), -0.5);
  EXPECT_EQ(lenient_float(3), 3.0);
  EXPECT_EQ(lenient_float("-inf"), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(lenient_float("NaN").value_or(0)));
  for (const char* bad : {"", "x", "+-1", "--1", "1e", "0x10", "infinit", "1 2"}) {
    EXPECT_EQ(lenient_float(bad).error(), LenientProblem::not_parsable) << bad;
  }
  EXPECT_EQ(lenient_float(Json::array()).error(), LenientProblem::wrong_type);
  EXPECT_EQ(lenient_boolean("YES"), true);
  EXPECT_EQ(lenient_boolean("off"), false);
  EXPECT_EQ(lenient_boolean(1.0), true);
  EXPECT_EQ(lenient_boolean(2).error(), LenientProblem::not_parsable);
  EXPECT_EQ(lenient_boolean("maybe").error(), LenientProblem::not_parsable);
  EXPECT_EQ(lenient_boolean(nullptr).error(), LenientProblem::wrong_type);
}

}  // namespace
}  // namespace holt
