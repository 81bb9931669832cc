#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const nlohmann::json kPaddedAxes = {{"microbatch_size", 4}, {"steps", 64}, {"schedule", "decode"}};

TEST(PaddedRows, Rows) {
  const Where at_nine{.kind = "compare", .step = 9, .name = "padding"};
  judge_rows("D72.padded_rows", kPaddedAxes,
             {
                 {.name = "padding has an influence (M318)",
                  .change = [=](Attempt& a) { set(a, at_nine, "equal", false); },
                  .rank = 0,
                  .mentions = {"`padding`: padded_eager differs from eager_a at step 9"}},
                 {.name = "nothing was compared",
                  .change = [=](Attempt& a) { set(a, at_nine, "tensors", 0); },
                  .rank = 0,
                  .mentions = {"compared nothing"}},
                 {.name = "absent",
                  .change = [=](Attempt& a) { erase(a, at_nine); },
                  .rank = 0,
                  .mentions = {"comparison `padding` at step 9"}},
             });
}

TEST(PaddedRows, IsUnexercisedIfEveryBatchFillsItsSize) {
  nlohmann::json axes = kPaddedAxes;
  axes["batch_sizes"] = {"1", "2", "3", "4"};
  EXPECT_EQ(record::name(judge_one("D72.padded_rows", axes, [](Attempt&) {}).result),
            "unexercised");
}

}  // namespace
}  // namespace graphproof::checks
