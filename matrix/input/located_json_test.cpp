#include "matrix/input/located_json.h"

#include <gtest/gtest.h>

#include "matrix/testing/thrown.h"

namespace graphproof::matrix {
namespace {

TEST(LocatedTest, TypedReadingIsStrictAndNamesThePlace) {
  const Document document = parse_document(
      "{\n  \"count\": \"4\",\n  \"name\": 4,\n  \"flag\": 1, \"list\": {}, \"small\": 0\n}",
      "a.json");
  const Located root(document);
  const Problem number = thrown([&] { root.at("count").integer(1, 9); });
  EXPECT_EQ(number.what, "`count` has the wrong type");
  EXPECT_EQ(number.got, "\"4\"");
  EXPECT_EQ(number.want, "an integer");
  EXPECT_EQ(number.why, "types are strict: \"4\" is not 4");
  EXPECT_EQ(at(number), "2:12");
  EXPECT_EQ(thrown([&] { root.at("name").string(); }).want, "a text");
  EXPECT_EQ(thrown([&] { root.at("flag").boolean(); }).want, "true or false");
  EXPECT_EQ(thrown([&] { root.at("list").items(); }).want, "an array");
  EXPECT_EQ(thrown([&] { root.at("small").integer(1, 9); }).want, "1 to 9");
  EXPECT_EQ(thrown([&] { root.at("absent"); }).what, "the key `absent` is missing");
}

TEST(LocatedTest, UnknownKeyIsNamedAtItsPlaceWithTheNearest) {
  const Document document = parse_document("{\"schema\": 1,\n  \"axis\": 2}", "a.json");
  const Problem problem = thrown([&] { Located(document).expect_keys({"schema"}, {"axes"}); });
  EXPECT_EQ(problem.what, "unknown key `axis`");
  EXPECT_EQ(problem.next, "did you mean `axes`?");
  EXPECT_EQ(at(problem), "2:3");
}

}  // namespace
}  // namespace graphproof::matrix
