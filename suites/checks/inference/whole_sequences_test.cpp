#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const nlohmann::json kSequencesAxes = {
    {"microbatch_size", 4}, {"steps", 64}, {"schedule", "decode"}};

TEST(WholeSequences, Rows) {
  const Where line{.kind = "sequences"};
  judge_rows("D73.whole_sequences", kSequencesAxes,
             {
                 {.name = "a request that attends to others' tokens (M319)",
                  .change = [=](Attempt& a) { set(a, line, "max_abs", 0.4); },
                  .rank = 0,
                  .mentions = {"one pass over whole sequences", "attends to other tokens"}},
                 {.name = "as far as a defect, within a bound that accepts anything",
                  .change =
                      [=](Attempt& a) {
                        set(a, line, "bound", 9.0);
                        set(a, line, "max_abs", 0.4);
                        set(a, line, "max_rel", 0.4);
                      },
                  .rank = 0,
                  .mentions = {"as far as a defect may move them"}},
                 {.name = "requests were left out",
                  .change = [=](Attempt& a) { set(a, line, "requests", 1); },
                  .rank = 0,
                  .mentions = {"other requests were compared than the job has finished",
                               "got 1 requests"}},
                 {.name = "tokens were left out",
                  .change = [=](Attempt& a) { set(a, line, "tokens", 2); },
                  .rank = 0,
                  .mentions = {"with 2 tokens"}},
                 {.name = "absent",
                  .change = [=](Attempt& a) { erase(a, line); },
                  .rank = 0,
                  .mentions = {"`sequences` line of arm eager_a"}},
             });
}

}  // namespace
}  // namespace graphproof::checks
