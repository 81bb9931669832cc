#include "matrix/input/input_error.h"

#include <gtest/gtest.h>

namespace graphproof::matrix {
namespace {

TEST(InputErrorTest, MessageCarriesPlaceCaretAndAllFiveParts) {
  const std::string text = "{\n  \"ipml\": 1\n}";
  const InputError error({.what = "unknown axis `ipml`",
                          .got = "ipml",
                          .want = "an axis",
                          .why = "typing",
                          .next = "did you mean `impl`?",
                          .place = place_in("a.json", text, text.find('"'))});
  EXPECT_STREQ(error.what(),
               "unknown axis `ipml`\n"
               "  at    a.json:2:3\n"
               "          \"ipml\": 1\n"
               "          ^\n"
               "  got   ipml\n"
               "  want  an axis\n"
               "  why   typing\n"
               "  next  did you mean `impl`?");
  EXPECT_EQ(error.json().at("line"), 2);
  EXPECT_EQ(error.json().at("column"), 3);
  EXPECT_EQ(error.json().at("next"), "did you mean `impl`?");
}

TEST(InputErrorTest, MessageWithoutPlaceLeavesItOut) {
  const InputError error(
      {.what = "no case", .got = "", .want = "", .why = "", .next = "name one", .place = {}});
  EXPECT_STREQ(error.what(), "no case\n  next  name one");
}

TEST(PlaceTest, ColumnsCountCharactersNotBytes) {
  const std::string text = "\"größe\" x";
  EXPECT_EQ(place_in("", text, text.find('x')).column, 9);
}

TEST(PlaceTest, LongLineIsShownAsAWindowAroundTheCaret) {
  const std::string text = std::string(5000, 'a') + "X" + std::string(5000, 'b');
  const Place place = place_in("", text, 5000);
  EXPECT_EQ(place.column, 5001);
  EXPECT_EQ(place.line_text.size(), 120u);
  EXPECT_EQ(place.line_text[static_cast<std::size_t>(place.caret)], 'X');
}

TEST(PlaceTest, ControlCharactersDoNotReachTheTerminal) {
  EXPECT_EQ(place_in("", "a\x1b[2Jb\tc", 0).line_text, "a [2Jb c");
}

TEST(PlaceTest, OffsetBeyondTheTextIsItsEnd) { EXPECT_EQ(place_in("", "ab\nc", 99).line, 2); }

TEST(NearestNameTest, FindsTypingErrorsAndNothingElse) {
  const std::vector<std::string> names{"impl", "modules", "microbatches", "tp"};
  const std::pair<const char*, const char*> rows[] = {
      {"ipml", "impl"}, {"module", "modules"}, {"microbatchs", "microbatches"},
      {"tpp", "tp"},    {"zebra", ""},         {"", ""},
      {"xy", ""}};
  for (const auto& [typed, meant] : rows) EXPECT_EQ(nearest_name(typed, names), meant) << typed;
  EXPECT_EQ(suggestion("ipml", names, "see the list"), "did you mean `impl`?");
  EXPECT_EQ(suggestion("zebra", names, "see the list"), "see the list");
  EXPECT_EQ(nearest_name(std::string(100000, 'a'), names), "");
}

TEST(ListedTest, CountsWhatItLeavesOut) {
  const std::vector<std::string> names{"a", "b", "c"};
  EXPECT_EQ(listed(names), "a, b, c");
  EXPECT_EQ(listed(names, 2), "a, b and 1 more");
}

}  // namespace
}  // namespace graphproof::matrix
