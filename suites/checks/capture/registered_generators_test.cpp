#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const nlohmann::json kDropoutCase = {{"impl", "full_iteration"}, {"dropout", true}};
const Where kCapture{.rank = 0, .kind = "capture", .arm = "lockstep_graph"};

TEST(RegisteredGenerators, Rows) {
  judge_rows(
      "D09.registered_generators", kDropoutCase,
      {
          {.name = "one is missing (M33)",
           .change = [](Attempt& a) { set(a, kCapture, "generators", 1); },
           .rank = 0,
           .mentions = {"a generator was not registered with the graphs of arm lockstep_graph",
                        "1 registered", "2, all that the step draws from"}},
          {.name = "one is missing and the capture was refused for it",
           .change =
               [](Attempt& a) {
                 set(a, kCapture, "generators", 1);
                 set(a, kCapture, "status", "error");
                 set(a, kCapture, "code", 1);
               },
           .rank = 0,
           .mentions = {"1 registered"},
           .also = {"D15.census", "D19.capture_status"}},
          {.name = "no report of how many there are",
           .change = [](Attempt& a) { unset(a, kCapture, "generators_wanted"); },
           .rank = 0,
           .mentions = {"unknown, all that the step draws from"}},
          {.name = "absent",
           .change = [](Attempt& a) { erase(a, kCapture); },
           .rank = 0,
           .mentions = {"`capture` line of arm lockstep_graph"},
           .also = {"D15.census", "D18.coverage", "D19.capture_status", "D37.warmed_up"}},
          {.name = "the rank died",
           .change = [](Attempt& a) { die_before(a, kCapture); },
           .want = record::Result::unexercised,
           .rank = std::nullopt,
           .mentions = {"rank 0"},
           .also = {"*"}},
      });
}

TEST(RegisteredGenerators, WithoutDropoutNothingIsDrawn) {
  const auto result = judge_one("D09.registered_generators", {{"impl", "manual"}}, [](Attempt&) {});
  EXPECT_EQ(result.result, record::Result::not_applicable);
}

}  // namespace
}  // namespace graphproof::checks
