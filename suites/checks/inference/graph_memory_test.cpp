#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const nlohmann::json kMemoryAxes = {{"impl", "local"},
                                    {"inference_scope", "block"},
                                    {"microbatch_size", 4},
                                    {"steps", 64},
                                    {"schedule", "decode"}};

TEST(GraphMemoryOfSizes, Rows) {
  const auto capture = [](const char* graph) {
    return Where{.kind = "capture", .arm = "graph_b", .name = graph};
  };
  judge_rows("D74.graph_memory", kMemoryAxes,
             {
                 {.name = "a smaller size has memory of its own (M325)",
                  .change = [=](Attempt& a) { set(a, capture("decode.1"), "pool_bytes", 4194304); },
                  .rank = 0,
                  .mentions = {"the graphs of arm graph_b take more memory",
                               "got 4194304 bytes of all sizes after decode.4",
                               "want 2097152 bytes at most; decode.4 took 4194304"}},
                 {.name = "no memory was measured",
                  .change = [=](Attempt& a) { set(a, capture("decode.4"), "pool_bytes", 0); },
                  .rank = 0,
                  .mentions = {"`capture` line of arm graph_b with memory of its pool"}},
             });
}

TEST(GraphMemoryOfSizes, AllowsASegmentOfTheAllocatorOnCuda) {
  const auto result = [](std::int64_t bytes) {
    return record::name(judge_one(
                            "D74.graph_memory", kMemoryAxes,
                            [=](Attempt& a) {
                              set(a, {.kind = "capture", .arm = "graph_b", .name = "decode.1"},
                                  "pool_bytes", bytes);
                            },
                            "cuda")
                            .result);
  };
  EXPECT_EQ(result(4 << 20), "pass");
  EXPECT_EQ(result((4 << 20) + 1), "fail");
}

}  // namespace
}  // namespace graphproof::checks
