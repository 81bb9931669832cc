#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const nlohmann::json kCheckedLosses = {
    {"impl", "local"}, {"microbatches", 2}, {"nan_check_loss", true}, {"nan_check_grad", true}};

TEST(HostChecks, Rows) {
  const Where losses{.rank = 0,
                     .kind = "hyperparameter",
                     .arm = "lockstep_graph",
                     .step = 3,
                     .name = "losses_checked"};
  const Where gradients{.rank = 0,
                        .kind = "hyperparameter",
                        .arm = "lockstep_graph",
                        .step = 3,
                        .name = "gradients_checked"};
  judge_rows(
      "D43.host_checks", kCheckedLosses,
      {
          {.name = "left out in a replayed step (M98)",
           .change = [=](Attempt& a) { set(a, losses, "effective", 0); },
           .rank = 0,
           .mentions = {"did not check all losses of arm lockstep_graph at step 3", "got 0 checks",
                        "want 2"}},
          {.name = "nothing was asked for",
           .change =
               [=](Attempt& a) {
                 set(a, gradients, "host", 0);
                 set(a, gradients, "effective", 0);
               },
           .rank = 0,
           .mentions = {"did not check all gradients", "more than none"}},
          {.name = "left out with the last inputs",
           .change =
               [](Attempt& a) {
                 set(a,
                     {.rank = 0,
                      .kind = "hyperparameter",
                      .arm = "lockstep_graph",
                      .step = 5,
                      .name = "losses_checked"},
                     "effective", 1);
               },
           .rank = 0,
           .mentions = {"did not check all losses of arm lockstep_graph at step 5"}},
          {.name = "absent",
           .change = [=](Attempt& a) { erase(a, gradients); },
           .rank = 0,
           .mentions =
               {"`hyperparameter` line of gradients_checked in arm lockstep_graph at step 3"}},
      });
}

TEST(HostChecks, AStageWithoutALossLooksAtGradientsAlone) {
  nlohmann::json axes = kCheckedLosses;
  axes["pp"] = 2;
  EXPECT_EQ(record::name(judge_one("D43.host_checks", axes, [](Attempt&) {}).result), "pass");
  const record::CheckResult result = judge_one("D43.host_checks", axes, [](Attempt& a) {
    for (const char* field : {"host", "effective"})
      set(a,
          {.rank = 1,
           .kind = "hyperparameter",
           .arm = "lockstep_graph",
           .step = 3,
           .name = "losses_checked"},
          field, 0);
  });
  EXPECT_EQ(result.result, record::Result::fail) << "the last stage has losses";
  EXPECT_NE(record::to_text(result.message).find("did not check all losses"), std::string::npos);
}

TEST(HostChecks, WantsOnlyWhatTheCaseAsksFor) {
  nlohmann::json axes = kCheckedLosses;
  axes["nan_check_grad"] = false;
  EXPECT_EQ(record::name(judge_one("D43.host_checks", axes, [](Attempt&) {}).result), "pass");
  EXPECT_EQ(record::name(judge_one("D43.host_checks", {{"impl", "local"}}, [](Attempt&) {}).result),
            "not_applicable");
}

}  // namespace
}  // namespace graphproof::checks
