#include <gtest/gtest.h>

#include "suites/checks/check_rows.h"

namespace graphproof::checks {
namespace {

const nlohmann::json kAxes = {{"impl", "local"}, {"microbatches", 2}, {"nan_check_loss", true}, {"nan_check_grad", true}};

TEST(HostChecks, Rows) {
  const Where losses{.rank = 0, .kind = "knob", .arm = "lockstep_graph", .step = 3, .subject = "losses_checked"};
  const Where gradients{.rank = 0, .kind = "knob", .arm = "lockstep_graph", .step = 3, .subject = "gradients_checked"};
  judge_rows("D43.host_checks", kAxes,
             {
                 {.name = "left out in a replayed step (M98)",
                  .change = [=](Attempt& a) { set(a, losses, "effective", 0); },
                  .rank = 0,
                  .said = {"did not look at all losses of arm lockstep_graph at step 3", "got 0 looks", "want 2"}},
                 {.name = "nothing was asked for",
                  .change =
                      [=](Attempt& a) {
                        set(a, gradients, "host", 0);
                        set(a, gradients, "effective", 0);
                      },
                  .rank = 0,
                  .said = {"did not look at all gradients", "more than none"}},
                 {.name = "absent",
                  .change = [=](Attempt& a) { erase(a, gradients); },
                  .rank = 0,
                  .said = {"`knob` line of gradients_checked in arm lockstep_graph at step 3"}},
             });
}

TEST(HostChecks, WantsOnlyWhatTheCaseAsksFor) {
  nlohmann::json axes = kAxes;
  axes["nan_check_grad"] = false;
  EXPECT_EQ(record::name(judge_one("D43.host_checks", axes, [](Attempt&) {}).result), "pass");
  EXPECT_EQ(record::name(judge_one("D43.host_checks", {{"impl", "local"}}, [](Attempt&) {}).result), "not_applicable");
}

}  // namespace
}  // namespace graphproof::checks
