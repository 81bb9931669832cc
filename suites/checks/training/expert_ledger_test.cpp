#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const nlohmann::json kExpertAxes = {
    {"impl", "manual"},           {"model", "moe"},          {"experts", 4}, {"topk", 2},
    {"dispatch", "drop_and_pad"}, {"dispatcher", "alltoall"}};

// The counts of the clean attempt: layer 0 assigned 13 19 16 16, carried 13 16 16 16, dropped 3;
// layer 1 all 16.
TEST(ExpertLedger, Rows) {
  const Where at_three{.rank = 0, .kind = "experts", .arm = "lockstep_graph", .step = 3};
  const Where both_at_three{.rank = 0, .kind = "experts", .step = 3};
  judge_rows(
      "D40.expert_ledger", kExpertAxes,
      {
          {.name = "dropped without a count (M74)",
           .change =
               [=](Attempt& a) {
                 set(a, at_three, "carried", std::vector<int>{8, 8, 8, 8, 8, 8, 8, 8});
               },
           .rank = 0,
           .mentions = {"layer 0 of arm lockstep_graph lost tokens without counting them at step 3",
                        "32 carried and 3 dropped of 64 assignments", "want 32 dropped"}},
          {.name = "no flag",
           .change =
               [=](Attempt& a) { set(a, both_at_three, "overflowed", std::vector<int>{0, 0}); },
           .rank = 0,
           .mentions = {"raised the wrong overflow flag", "0 with 3 dropped", "want 1 or more"}},
          {.name = "a flag although nothing was dropped",
           .change =
               [=](Attempt& a) { set(a, both_at_three, "overflowed", std::vector<int>{1, 1}); },
           .rank = 0,
           .mentions = {"layer 1", "1 with 0 dropped", "want 0"}},
          {.name = "tokens without an expert",
           .change = [=](Attempt& a) { set(a, both_at_three, "assignments", 70); },
           .rank = 0,
           .mentions = {"assigned another number than its tokens need",
                        "got 64 assignments; want 70"}},
          {.name = "routed by the captured tokens",
           .change =
               [=](Attempt& a) {
                 set(a, at_three, "assigned", std::vector<int>{19, 13, 16, 16, 16, 16, 16, 16});
                 set(a, at_three, "carried", std::vector<int>{16, 13, 16, 16, 16, 16, 16, 16});
               },
           .rank = 0,
           .mentions = {"the replay of step 3 routed other tokens than eager", "carried [16,13,",
                        "carried [13,16,"}},
          {.name = "counts of half the layers",
           .change = [=](Attempt& a) { set(a, at_three, "dropped", std::vector<int>{3}); },
           .rank = 0,
           .mentions = {"ledger of arm lockstep_graph is incomplete at step 3"}},
          {.name = "absent",
           .change = [=](Attempt& a) { erase(a, at_three); },
           .rank = 0,
           .mentions = {"`experts` line of arm lockstep_graph at step 3"}},
          {.name = "nothing over capacity",
           .change =
               [](Attempt& a) {
                 for (const char* arm : {"eager_a", "lockstep_eager", "lockstep_graph"}) {
                   const Where all{.kind = "experts", .arm = arm};
                   set(a, all, "assigned", std::vector<int>(8, 16));
                   set(a, all, "carried", std::vector<int>(8, 16));
                   set(a, all, "dropped", std::vector<int>{0, 0});
                   set(a, all, "overflowed", std::vector<int>{0, 0});
                 }
               },
           .want = record::Result::unexercised,
           .rank = std::nullopt,
           .mentions = {"a silent drop would not be noticed"}},
      });
}

TEST(ExpertLedger, OfAnEagerCaseIsThatOfItsOwnArm) {
  nlohmann::json axes = kExpertAxes;
  axes["impl"] = "none";
  EXPECT_EQ(record::name(judge_one("D40.expert_ledger", axes, [](Attempt&) {}).result), "pass");
  const auto lost = judge_one("D40.expert_ledger", axes, [](Attempt& a) {
    set(a, {.rank = 0, .kind = "experts", .arm = "eager_a", .step = 1}, "carried",
        std::vector<int>(8, 0));
  });
  EXPECT_EQ(record::name(lost.result), "fail");
}

TEST(ExpertLedger, OfADroplessDispatchNeedsNoTokenOverCapacity) {
  nlohmann::json axes = kExpertAxes;
  axes["impl"] = "none";
  axes["dispatch"] = "dropless";
  const auto carried = [](Attempt& a) {
    const Where all{.kind = "experts", .arm = "eager_a"};
    set(a, all, "assigned", std::vector<int>(8, 16));
    set(a, all, "carried", std::vector<int>(8, 16));
    set(a, all, "dropped", std::vector<int>{0, 0});
    set(a, all, "overflowed", std::vector<int>{0, 0});
  };
  EXPECT_EQ(record::name(judge_one("D40.expert_ledger", axes, carried).result), "pass");
}

TEST(ExpertLedger, IsNotApplicableToADenseModel) {
  EXPECT_EQ(
      record::name(judge_one("D40.expert_ledger", {{"impl", "manual"}}, [](Attempt&) {}).result),
      "not_applicable");
}

}  // namespace
}  // namespace graphproof::checks
