#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

TEST(OutputsRegistered, Rows) {
  const Where at_three{.rank = 1, .kind = "poison", .arm = "lockstep_graph", .step = 3};
  judge_rows("D07.outputs_registered", {{"impl", "full_iteration"}, {"tp", 2}},
             {
                 {.name = "an address that is not watched",
                  .change =
                      [=](Attempt& a) {
                        set(a, at_three, "unregistered",
                            json::array({"param:layers.0.norm.weight"}));
                      },
                  .rank = 1,
                  .mentions = {"an output of a step of arm lockstep_graph is not registered",
                               "param:layers.0.norm.weight"}},
                 {.name = "no `poison` line",
                  .change = [=](Attempt& a) { unset(a, at_three, "unregistered"); },
                  .rank = 1,
                  .mentions = {"unregistered: unknown"}},
                 {.name = "absent",
                  .change = [=](Attempt& a) { erase(a, at_three); },
                  .rank = 1,
                  .mentions = {"`poison` line of arm lockstep_graph at step 3"},
                  .also = {"D03.launches_watched", "D03.outputs_written"}},
             });
}

}  // namespace
}  // namespace graphproof::checks
