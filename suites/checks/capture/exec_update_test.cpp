#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

nlohmann::json updating(nlohmann::json axes) {
  axes["recapture"] = "exec_update";
  return axes;
}

// In the clean attempt two lengths instantiate, and two more captures update.
TEST(ExecUpdate, Rows) {
  const Where last{.rank = 0, .kind = "exec_updates", .arm = "buckets_graph", .step = 10};
  judge_rows(
      "D62.exec_update", updating(kChangingLengths),
      {
          {.name = "the update is left out (M520)",
           .change = [=](Attempt& a) { set(a, last, "stale_launches", 3); },
           .rank = 0,
           .mentions = {"executable graphs were launched that an update had not reached",
                        "3 launches; 2 updates, none refused", "still holds the old work"}},
          {.name = "a refused update is taken as done (M521)",
           .change =
               [=](Attempt& a) {
                 set(a, last, "updates", 1);
                 set(a, last, "refused", {{"cudaGraphExecUpdateErrorTopologyChanged", 1}});
                 set(a, last, "stale_launches", 2);
               },
           .rank = 0,
           .mentions = {"2 launches; 1 updates, refused: 1 with "
                        "cudaGraphExecUpdateErrorTopologyChanged",
                        "a new instantiation after one that was refused"}},
          {.name = "clusters that an update left are not looked at (M531)",
           .change =
               [=](Attempt& a) {
                 set(a, last, "kept_clusters", 1);
                 set(a, last, "stale_launches", 2);
               },
           .rank = 0,
           .mentions = {"2 launches; 2 updates, none refused, 1 left clusters as they were",
                        "in the clusters of the old ones"}},
          {.name = "kept while the device runs it (M522)",
           .change = [=](Attempt& a) { set(a, last, "given_up_in_flight", 1); },
           .rank = 0,
           .mentions = {"kept for an update while the device ran them", "1 of 2 updates"}},
          {.name = "instantiated although an executable graph was there",
           .change = [=](Attempt& a) { set(a, last, "updates", 1); },
           .rank = 0,
           .mentions = {"captures did not update the executable graphs that were there",
                        "4 captures and 1 updates, with 2 graphs at most", "2 updates at least"}},
      });
}

TEST(ExecUpdate, LongJobRows) {
  const Where last{.rank = 1, .kind = "exec_updates", .arm = "soak_graph", .step = 499};
  judge_rows("D62.exec_update", updating(kLongJob),
             {{.name = "the update is left out in the last cycle",
               .change = [=](Attempt& a) { set(a, last, "stale_launches", 48); },
               .rank = 1,
               .mentions = {"in run soak of arm soak_graph", "48 launches"}}});
}

}  // namespace
}  // namespace graphproof::checks
