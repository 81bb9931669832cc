#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

TEST(LaunchesWatched, Rows) {
  const Where at_three{.rank = 1, .kind = "poison", .arm = "lockstep_graph", .step = 3};
  const auto with = [=](const char* count, const nlohmann::json& value) {
    return [=](Attempt& a) { set(a, at_three, count, value); };
  };
  judge_rows("D03.launches_watched", {{"impl", "local"}, {"modules", {"attn", "mlp"}}, {"dp", 2}},
             {
                 {.name = "a launch that was not announced",
                  .change = with("launches", 9),
                  .rank = 1,
                  .mentions = {"graphs were launched uninspected in arm lockstep_graph at step 3",
                               "9 launches, 8 announced, 8 inspected"}},
                 {.name = "a launch without an inspection after it",
                  .change = with("inspected", 7),
                  .rank = 1,
                  .mentions = {"7 inspected afterwards"}},
                 {.name = "no count of launches",
                  .change = [=](Attempt& a) { unset(a, at_three, "launches"); },
                  .rank = 1,
                  .mentions = {"unknown launches"}},
                 {.name = "nothing announced",
                  .change =
                      [=](Attempt& a) {
                        for (const char* count : {"launches", "announced", "inspected"})
                          set(a, at_three, count, 0);
                      },
                  .rank = 1,
                  .mentions = {"0 launches, 0 announced"}},
                 {.name = "absent for one step",
                  .change = [=](Attempt& a) { erase(a, at_three); },
                  .rank = 1,
                  .mentions = {"`poison` line of arm lockstep_graph at step 3"},
                  .also = {"D03.outputs_written", "D07.outputs_registered"}},
                 {.name = "the rank died",
                  .change = [=](Attempt& a) { die_before(a, at_three); },
                  .want = record::Result::unexercised,
                  .rank = std::nullopt,
                  .mentions = {"rank 1"},
                  .also = {"*"}},
             });
  EXPECT_EQ(judge_one("D03.launches_watched", {{"impl", "manual"}},
                      [=](Attempt& a) {
                        set(a, {.rank = 0, .kind = "poison", .arm = "lockstep_graph", .step = 3},
                            "launches", 0);
                      })
                .result,
            record::Result::pass)
      << "a graph that was announced and not launched is D43's";
}

}  // namespace
}  // namespace graphproof::checks
