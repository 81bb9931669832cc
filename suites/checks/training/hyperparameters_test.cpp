#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

TEST(LearningRate, Rows) {
  const Where at_three{.rank = 0, .kind = "hyperparameter", .arm = "lockstep_graph", .step = 3};
  judge_rows(
      "D04.learning_rate", {{"impl", "manual"}},
      {
          {.name = "frozen at capture (M23)",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 0, .kind = "hyperparameter", .arm = "lockstep_graph"}, "effective",
                     0.09);
               },
           .rank = 0,
           .mentions = {"used another learning rate at step 3", "0.09", "0.085 within 0.0005",
                        "frozen at capture"}},
          {.name = "NaN",
           .change = [=](Attempt& a) { set(a, at_three, "effective", "nan"); },
           .rank = 0,
           .mentions = {"is unknown at step 3"}},
          {.name = "no bound",
           .change = [=](Attempt& a) { set(a, at_three, "bound", "nan"); },
           .rank = 0,
           .mentions = {"bound \"nan\""}},
          {.name = "infinite bound",
           .change = [=](Attempt& a) { set(a, at_three, "bound", "inf"); },
           .rank = 0,
           .mentions = {"is unknown"}},
          {.name = "absent",
           .change = [=](Attempt& a) { erase(a, at_three); },
           .rank = 0,
           .mentions =
               {"`hyperparameter` line of the learning rate in arm lockstep_graph at step 3"}},
          {.name = "a line of another hyperparameter only",
           .change = [=](Attempt& a) { set(a, at_three, "name", "loss_scale"); },
           .rank = 0,
           .mentions = {"at step 3"}},
          {.name = "bounds too wide to distinguish the steps",
           .change =
               [](Attempt& a) { set(a, {.rank = 0, .kind = "hyperparameter"}, "bound", 1.0); },
           .want = record::Result::unexercised,
           .rank = std::nullopt,
           .mentions = {"a frozen value would not be noticed"}},
          {.name = "a host rate that never changes",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 0, .kind = "hyperparameter"}, "host", 0.09);
                 set(a, {.rank = 0, .kind = "hyperparameter"}, "effective", 0.09);
               },
           .want = record::Result::unexercised,
           .rank = std::nullopt,
           .mentions = {"a frozen value would not be noticed"}},
      });
}

TEST(LearningRate, IsWatchedInTheEagerArmWithoutGraphs) {
  judge_rows("D04.learning_rate", nlohmann::json::object(),
             {
                 {.name = "another rate",
                  .change =
                      [](Attempt& a) {
                        set(a, {.rank = 0, .kind = "hyperparameter", .arm = "eager_a", .step = 4},
                            "effective", 0.1);
                      },
                  .rank = 0,
                  .mentions = {"arm eager_a", "step 4"}},
                 {.name = "absent",
                  .change = [](Attempt& a) { erase(a, {.rank = 0, .kind = "hyperparameter"}); },
                  .rank = 0,
                  .mentions = {"at step 0"}},
             });
}

TEST(OptimizerStep, Rows) {
  const Where at_three{.rank = 0,
                       .kind = "hyperparameter",
                       .arm = "lockstep_graph",
                       .step = 3,
                       .name = "optimizer_step"};
  judge_rows(
      "D04.optimizer_step", {{"impl", "manual"}, {"optimizer", "adam"}},
      {
          {.name = "frozen at capture (M24)",
           .change =
               [](Attempt& a) {
                 set(a,
                     {.rank = 0,
                      .kind = "hyperparameter",
                      .arm = "lockstep_graph",
                      .name = "optimizer_step"},
                     "effective", 3.0);
               },
           .rank = 0,
           .mentions = {"the optimizer of arm lockstep_graph used another step number at step 3",
                        "got 3", "want 4 within 0"}},
          {.name = "absent",
           .change = [=](Attempt& a) { erase(a, at_three); },
           .rank = 0,
           .mentions =
               {"`hyperparameter` line of the step number in arm lockstep_graph at step 3"}},
      });
  EXPECT_EQ(
      record::name(judge_one("D04.optimizer_step", {{"impl", "manual"}}, [](Attempt&) {}).result),
      "not_applicable");
}

TEST(LossScale, Rows) {
  const Where at_three{.rank = 1,
                       .kind = "hyperparameter",
                       .arm = "lockstep_graph",
                       .step = 3,
                       .name = "loss_scale"};
  judge_rows(
      "D04.loss_scale", {{"impl", "full_iteration"}, {"precision", "fp16"}, {"tp", 2}},
      {
          {.name = "frozen at capture (M95)",
           .change = [=](Attempt& a) { set(a, at_three, "effective", 4096.0); },
           .rank = 1,
           .mentions = {"the backward of arm lockstep_graph used another loss scale at step 3",
                        "got 4096"}},
          {.name = "one rank skipped a step (M96)",
           .change =
               [=](Attempt& a) {
                 set(a, at_three, "host", 4096.0);
                 set(a, at_three, "effective", 4096.0);
               },
           .rank = 1,
           .mentions = {"the ranks scale their losses differently in arm lockstep_graph at step 3",
                        "4096 on rank 1", "as on rank 0"}},
          {.name = "absent",
           .change = [=](Attempt& a) { erase(a, at_three); },
           .rank = 1,
           .mentions = {"`hyperparameter` line of the loss scale in arm lockstep_graph at step 3"}},
      });
  for (const nlohmann::json& axes :
       {nlohmann::json{{"impl", "manual"}},
        nlohmann::json{{"precision", "fp16"}, {"loss_scale", "static"}}})
    EXPECT_EQ(record::name(judge_one("D04.loss_scale", axes, [](Attempt&) {}).result),
              "not_applicable");
}

}  // namespace
}  // namespace graphproof::checks
