#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

TEST(ShapeBuckets, Rows) {
  const auto step = [](std::int64_t index) {
    return Where{.rank = 0, .kind = "bucket", .step = index};
  };
  judge_rows(
      "D43.shape_buckets", kChangingLengths,
      {
          {.name = "the oldest length was evicted, not the least recently used",
           .change = [=](Attempt& a) { set(a, step(6), "evicted", nlohmann::json::array({4})); },
           .rank = 0,
           .mentions = {"the step of length 11 did not use the expected graph", "evicted 4",
                        "evicted 8"}},
          {.name = "another length's graph (M143)",
           .change = [=](Attempt& a) { set(a, step(4), "length", 8); },
           .rank = 0,
           .mentions = {"replayed at length 8", "replayed at length 4"}},
          {.name = "ran eagerly without counting it",
           .change = [=](Attempt& a) { set(a, step(9), "replays", 5); },
           .rank = 0,
           .mentions = {"4 captures and 5 replays so far", "4 captures and 6 replays so far"}},
          {.name = "captured again without need",
           .change = [=](Attempt& a) { set(a, step(4), "captures", 3); },
           .rank = 0,
           .mentions = {"3 captures and 3 replays so far", "2 captures and 3 replays so far"}},
          {.name = "a step is missing",
           .change = [=](Attempt& a) { erase(a, step(3)); },
           .rank = 0,
           .mentions = {"a step of changing lengths is missing", "got step 4 of length 4",
                        "step 3 of a length up to 16"},
           .also = {"D34.graph_cache"}},
          {.name = "longer than the model's sequences",
           .change = [=](Attempt& a) { set(a, step(7), "longest", 17); },
           .rank = 0,
           .mentions = {"step 7 of length 17"}},
          {.name = "the steps end before a length is used again",
           .change =
               [=](Attempt& a) {
                 for (std::int64_t index = 7; index < 11; ++index) {
                   erase(a, step(index));
                   erase(a, {.rank = 0, .kind = "compare", .step = index, .name = "buckets"});
                 }
                 set(a, {.rank = 0, .kind = "evictions"}, "step", 6);
               },
           .want = record::Result::unexercised,
           .rank = std::nullopt,
           .mentions = {"no evicted length was used again"}},
          {.name = "the last step is missing",
           .change = [=](Attempt& a) { erase(a, step(10)); },
           .rank = 0,
           .mentions = {"rank 0 left no `bucket` line at step 10"}},
          {.name = "the last step is missing, and its comparison",
           .change =
               [=](Attempt& a) {
                 erase(a, step(10));
                 erase(a, {.rank = 0, .kind = "compare", .step = 10, .name = "buckets"});
               },
           .rank = 0,
           .mentions = {"rank 0 left no `bucket` line at step 10"}},
          {.name = "absent",
           .change = [](Attempt& a) { erase(a, {.rank = 0, .kind = "bucket"}); },
           .rank = 0,
           .mentions = {"`bucket` line"},
           .also = {"*"}},
      });
}

TEST(ShapeBuckets, AreOfCasesThatChangeLengths) {
  for (const char* check :
       {"D34.graph_cache", "D38.padding", "D43.shape_buckets", "D48.shape_buckets"})
    EXPECT_EQ(record::name(judge_one(check, {{"impl", "full_iteration"}}, [](Attempt&) {}).result),
              "not_applicable")
        << check;
}

TEST(ShapeBuckets, CapturesOfCallablesAreAPairForEachPartAndNotForEachMicrobatch) {
  nlohmann::json axes = kChangingLengths;
  axes["impl"] = "callables";
  EXPECT_EQ(record::name(judge_one("D43.shape_buckets", axes, [](Attempt&) {}).result), "pass");
}

}  // namespace
}  // namespace graphproof::checks
