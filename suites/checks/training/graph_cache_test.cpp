#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

TEST(GraphCache, Rows) {
  const auto step = [](std::int64_t index) {
    return Where{.rank = 0, .kind = "bucket", .step = index};
  };
  judge_rows(
      "D34.graph_cache", kChangingLengths,
      {
          {.name = "evicted graphs stay alive (M142)",
           .change = [=](Attempt& a) { set(a, step(6), "pool_bytes", 24 << 20); },
           .rank = 0,
           .mentions = {"the memory of evicted graphs was not returned",
                        "12 4 resident, 25165824 bytes", "16777216 bytes"}},
          {.name = "no bound (M66)",
           .change =
               [=](Attempt& a) { set(a, step(6), "resident", nlohmann::json::array({12, 4, 8})); },
           .rank = 0,
           .mentions = {"the cache of graphs holds more lengths than its bound", "12 4 8 resident",
                        "2 lengths at most"},
           .also = {"D43.shape_buckets"}},
          {.name = "captures that took no memory",
           .change =
               [=](Attempt& a) {
                 set(a, step(1), "captured_bytes", 0);
                 set(a, step(1), "pool_bytes", 0);
               },
           .rank = 0,
           .mentions = {"was not returned", "0 bytes, which their captures took"}},
      });
}

}  // namespace
}  // namespace graphproof::checks
