#include "holt/messages/values.hpp"

#include "holt/base/error.hpp"
#include "holt/messages/content.hpp"
#include "messages/decimal.hpp"
#include "messages/duration.hpp"

#include <gtest/gtest.h>

namespace holt {
namespace {

std::string rewritten(const Json& value) {
  auto timestamp = parse_timestamp(value);
  return timestamp ? to_string(*timestamp) : "refused";
}

TEST(TimestampText, KeepsOffsetAndMicroseconds) {
  for (const char* text :
       {"2026-01-02T03:04:05.125000Z", "2026-01-02T03:04:05Z", "2024-02-29T23:59:59.000001+05:30",
        "0001-01-01T00:00:00", "9999-12-31T23:59:59.999999-12:45", "1969-12-31T23:59:59.999999Z"}) {
    EXPECT_EQ(rewritten(text), text);
  }
}

TEST(TimestampText, IsReadInEveryFormOfTheReference) {
  EXPECT_EQ(rewritten("2024-01-02"), "2024-01-02T00:00:00");
  EXPECT_EQ(rewritten("2024-01-02 03:04"), "2024-01-02T03:04:00");
  EXPECT_EQ(rewritten("2024-01-02t03:04:05.12z"), "2024-01-02T03:04:05.120000Z");
  EXPECT_EQ(rewritten("2024-01-02T03:04:05.123456789+0100"), "2024-01-02T03:04:05.123456+01:00");
  EXPECT_EQ(rewritten("2024-01-02T03:04:05+00:00"), "2024-01-02T03:04:05Z");
  EXPECT_EQ(rewritten(1704164645), "2024-01-02T03:04:05Z");
  EXPECT_EQ(rewritten(1704164645.25), "2024-01-02T03:04:05.250000Z");
  EXPECT_EQ(rewritten(1704164645125), "2024-01-02T03:04:05.125000Z");
  EXPECT_EQ(rewritten("1704164645125"), "2024-01-02T03:04:05.125000Z");
  EXPECT_EQ(rewritten("1704164645.5"), "2024-01-02T03:04:05.500000Z");
  EXPECT_EQ(rewritten("20240102"), "1970-08-23T06:15:02Z");
  EXPECT_EQ(rewritten(-1), "1969-12-31T23:59:59Z");
  EXPECT_EQ(rewritten(20'000'000'000), "2603-10-11T11:33:20Z");
  EXPECT_EQ(rewritten(20'000'000'001), "1970-08-20T11:33:20.001000Z");
}

TEST(TimestampText, RefusesWhatIsNone) {
  for (const char* text : {"",
                           "x",
                           "2024-13-01",
                           "2023-02-29",
                           "2024-1-2",
                           "0000-01-01",
                           "2024-01-02T",
                           "2024-01-02T24:00",
                           "2024-01-02T03:04:60",
                           "2024-01-02T03",
                           "2024-01-02T03:04:05.",
                           "2024-01-02T03:04:05+01",
                           "2024-01-02T03:04:05 Z",
                           "2024-01-02T03:04:05+24:00",
                           "2024-01-02T03:04:05Zx",
                           "2024-01-02T-1:04",
                           "1-2",
                           "99999999999999999999",
                           "1.2.3",
                           "-"}) {
    EXPECT_EQ(rewritten(text), "refused") << text;
  }
  EXPECT_EQ(rewritten(1e300), "refused");
  EXPECT_EQ(rewritten(9'007'199'254'740'993), "refused");
  EXPECT_EQ(rewritten(18446744073709551615U), "refused");
  EXPECT_EQ(rewritten(nullptr), "refused");
  EXPECT_EQ(rewritten(true), "refused");
}

TEST(DecimalText, PrintsAsPython) {
  EXPECT_EQ(canonical_decimal("0.0012"), "0.0012");
  EXPECT_EQ(canonical_decimal("1e-9"), "1E-9");
  EXPECT_EQ(canonical_decimal("0.000001"), "0.000001");
  EXPECT_EQ(canonical_decimal("0.0000001"), "1E-7");
  EXPECT_EQ(canonical_decimal("1.20E+3"), "1.20E+3");
  EXPECT_EQ(canonical_decimal("-007.50"), "-7.50");
  EXPECT_EQ(canonical_decimal("0e5"), "0E+5");
  EXPECT_EQ(canonical_decimal(".5"), "0.5");
  for (const char* bad : {"", "x", "1e", "1e99999999999999999999", "NaN", "Infinity", "1.2.3", "1 ", "--1"}) {
    EXPECT_EQ(canonical_decimal(bad), std::nullopt) << bad;
  }
}

TEST(DecimalText, AddsExactly) {
  EXPECT_EQ(add_decimals("0.1", "0.2"), "0.3");
  EXPECT_EQ(add_decimals("9.99", "0.01"), "10.00");
  EXPECT_EQ(add_decimals("1", "-1.5"), "-0.5");
  EXPECT_EQ(add_decimals("-2", "2"), "0");
  EXPECT_EQ(add_decimals("1E+999999", "1"), std::nullopt);
}

TEST(DurationText, IsIso8601) {
  EXPECT_EQ(iso_duration(1'500'000), "PT1.5S");
  EXPECT_EQ(iso_duration(0), "PT0S");
  EXPECT_EQ(iso_duration(-61'000'000), "-PT1M1S");
  EXPECT_EQ(iso_duration(90'061'000'001), "P1DT1H1M1.000001S");
  EXPECT_EQ(iso_duration(86'400'000'000), "P1D");
  EXPECT_EQ(parse_duration("PT1.5S"), 1'500'000);
  EXPECT_EQ(parse_duration("P1DT2H"), 93'600'000'000);
  EXPECT_EQ(parse_duration("-PT1M"), -60'000'000);
  EXPECT_EQ(parse_duration(0.25), 250'000);
  EXPECT_EQ(parse_duration("2"), 2'000'000);
  for (const char* bad :
       {"", "P", "PT", "P1", "PT1", "1S", "PT1S1H", "PTS", "PT-1S", "P1H", "PT1D", "PT1e3S"}) {
    EXPECT_EQ(parse_duration(bad), std::nullopt) << bad;
  }
}

TEST(Usage, AddsFiguresDetailsAndCosts) {
  RequestUsage sum = usage_from_json({{"input_tokens", 1}, {"details", {{"a", 1}}}, {"cost", "0.10"}});
  sum.add(usage_from_json({{"input_tokens", 2},
                           {"output_tokens", 3},
                           {"details", {{"a", 2}, {"b", 5}}},
                           {"cost", 0.05},
                           {"z", 1}}));
  EXPECT_EQ(sum.input_tokens, 3);
  EXPECT_EQ(sum.total_tokens(), 6);
  EXPECT_EQ(dump_json(sum.details), R"({"a":3,"b":5})");
  EXPECT_EQ(sum.cost, "0.15");
  EXPECT_TRUE(sum.extra.empty());
}

TEST(Usage, SumsStopAtTheLargestNumber) {
  RequestUsage usage = usage_from_json({{"input_tokens", INT64_MAX}, {"details", {{"a", INT64_MAX}}}});
  usage.add(usage);
  EXPECT_EQ(usage.input_tokens, INT64_MAX);
  EXPECT_EQ(usage.details["a"], INT64_MAX);
  usage.output_tokens = 1;
  EXPECT_EQ(usage.total_tokens(), INT64_MAX);
}

TEST(Usage, RefusesNullAndNonsense) {
  EXPECT_THROW(usage_from_json(nullptr), Error);
  EXPECT_THROW(usage_from_json({{"input_tokens", nullptr}}), Error);
  EXPECT_THROW(usage_from_json({{"input_tokens", 1.5}}), Error);
  EXPECT_THROW(usage_from_json({{"cost", "free"}}), Error);
  EXPECT_THROW(usage_from_json(*parse_json(R"({"cost":NaN})")), Error);
  EXPECT_THROW(usage_from_json({{"input_tokens", 18446744073709551615U}}), Error);
}

TEST(MediaType, IsGuessedByTheExtension) {
  EXPECT_EQ(media_type_by_extension("a.PNG"), "image/png");
  EXPECT_EQ(media_type_by_extension("https://e.com/x/r.docx?v=1.png#a.gif"),
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document");
  EXPECT_EQ(media_type_by_extension("https://e.com?x=a.png"), std::nullopt);
  EXPECT_EQ(media_type_by_extension("dir.png/file"), std::nullopt);
  EXPECT_EQ(media_type_by_extension(".png"), std::nullopt);
  EXPECT_EQ(media_type_by_extension("clip.three_gp"), "video/3gpp");
  EXPECT_EQ(media_type_of(FileUrl{.kind = UrlKind::video, .url = "https://www.youtube.com/watch?v=1"}),
            "video/mp4");
  EXPECT_EQ(media_type_of(FileUrl{.kind = UrlKind::image, .url = "https://www.youtube.com/watch"}),
            std::nullopt);
  EXPECT_EQ(media_type_of(UploadedFile{.file_id = "file-1", .provider_name = "openai"}),
            "application/octet-stream");
}

}  // namespace
}  // namespace holt
