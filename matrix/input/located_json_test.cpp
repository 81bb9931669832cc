#include "matrix/input/located_json.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "matrix/testing/thrown.h"

namespace graphproof::matrix {
namespace {

TEST(LocatedJsonTest, ReadsCommentsAndKeepsKeyOrder) {
  const Document document = parse_document(
      "// head\n{\"b\": 1, /* in between */ \"a\": [true, null, -2.5e1, "
      "\"x\\u00e9\\ud83d\\ude00\\n\"]} // tail",
      "a.json");
  EXPECT_EQ(document.value.dump(), "{\"b\":1,\"a\":[true,null,-25.0,\"x\u00e9\U0001F600\\n\"]}");
}

TEST(LocatedJsonTest, EveryMalformedTextNamesItsPlace) {
  const struct {
    std::string text;
    const char* what;
    const char* place;
  } rows[] = {
      {"", "malformed JSON", "1:1"},
      {"{\n  \"a\": }", "malformed JSON", "2:8"},
      {"{\"a\": 1,}", "malformed JSON", "1:9"},
      {"{\"a\" 1}", "malformed JSON", "1:6"},
      {"{a: 1}", "malformed JSON", "1:2"},
      {"[1 2]", "malformed JSON", "1:4"},
      {"[1] 2", "text after the end of the JSON value", "1:5"},
      {"[01]", "malformed JSON: a number with a leading zero", "1:2"},
      {"[1.]", "malformed JSON: a number without digits", "1:4"},
      {"[-]", "malformed JSON: a number without digits", "1:3"},
      {"\"abc", "malformed JSON: a text without an end", "1:1"},
      {"\"a\\q\"", "malformed JSON: an unknown escape", "1:3"},
      {"\"\\ud800\"", "malformed JSON: half a surrogate pair", "1:2"},
      {"\"\\u12g4\"", "malformed JSON", "1:6"},
      {"\"a\tb\"", "malformed JSON: a control character in a text", "1:3"},
      {"/* x", "a comment without an end", "1:1"},
      {"tru", "malformed JSON", "1:1"},
      {"[99999999999999999999]", "the number 99999999999999999999 is out of range", "1:2"},
      {"[1e999]", "the number 1e999 is out of range", "1:2"},
      {"{\"a\": 1,\n \"a\": 2}", "the key `a` stands here twice", "2:2"},
      {"[\"a\xff\"]", "invalid UTF-8", "1:4"},
      {"\"\xc0\x80\"", "invalid UTF-8", "1:2"},
      {"\"\xed\xa0\x80\"", "invalid UTF-8", "1:2"},
      {"// \xe2\x82\n1", "invalid UTF-8", "1:4"},
      {std::string(200, '['), "nested too deeply", "1:66"},
  };
  for (const auto& row : rows) {
    const Problem problem = thrown([&] { parse_document(row.text, "a.json"); });
    EXPECT_EQ(problem.what, row.what) << row.text;
    EXPECT_EQ(at(problem), row.place) << row.text;
    EXPECT_FALSE(problem.next.empty()) << row.text;
  }
}

TEST(LocatedJsonTest, DuplicateKeyNamesTheFirstOne) {
  EXPECT_EQ(thrown([] { parse_document("{\"a\": 1,\n \"a\": 2}", ""); }).why,
            "the first one is in line 1");
}

TEST(LocatedJsonTest, ReadsWhatTheUsualReaderReads) {
  EXPECT_TRUE(rc::check(
      "any JSON that nlohmann writes is read to the same value",
      [](const std::string& text, const std::vector<std::int64_t>& numbers, bool flag) {
        nlohmann::json json{{"numbers", numbers}, {"flag", flag}, {"list", {nullptr, 0.5}}};
        json["text"] =
            nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
        RC_ASSERT(nlohmann::json(parse_document(json.dump(2), "").value) == json);
      }));
}

TEST(LocatedJsonTest, NoBytesCrashTheReader) {
  EXPECT_TRUE(rc::check("arbitrary bytes are read or refused", [](const std::vector<char>& bytes) {
    try {
      parse_document(std::string(bytes.begin(), bytes.end()), "");
    } catch (const InputError& error) {
      RC_ASSERT(!error.problem().next.empty());
    }
  }));
}

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

TEST(OriginTest, OffsetsCountThroughEscapes) {
  const std::string text = "{\"a\": \"x\\\"\\u00e9\\ud83d\\ude00z\"}";
  const Document document = parse_document(text, "a.json");
  const Origin origin = Located(document).at("a").origin();
  const std::string decoded = Located(document).at("a").string();
  EXPECT_EQ(origin.at(0).column, 8);
  EXPECT_EQ(origin.at(decoded.find('z')).column, static_cast<int>(text.find('z')) + 1);
}

}  // namespace
}  // namespace graphproof::matrix
