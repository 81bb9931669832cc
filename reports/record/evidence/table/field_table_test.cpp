#include "reports/record/evidence/table/field_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace graphproof::record {
namespace {

struct Part {
  std::int64_t count = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("count", &Part::count, "how many", 3, kCount);
  }
};

struct Flat {
  double bound = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("bound", &Flat::bound, "at most", 0.5);
  }
};

/// One member of each type.
struct SampleLine {
  static constexpr std::string_view kKind = "sample", kDoc = "A line for tests.";
  std::string word;
  bool flag = false;
  double ms = 0, value = 0;
  Phase phase = Phase::validate;
  std::vector<std::int64_t> list;
  std::map<std::string, std::string> digests;
  Settings settings;
  std::vector<Part> parts;
  Flat flat;
  std::optional<std::int64_t> later;
  std::optional<Part> nullable, either;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("word", &SampleLine::word, "one of two", "left", {.one_of = "left|right"});
    field("flag", &SampleLine::flag, "yes or no", true);
    field("ms", &SampleLine::ms, "time", 0.5, kCount);
    field("value", &SampleLine::value, "any number", 1.5);
    field("phase", &SampleLine::phase, "the phase", "replay");
    field("list", &SampleLine::list, "counts", JsonText{"[1, 2]"}, {.at_least = 0, .min_items = 1});
    field("digests", &SampleLine::digests, "by name", JsonText{R"({"a": "0123456789abcdef"})"},
          kDigest);
    field("settings", &SampleLine::settings, "by name", JsonText{R"({"a": 1, "b": "c"})"});
    field("parts", &SampleLine::parts, "the parts");
    field.part(&SampleLine::flat);
    field("later", &SampleLine::later, "absent in older evidence", 7, {.at_least = 0, .since = 4});
    field("nullable", &SampleLine::nullable, "null where there is none", {},
          {.null_when_empty = true});
    field("either", &SampleLine::either, "absent or null where there is none", {},
          {.may_be_null = true});
  }
};

const char* const kExample =
    R"({"kind":"sample","word":"left","flag":true,"ms":0.5,"value":1.5,"phase":"replay",)"
    R"("list":[1,2],"digests":{"a":"0123456789abcdef"},"settings":{"a":1,"b":"c"},)"
    R"("parts":[{"count":3}],"bound":0.5,"later":7,"nullable":{"count":3},"either":{"count":3}})";

nlohmann::json example() { return nlohmann::json::parse(kExample); }

std::string problem(const nlohmann::json& line) {
  SampleLine read;
  const auto misfit = read_line(line, read);
  return misfit ? to_text(*misfit) : "";
}

TEST(FieldTable, WritesWhatItReadsInTheOrderOfTheTable) {
  SampleLine line;
  ASSERT_FALSE(read_line(example(), line));
  EXPECT_EQ(line.parts.at(0).count, 3);
  EXPECT_EQ(line.flat.bound, 0.5);
  EXPECT_EQ(line.later, 7);
  EXPECT_EQ(line_json(line).dump(), kExample);
}

TEST(FieldTable, AnEmptyOptionalIsLeftOutOrNull) {
  const std::string text = line_json(SampleLine{}).dump();
  EXPECT_EQ(text.find("later"), std::string::npos) << text;
  EXPECT_EQ(text.find("either"), std::string::npos) << text;
  EXPECT_NE(text.find("\"nullable\":null"), std::string::npos) << text;
}

TEST(FieldTable, NumbersThatJsonLacksAreSpelledAndReadBack) {
  SampleLine line;
  line.word = "right";
  line.value = std::numeric_limits<double>::quiet_NaN();
  line.flat.bound = -std::numeric_limits<double>::infinity();
  const nlohmann::json written = line_json(line);
  EXPECT_EQ(written.at("value"), "nan");
  EXPECT_EQ(written.at("bound"), "-inf");
  SampleLine read;
  ASSERT_FALSE(read_line(written, read));
  EXPECT_TRUE(std::isnan(read.value));
  EXPECT_EQ(read.flat.bound, line.flat.bound);
}

TEST(FieldTable, AMissingFieldIsNamed) {
  const std::set<std::string> optional = {"later", "either"};
  const nlohmann::json whole = example();
  for (const auto& [key, value] : whole.items()) {
    if (key == "kind") continue;
    nlohmann::json broken = example();
    broken.erase(key);
    EXPECT_EQ(problem(broken),
              optional.contains(key) ? "" : "`" + key + "` is missing, want the field");
  }
}

TEST(FieldTable, AWrongTypeOrWordIsNamedWithItsPlace) {
  struct Row {
    const char *place, *value, *message;
  };
  const Row kRows[] = {
      {"/word", "\"up\"", "`word` is \"up\", want one of left|right"},
      {"/word", "3", "`word` is 3, want a text"},
      {"/flag", "1", "`flag` is 1, want true or false"},
      {"/ms", "\"nan\"", "`ms` is \"nan\", want a number"},
      {"/value", "\"fast\"", "`value` is \"fast\", want a number, nan, inf or -inf"},
      {"/phase", "\"lunch\"", "`phase` is \"lunch\", want the name of a phase"},
      {"/list", "{}", "`list` is {}, want a list"},
      {"/list/1", "1.5", "`list[1]` is 1.5, want an integer"},
      {"/digests", "[]", "`digests` is [], want an object"},
      {"/digests/a", "null", "`digests.a` is null, want a text"},
      {"/settings/b", "[1]", "`settings.b` is [1], want a text, a number, true or false"},
      {"/parts/0", "4", "`parts[0]` is 4, want an object"},
      {"/parts/0/count", "\"x\"", "`parts[0].count` is \"x\", want an integer"},
      {"/bound", "null", "`bound` is null, want a number, nan, inf or -inf"},
      {"/later", "null", "`later` is null, want an integer"},
      {"/nullable", "true", "`nullable` is true, want an object"},
      {"/either/count", "[]", "`either.count` is [], want an integer"},
  };
  for (const Row& row : kRows) {
    nlohmann::json broken = example();
    broken[nlohmann::json::json_pointer(row.place)] = nlohmann::json::parse(row.value);
    EXPECT_EQ(problem(broken), row.message);
  }
}

TEST(FieldTable, RangesAndPatternsAreForTheSchema) {
  nlohmann::json line = example();
  line["list"] = {-1};
  line["digests"] = {{"a", "short"}};
  line["extra"] = 1;
  EXPECT_EQ(problem(line), "");
  EXPECT_EQ(object_schema(describe_fields<SampleLine>())["properties"]["list"].dump(),
            R"({"type":"array","items":{"type":"integer","minimum":0},"minItems":1})");
}

TEST(FieldTable, NullIsReadAsNothingWhereTheTableAllowsIt) {
  nlohmann::json line = example();
  line["nullable"] = line["either"] = nullptr;
  SampleLine read;
  ASSERT_FALSE(read_line(line, read));
  EXPECT_FALSE(read.nullable);
  EXPECT_FALSE(read.either);
}

}  // namespace
}  // namespace graphproof::record
