#include "models/sse.hpp"

#include "holt/base/error.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace holt {
namespace {

using Events = std::vector<std::pair<std::string, std::string>>;

Events parse(const std::vector<std::string_view>& pieces) {
  SseParser parser;
  Events events;
  for (auto piece : pieces) {
    parser.feed(piece, [&](const SseEvent& event) { events.emplace_back(event.event, event.data); });
  }
  return events;
}

TEST(SseParser, TakesEveryLineEndAndSkipsCommentsAndOtherFields) {
  const Events expected{{"a", "1\n2"}, {"", "x"}, {"b", "{}"}};
  for (std::string end : {"\n", "\r", "\r\n"}) {
    std::string text = "\xef\xbb\xbf: hi" + end + "event: a" + end + "data: 1" + end + "data:2" + end +
                       "id: 7" + end + "retry: 3" + end + end + "data: x" + end + end + "event: none" + end +
                       end + "event: b" + end + "data: {}" + end + end + "data: cut off";
    EXPECT_EQ(parse({text}), expected);
  }
}

TEST(SseParser, GivesTheSameEventsForEverySplit) {
  const std::string text =
      "\xef\xbb\xbf"
      "event: one\r\ndata: h\xc3\xa9llo \xf0\x9f\x98\x80\r\n\r\n:ping\n\ndata: a\rdata: b\r\rdata\n\n"
      "data:  two spaces\nevent\n\ndata: [DONE]\r\n\n";
  const auto whole = parse({text});
  ASSERT_EQ(whole.size(), 5U);
  EXPECT_EQ(whole[0].second, "h\xc3\xa9llo \xf0\x9f\x98\x80");
  EXPECT_EQ(whole[1].second, "a\nb");
  EXPECT_EQ(whole[2].second, "");
  EXPECT_EQ(whole[3].second, " two spaces");
  std::string_view view = text;
  for (std::size_t i = 0; i <= view.size(); ++i) {
    for (std::size_t j = i; j <= view.size(); ++j) {
      ASSERT_EQ(parse({view.substr(0, i), view.substr(i, j - i), view.substr(j)}), whole) << i << " " << j;
    }
  }
  std::vector<std::string_view> bytes;
  for (std::size_t i = 0; i < view.size(); ++i) bytes.push_back(view.substr(i, 1));
  EXPECT_EQ(parse(bytes), whole);
}

TEST(SseParser, TakesALargeEventAndANulByte) {
  std::string data(5'000'000, 'x');
  data += std::string(1, '\0');
  auto events = parse({"data: " + data + "\n\n"});
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].second, data);
}

TEST(SseParser, RefusesAnEventOverItsLimit) {
  auto feed_all = [](const std::string& line) {
    SseParser parser(100);
    for (int i = 0; i < 1000; ++i) parser.feed(line, [](const SseEvent&) {});
  };
  EXPECT_THROW(feed_all("x"), Error);                   // a line without end
  EXPECT_THROW(feed_all("data: abcdefghij\n"), Error);  // an event without end
  EXPECT_NO_THROW(feed_all(": keep-alive\n\n"));
}

}  // namespace
}  // namespace holt
