#include "matrix/catalogue/limits.h"

#include <gtest/gtest.h>

#include "matrix/catalogue/catalogue.h"
#include "matrix/testing/thrown.h"

namespace graphproof::matrix {
namespace {

std::int64_t read(const std::string& json) {
  const Document document = parse_document(json, "l.json");
  return duration_ms(Located(document));
}

TEST(LimitsTest, EveryPhaseHasADefault) {
  EXPECT_EQ(load_catalogue().limits.size(), record::kPhaseCount);
  const Document document = parse_document(
      R"({"schema": "graphproof-limits/1",
          "limits": [{"phase": "init", "limit": "1s", "why": "w"}]})",
      "l.json");
  EXPECT_EQ(thrown([&] { parse_default_limits(document); }).what, "a phase without a limit");
}

TEST(LimitsTest, DurationsHaveUnits) {
  EXPECT_EQ(read("\"250ms\""), 250);
  EXPECT_EQ(read("\"10s\""), 10'000);
  EXPECT_EQ(read("\"4m\""), 240'000);
  EXPECT_EQ(read("\"4h\""), 14'400'000);
  EXPECT_EQ(read("\"1h30m\""), 5'400'000);
  EXPECT_EQ(read("\"8m30s\""), 510'000);
  EXPECT_EQ(read("\"1s5ms\""), 1005);
  EXPECT_EQ(read("1500"), 1500);
}

TEST(LimitsTest, WrongDurationsAreRefused) {
  for (const char* text :
       {"\"10\"", "\"10 s\"", "\"s\"", "\"-1s\"", "\"0s\"", "\"1.5s\"", "\"10d\"", "\"9999999h\"",
        "\"99999999999999999999s\"", "\"30s8m\"", "\"8m0s\"", "\"8m30\"", "\"1s1s\"",
        "\"719h60m1ms\"", "\"720h1ms\"", "\"-1m5s\"", "\"\"", "true", "1.5"})
    EXPECT_EQ(thrown([&] { read(text); }).what, "a duration that can't be read") << text;
  EXPECT_EQ(thrown([&] { read("0"); }).what, "the number 0 is out of range");
}

TEST(LimitsTest, UnknownPhaseSuggestsTheNearest) {
  const Document document = parse_document("{\"reply\": \"10s\"}", "l.json");
  const Problem problem = thrown([&] { parse_limits(Located(document)); });
  EXPECT_EQ(problem.what, "unknown phase `reply`");
  EXPECT_EQ(problem.next, "did you mean `replay`?");
}

}  // namespace
}  // namespace graphproof::matrix
