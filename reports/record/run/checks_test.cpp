#include "reports/record/run/checks.h"

#include <gtest/gtest.h>

#include "reports/record/text/file.h"

namespace graphproof::record {
namespace {

CheckResult result(const std::string& check, Result result) {
  return {.check = check,
          .result = result,
          .rank = {},
          .message = {.what = "what says \"result\"",
                      .got = "{\"check\": \"D99.none\"}",
                      .want = "w",
                      .why = "y",
                      .next = "n"}};
}

Checks checks() {
  return {
      .case_id = "0123456789abcdef",
      .attempt = 1,
      .ranks =
          {{.rank = 0,
            .complete = true,
            .last_phase = Phase::replay,
            .refused =
                Refusal{.rule = "R001",
                        .message = {.what = "w", .got = "g", .want = "w", .why = "y", .next = "n"}},
            .error = {}}},
      .figures = {{"eager_ms", 3.5}},
      .checks = {result("D01.lockstep", Result::pass), result("D04.learning_rate", Result::fail),
                 result("D43.replays", Result::unexercised),
                 result("D56.races", Result::not_applicable)}};
}

TEST(Checks, TheirResultsAloneAreThoseOfTheWholeFile) {
  const std::map<std::string, Result> want = {{"D01.lockstep", Result::pass},
                                              {"D04.learning_rate", Result::fail},
                                              {"D43.replays", Result::unexercised},
                                              {"D56.races", Result::not_applicable}};
  EXPECT_EQ(check_results_from(to_json(checks()).dump(2), "checks.json"), want);
  Checks none = checks();
  none.checks.clear();
  EXPECT_TRUE(check_results_from(to_json(none).dump(), "checks.json").empty());
}

TEST(Checks, ADamagedFileIsNamedWhereverItIsDamaged) {
  const std::string whole = to_json(checks()).dump(2);
  const auto refused = [](const std::string& text) {
    try {
      check_results_from(text, "checks.json");
    } catch (const ReadError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refused(whole.substr(0, whole.size() / 2)).find("checks.json is not JSON"),
            std::string::npos);
  EXPECT_NE(refused("[]"), "");
  const auto with = [&](const std::string& old_text, const std::string& new_text) {
    std::string text = whole;
    text.replace(text.find(old_text), old_text.size(), new_text);
    return text;
  };
  EXPECT_NE(refused(with("graphproof-checks/1", "graphproof-checks/9")).find("schema"),
            std::string::npos);
  EXPECT_NE(refused(with("\"pass\"", "\"passed\"")).find("passed"), std::string::npos);
  EXPECT_NE(refused(with("\"check\"", "\"chek\"")), "");
}

}  // namespace
}  // namespace graphproof::record
