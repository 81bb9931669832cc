#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const nlohmann::json kRandomAxes = {{"impl", "full_iteration"}, {"dropout", true}};

Where graph_at(std::int64_t step) {
  return {.rank = 0, .kind = "rng", .arm = "lockstep_graph", .step = step};
}
Where eager_at(std::int64_t step) {
  return {.rank = 0, .kind = "rng", .arm = "lockstep_eager", .step = step};
}

TEST(Masks, Rows) {
  judge_rows(
      "D08.masks", kRandomAxes,
      {
          {.name = "frozen at capture (M32)",
           .change =
               [](Attempt& a) {
                 for (int step : {3, 4, 5}) set(a, graph_at(step), "mask", "77aa000000000002");
               },
           .rank = 0,
           .mentions = {"arm lockstep_graph drew the same mask twice",
                        "mask 77aa000000000002 at steps 2 and 3", "frozen at capture"}},
          {.name = "another mask than eager",
           .change = [](Attempt& a) { set(a, graph_at(4), "mask", "ff"); },
           .rank = 0,
           .mentions = {"another mask than eager at step 4", "mask ff", "mask 77aa000000000004"}},
          {.name = "both arms frozen",
           .change = [](Attempt& a) { set(a, {.rank = 0, .kind = "rng"}, "mask", "77"); },
           .rank = 0,
           .mentions = {"the same mask twice"}},
          {.name = "no mask in either arm",
           .change = [](Attempt& a) { set(a, {.rank = 0, .kind = "rng"}, "mask", ""); },
           .rank = 0,
           .mentions = {"no mask in any `rng` line at step 2"}},
          {.name = "graph arm absent",
           .change = [](Attempt& a) { erase(a, graph_at(4)); },
           .rank = 0,
           .mentions = {"`rng` line of arm lockstep_graph at step 4"},
           .also = {"D08.generator"}},
          {.name = "eager arm absent",
           .change = [](Attempt& a) { erase(a, eager_at(5)); },
           .rank = 0,
           .mentions = {"`rng` line of arm lockstep_eager at step 5"},
           .also = {"D08.generator"}},
          {.name = "another generator",
           .change = [](Attempt& a) { set(a, graph_at(4), "generator", "default"); },
           .rank = 0,
           .mentions = {"is in one arm only at step 4"},
           .also = {"D08.generator"}},
      });
}

TEST(Masks, DoNotApplyWithoutDropout) {
  const record::CheckResult result = judge_one("D08.masks", {{"impl", "manual"}}, [](Attempt&) {});
  EXPECT_EQ(result.result, record::Result::not_applicable);
}

TEST(Generator, Rows) {
  judge_rows(
      "D08.generator", kRandomAxes,
      {
          {.name = "another state after",
           .change = [](Attempt& a) { set(a, graph_at(3), "after", "2718:9"); },
           .rank = 0,
           .mentions = {"generator `model-parallel` is in another state than eager's after step 3",
                        "state 2718:9", "state 2718:256"}},
          {.name = "another state before",
           .change = [](Attempt& a) { set(a, graph_at(3), "before", "2718:9"); },
           .rank = 0,
           .mentions = {"before step 3"}},
          {.name = "no state",
           .change =
               [](Attempt& a) {
                 set(a, graph_at(3), "after", "");
                 set(a, eager_at(3), "after", "");
               },
           .rank = 0,
           .mentions = {"state none"}},
          {.name = "no generator moved",
           .change =
               [](Attempt& a) {
                 set(a, graph_at(3), "after", "2718:192");
                 set(a, eager_at(3), "after", "2718:192");
               },
           .rank = 0,
           .mentions = {"no generator moved at step 3"}},
      });
}

}  // namespace
}  // namespace graphproof::checks
