#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"
#include "suites/checks/testing/memory_lines.h"

namespace graphproof::checks {
namespace {

TEST(SoakCheckpoints, Rows) {
  const Where compared{.rank = 1, .kind = "compare", .step = 349, .name = "soak"};
  const Where cycle{.rank = 1, .kind = "cycle", .arm = "soak_graph", .step = 249};
  judge_rows(
      "D54.checkpoints", kLongJob,
      {
          {.name = "other inputs after 300 replays (M370)",
           .change = [=](Attempt& a) { set(a, compared, "equal", false); },
           .rank = 1,
           .mentions = {"`soak`: soak_graph differs from soak_eager at step 349"}},
          {.name = "other parameters that the load of the checkpoint hides",
           .change = [=](Attempt& a) { set(a, cycle, "params_before_load", "00112233445566bb"); },
           .rank = 1,
           .mentions = {"where cycle 4 loads its checkpoint",
                        "got parameters "
                        "00112233445566bb"}},
          {.name = "a cycle was not compared",
           .change = [=](Attempt& a) { erase(a, compared); },
           .rank = 1,
           .mentions = {"comparison `soak`", "349"}},
          {.name = "a cycle ran eagerly",
           .change =
               [=](Attempt& a) {
                 for (std::int64_t step = 249; step < 500; step += 50)
                   set(a, {.rank = 1, .kind = "cycle", .arm = "soak_graph", .step = step},
                       "launches", 50 * (step / 50));
               },
           .rank = 1,
           .mentions = {"the long job did not replay its steps in cycle 4 of arm soak_graph",
                        "got 0 graph launches", "want 50"}},
          {.name = "no checkpoint was loaded",
           .change = [=](Attempt& a) { set(a, cycle, "loads", 4); },
           .rank = 1,
           .mentions = {"did not evaluate and load a checkpoint", "4 loads so far"}},
          {.name = "no evaluation",
           .change = [=](Attempt& a) { set(a, cycle, "evaluations", 16); },
           .rank = 1,
           .mentions = {"16 evaluations", "want 20 and 5"}},
          {.name = "losses that are not finite in both jobs",
           .change = [=](Attempt& a) { set(a, cycle, "losses", nlohmann::json::array()); },
           .rank = 1,
           .mentions = {"the losses of the long job are not finite"}},
          {.name = "nothing was trained",
           .change =
               [=](Attempt& a) {
                 for (const std::int64_t step : {199, 249})
                   set(a, {.rank = 1, .kind = "cycle", .arm = "soak_graph", .step = step}, "params",
                       "00112233445566aa");
               },
           .rank = 1,
           .mentions = {"the long job trains nothing in cycle 4"}},
          {.name = "the eager job replayed",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 1, .kind = "cycle", .arm = "soak_eager", .step = 499}, "launches",
                     1);
               },
           .rank = 1,
           .mentions = {"of arm soak_eager", "got 1 graph launches"}},
          {.name = "a cycle is absent",
           .change = [=](Attempt& a) { erase(a, cycle); },
           .rank = 1,
           .mentions = {"`cycle` line of arm soak_graph and cycle 4"},
           .also = {"D54.recaptures"}},
          rank_died({.rank = 1, .kind = "cycle", .arm = "soak_graph", .step = 249}),
      });
}

// With changing lengths the launches depend on which graphs the cache held.
TEST(SoakCheckpoints, ChangingLengthsReplayAtLeastHalfOfTheirSteps) {
  const nlohmann::json axes = {{"impl", "callables"},
                               {"microbatches", 2},
                               {"shape_buckets", 2},
                               {"warmup_steps", 1},
                               {"soak_steps", 500}};
  const auto with = [](std::int64_t launches_of_step) {
    return [=](Attempt& a) {
      for (std::int64_t cycle = 0; cycle < 10; ++cycle)
        set(a, {.rank = 0, .kind = "cycle", .arm = "soak_graph", .step = 50 * cycle + 49},
            "launches", (cycle + 1) * launches_of_step);
    };
  };
  const std::int64_t launches = 2 * 2 * 2;  // two layers, two microbatches, two directions
  EXPECT_EQ(judge_one("D54.checkpoints", axes, with(25 * launches)).result, record::Result::pass);
  EXPECT_EQ(judge_one("D54.checkpoints", axes, with(25 * launches - 1)).result,
            record::Result::fail);
}

TEST(SoakRecaptures, Rows) {
  const auto kept = [](const char* what, std::int64_t from) {
    return [=](Attempt& a) {
      for (std::int64_t step = from; step < 500; step += 50) {
        auto& field = memory_line(a, "soak_graph", "returned", step).fields[what];
        field = field.get<std::int64_t>() + (1 << 20);
      }
    };
  };
  const Where cycle{.rank = 1, .kind = "cycle", .arm = "soak_graph", .step = 249};
  judge_rows("D54.recaptures", kLongJob,
             {
                 {.name = "an executable keeps its pool (M369)",
                  .change = kept("pool", 149),
                  .rank = 1,
                  .mentions = {"the graphs of cycle 2 of the long job kept memory",
                               "got 1048576 bytes in graph pools"}},
                 {.name = "a recapture allocates and does not free",
                  .change = kept("allocated", 249),
                  .rank = 1,
                  .mentions = {"the graphs of cycle 4", "2097152 bytes allocated"}},
                 {.name = "not captured again",
                  .change = [=](Attempt& a) { set(a, cycle, "captures", 8); },
                  .rank = 1,
                  .mentions = {"cycle 4 of the long job did not capture its graphs again",
                               "got 8 captures so far", "want 10"}},
                 {.name = "never captured",
                  .change =
                      [](Attempt& a) {
                        for (std::int64_t step = 49; step < 500; step += 50)
                          set(a, {.rank = 1, .kind = "cycle", .arm = "soak_graph", .step = step},
                              "captures", 0);
                      },
                  .rank = 1,
                  .mentions = {"got 0 captures so far"}},
                 {.name = "what is left after a cycle is absent",
                  .change =
                      [](Attempt& a) {
                        memory_line(a, "soak_graph", "returned", 249).fields["when"] = "dropped";
                        type_again(a);
                      },
                  .rank = 1,
                  .mentions = {"`memory` line of arm soak_graph after its graphs"}},
                 rank_died({.rank = 1, .kind = "memory", .arm = "soak_graph", .step = 499}),
             });
}

}  // namespace
}  // namespace graphproof::checks
