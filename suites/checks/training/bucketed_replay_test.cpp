#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

TEST(BucketedReplay, Rows) {
  const Where seventh{.rank = 0, .kind = "compare", .step = 7, .name = "buckets"};
  const Where last{.rank = 0, .kind = "compare", .name = "buckets_free_run"};
  judge_rows(
      "D48.shape_buckets", kChangingLengths,
      {
          {.name = "another length's graph (M143)",
           .change = [=](Attempt& a) { set(a, seventh, "equal", false); },
           .rank = 0,
           .mentions = {"`buckets`: buckets_graph differs from buckets_eager at step 7"}},
          {.name = "an eviction under a running replay",
           .change = [=](Attempt& a) { set(a, last, "equal", false); },
           .rank = 0,
           .mentions = {"`buckets_free_run`: buckets_graph differs from buckets_eager at step 10"}},
          {.name = "a step was not compared",
           .change = [=](Attempt& a) { erase(a, seventh); },
           .rank = 0,
           .mentions = {"comparison `buckets`"}},
          {.name = "no free run",
           .change = [=](Attempt& a) { erase(a, last); },
           .rank = 0,
           .mentions = {"comparison `buckets_free_run`"}},
      });
}

}  // namespace
}  // namespace graphproof::checks
