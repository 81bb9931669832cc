#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

TEST(OutputsWritten, Rows) {
  const Where at_three{.rank = 1, .kind = "poison", .arm = "lockstep_graph", .step = 3};
  judge_rows(
      "D03.outputs_written", {{"impl", "manual"}, {"dp", 2}},
      {
          {.name = "canaries left (M49)",
           .change = [=](Attempt& a) { set(a, at_three, "canary_words", 16384); },
           .rank = 1,
           .mentions = {"left poison in its outputs in arm lockstep_graph at step 3",
                        "16384 canary words; 14 of 14 compared outputs were poisoned"}},
          {.name = "a compared output was not poisoned",
           .change = [=](Attempt& a) { set(a, at_three, "outputs", 13); },
           .rank = 1,
           .mentions = {"14 compared, 13 poisoned"}},
          {.name = "nothing compared",
           .change = [=](Attempt& a) { set(a, at_three, "compared", 0); },
           .rank = 1,
           .mentions = {"0 compared"}},
          {.name = "no replay compared anything",
           .change = [](Attempt& a) { set(a, {.rank = 1, .kind = "poison"}, "compared", 0); },
           .rank = 1,
           .mentions = {"0 compared, 14 poisoned"}},
          {.name = "no byte poisoned",
           .change = [=](Attempt& a) { set(a, at_three, "bytes", 0); },
           .rank = 1,
           .mentions = {"0 bytes"}},
          {.name = "fewer outputs than in other replays",
           .change =
               [=](Attempt& a) {
                 set(a, at_three, "outputs", 13);
                 set(a, at_three, "compared", 13);
               },
           .rank = 1,
           .mentions = {"at step 3 other outputs of arm lockstep_graph were poisoned",
                        "13 compared of 13 poisoned", "14 compared of 14 poisoned"}},
          {.name = "absent for one step",
           .change = [=](Attempt& a) { erase(a, at_three); },
           .rank = 1,
           .mentions = {"`poison` line of arm lockstep_graph at step 3"},
           .also = {"D03.launches_watched", "D07.outputs_registered"}},
          {.name = "absent for the capture inputs",
           .change = [](Attempt& a) { erase(a, {.rank = 0, .kind = "poison", .step = 5}); },
           .rank = 0,
           .mentions = {"at step 5"},
           .also = {"D03.launches_watched", "D07.outputs_registered"}},
          {.name = "the rank died",
           .change = [=](Attempt& a) { die_before(a, at_three); },
           .want = record::Result::unexercised,
           .rank = std::nullopt,
           .mentions = {"so there is no `poison` line"},
           .also = {"*"}},
      });
}

}  // namespace
}  // namespace graphproof::checks
