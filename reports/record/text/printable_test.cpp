#include "reports/record/text/printable.h"

#include <gtest/gtest.h>

namespace graphproof::record {
namespace {

TEST(Printable, LetsNoControlCharacterThrough) {
  struct Row {
    std::string text, want;
  };
  const Row kRows[] = {
      {"plain, \"quoted\" & <tagged>", "plain, \"quoted\" & <tagged>"},
      {"\x1b[31mred", "\\x1b[31mred"},
      {"a\nb\tc\rd", "a\\x0ab\\x09c\\x0dd"},
      {std::string("a\0b", 3), "a\\x00b"},
      {"\x7f", "\\x7f"},
      {"\xc2\x9b"
       "31m",
       "\\xc2\\x9b31m"},  // C1, a one-character escape sequence
      {"h\xc3\xa9", "h\xc3\xa9"},
      {"\xff\xfe", "\\xff\\xfe"},
      {"\xc0\x80", "\\xc0\\x80"},           // overlong
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},  // surrogate
      {"\xef\xbf\xbf", "\\xef\\xbf\\xbf"},  // forbidden in XML
      {"\xe2\x82", "\\xe2\\x82"},           // cut off
      {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
  };
  for (const Row& row : kRows) EXPECT_EQ(printable(row.text), row.want);
}

}  // namespace
}  // namespace graphproof::record
