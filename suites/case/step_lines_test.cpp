#include "suites/case/step_lines.h"

#include <gtest/gtest.h>

#include <string>

#include "workloads/testing/step_under_test.h"

namespace graphproof::suites {
namespace {

// With one expert per token, a step may bring an expert no token; then the expert does not move and
// shows no effective rate.
TEST(StepLines, AnExpertsMovementIsMeasuredOnlyIfThereIsNoOtherParameter) {
  using namespace workloads;
  StepUnderTest bench(ModelConfig{.layers = 1,
                                  .hidden = 8,
                                  .heads = 2,
                                  .kv_groups = 2,
                                  .ffn = 64,
                                  .vocab = 12,
                                  .seq_length = 5,
                                  .microbatch_size = 1,
                                  .microbatches = 1,
                                  .experts = 4,
                                  .topk = 1});
  const Updated *largest = nullptr, *largest_other = nullptr;
  for (const Updated& updated : bench.step.updated()) {
    const auto larger_than = [&](const Updated* one) {
      return one == nullptr || updated.moved.tensor.numel() > one->moved.tensor.numel();
    };
    if (larger_than(largest)) largest = &updated;
    if (!updated.expert && larger_than(largest_other)) largest_other = &updated;
  }
  ASSERT_TRUE(largest->expert) << largest->moved.name << ": otherwise this test shows nothing";
  EXPECT_TRUE(look_before_step(bench.step).watched.equal(largest_other->moved.tensor))
      << largest_other->moved.name;
}

}  // namespace
}  // namespace graphproof::suites
