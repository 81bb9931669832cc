#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const nlohmann::json kLocalCase = {{"impl", "local"}, {"tp", 2}, {"microbatches", 2}};

TEST(FreedMemory, Rows) {
  const Where overwritten{.rank = 1, .kind = "scribbled", .arm = "lockstep_graph"};
  const Where last{.rank = 1, .kind = "compare", .name = "capture_inputs_last"};
  judge_rows(
      "D06.freed_memory", kLocalCase,
      {
          {.name = "a table of addresses of freed tensors (M31)",
           .change = [=](Attempt& a) { set(a, last, "equal", false); },
           .rank = 1,
           .mentions = {"after freed memory was overwritten",
                        "5 comparisons equal before, step 5 not", "bytes were filled with NaN"},
           .also = {"D01.capture_inputs_last"}},
          {.name = "no memory was overwritten",
           .change = [=](Attempt& a) { set(a, overwritten, "bytes", 0); },
           .rank = 1,
           .mentions = {"`scribbled` line of more than 0 bytes"}},
          {.name = "absent",
           .change = [=](Attempt& a) { erase(a, overwritten); },
           .rank = 1,
           .mentions = {"`scribbled` line"}},
          {.name = "nothing was compared after it",
           .change = [=](Attempt& a) { erase(a, last); },
           .rank = 1,
           .mentions = {"comparison `capture_inputs_last`"},
           .also = {"D01.capture_inputs_last"}},
          {.name = "the arms differed before",
           .change =
               [=](Attempt& a) {
                 set(a, {.rank = 1, .kind = "compare", .step = 4, .name = "lockstep"}, "equal",
                     false);
                 set(a, last, "equal", false);
               },
           .want = record::Result::unexercised,
           .mentions = {"on rank 1 the arms differed before"},
           .also = {"D01.lockstep", "D01.capture_inputs_last"}},
      });
}

TEST(FreedMemory, IsJudgedOnBothDevicesAndOfTrainingAlone) {
  EXPECT_EQ(judge_one(
                "D06.freed_memory", kLocalCase, [](Attempt&) {}, "cuda")
                .result,
            record::Result::pass);
  EXPECT_EQ(judge_one("D06.freed_memory", {{"impl", "manual"}, {"dp", 2}, {"model", "collective"}},
                      [](Attempt&) {})
                .result,
            record::Result::not_applicable);
}

}  // namespace
}  // namespace graphproof::checks
