#include "matrix/input/document.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "matrix/input/located_json.h"
#include "matrix/testing/thrown.h"

namespace graphproof::matrix {
namespace {

TEST(DocumentTest, ReadsCommentsAndKeepsKeyOrder) {
  const Document document = parse_document(
      "// head\n{\"b\": 1, /* in between */ \"a\": [true, null, -2.5e1, "
      "\"x\\u00e9\\ud83d\\ude00\\n\"]} // tail",
      "a.json");
  EXPECT_EQ(document.value.dump(), "{\"b\":1,\"a\":[true,null,-25.0,\"x\u00e9\U0001F600\\n\"]}");
}

TEST(DocumentTest, EveryMalformedTextNamesItsPlace) {
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
      {"\"abc", "malformed JSON: an unterminated text", "1:1"},
      {"\"a\\q\"", "malformed JSON: an unknown escape", "1:3"},
      {"\"\\ud800\"", "malformed JSON: an unpaired surrogate", "1:2"},
      {"\"\\u12g4\"", "malformed JSON", "1:6"},
      {"\"a\tb\"", "malformed JSON: a control character in a text", "1:3"},
      {"/* x", "an unterminated comment", "1:1"},
      {"tru", "malformed JSON", "1:1"},
      {"[99999999999999999999]", "the number 99999999999999999999 is out of range", "1:2"},
      {"[1e999]", "the number 1e999 is out of range", "1:2"},
      {"{\"a\": 1,\n \"a\": 2}", "the key `a` appears twice", "2:2"},
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

TEST(DocumentTest, DuplicateKeyNamesTheFirstOne) {
  EXPECT_EQ(thrown([] { parse_document("{\"a\": 1,\n \"a\": 2}", ""); }).why,
            "the first one is in line 1");
}

TEST(DocumentTest, ReadsWhatTheUsualReaderReads) {
  EXPECT_TRUE(rc::check(
      "any JSON that nlohmann writes is read to the same value",
      [](const std::string& text, const std::vector<std::int64_t>& numbers, bool flag) {
        nlohmann::json json{{"numbers", numbers}, {"flag", flag}, {"list", {nullptr, 0.5}}};
        json["text"] =
            nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
        RC_ASSERT(nlohmann::json(parse_document(json.dump(2), "").value) == json);
      }));
}

TEST(DocumentTest, NoBytesCrashTheReader) {
  EXPECT_TRUE(rc::check("arbitrary bytes are read or refused", [](const std::vector<char>& bytes) {
    try {
      parse_document(std::string(bytes.begin(), bytes.end()), "");
    } catch (const InputError& error) {
      RC_ASSERT(!error.problem().next.empty());
    }
  }));
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
