#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const nlohmann::json kBucketAxes = {
    {"impl", "full_iteration"}, {"microbatches", 2}, {"shape_buckets", 2}, {"warmup_steps", 1}};

TEST(ShapeBuckets, RowsOfTheCache) {
  const auto step = [](std::int64_t index) {
    return Where{.rank = 0, .kind = "bucket", .step = index};
  };
  judge_rows(
      "D43.shape_buckets", kBucketAxes,
      {
          {.name = "the first in went, not the least recently used",
           .change = [=](Attempt& a) { set(a, step(6), "evicted", nlohmann::json::array({4})); },
           .rank = 0,
           .said = {"the step of length 11 did not take the graph that it should", "evicted 4",
                    "evicted 8"}},
          {.name = "another length's graph (M143)",
           .change = [=](Attempt& a) { set(a, step(4), "length", 8); },
           .rank = 0,
           .said = {"replayed at length 8", "replayed at length 4"}},
          {.name = "ran eagerly in silence",
           .change = [=](Attempt& a) { set(a, step(9), "replays", 5); },
           .rank = 0,
           .said = {"4 captures and 5 replays so far", "4 captures and 6 replays so far"}},
          {.name = "captured again without need",
           .change = [=](Attempt& a) { set(a, step(4), "captures", 3); },
           .rank = 0,
           .said = {"3 captures and 3 replays so far", "2 captures and 3 replays so far"}},
          {.name = "a step is missing",
           .change = [=](Attempt& a) { erase(a, step(3)); },
           .rank = 0,
           .said = {"a step of changing lengths is missing", "got step 4 of length 4",
                    "step 3 of a length up to 16"},
           .also = {"D34.graph_cache"}},
          {.name = "longer than the model's sequences",
           .change = [=](Attempt& a) { set(a, step(7), "longest", 17); },
           .rank = 0,
           .said = {"step 7 of length 17"}},
          {.name = "the steps end before a length comes back",
           .change =
               [=](Attempt& a) {
                 for (std::int64_t index = 7; index < 11; ++index) {
                   erase(a, step(index));
                   erase(a, {.rank = 0, .kind = "compare", .step = index, .subject = "buckets"});
                 }
                 set(a, {.rank = 0, .kind = "evictions"}, "step", 6);
               },
           .want = record::Result::unexercised,
           .rank = std::nullopt,
           .said = {"no evicted length came back"}},
          {.name = "the last step is missing",
           .change = [=](Attempt& a) { erase(a, step(10)); },
           .rank = 0,
           .said = {"rank 0 left no `bucket` line at step 10"}},
          {.name = "the last step is missing, and its comparison",
           .change =
               [=](Attempt& a) {
                 erase(a, step(10));
                 erase(a, {.rank = 0, .kind = "compare", .step = 10, .subject = "buckets"});
               },
           .rank = 0,
           .said = {"rank 0 left no `bucket` line at step 10"}},
          {.name = "absent",
           .change = [](Attempt& a) { erase(a, {.rank = 0, .kind = "bucket"}); },
           .rank = 0,
           .said = {"`bucket` line"},
           .also = {"*"}},
      });
}

TEST(ShapeBuckets, RowsOfItsNumbers) {
  const Where seventh{.rank = 0, .kind = "compare", .step = 7, .subject = "buckets"};
  const Where last{.rank = 0, .kind = "compare", .subject = "buckets_free_run"};
  judge_rows(
      "D48.shape_buckets", kBucketAxes,
      {
          {.name = "another length's graph (M143)",
           .change = [=](Attempt& a) { set(a, seventh, "equal", false); },
           .rank = 0,
           .said = {"`buckets`: buckets_graph differs from buckets_eager at step 7"}},
          {.name = "an eviction under a running replay",
           .change = [=](Attempt& a) { set(a, last, "equal", false); },
           .rank = 0,
           .said = {"`buckets_free_run`: buckets_graph differs from buckets_eager at step 10"}},
          {.name = "a step was not compared",
           .change = [=](Attempt& a) { erase(a, seventh); },
           .rank = 0,
           .said = {"comparison `buckets`"}},
          {.name = "no free run",
           .change = [=](Attempt& a) { erase(a, last); },
           .rank = 0,
           .said = {"comparison `buckets_free_run`"}},
      });
}

TEST(ShapeBuckets, RowsOfItsMemory) {
  const auto step = [](std::int64_t index) {
    return Where{.rank = 0, .kind = "bucket", .step = index};
  };
  judge_rows(
      "D34.graph_cache", kBucketAxes,
      {
          {.name = "evicted graphs stay alive (M142)",
           .change = [=](Attempt& a) { set(a, step(6), "pool_bytes", 24 << 20); },
           .rank = 0,
           .said = {"the memory of evicted graphs did not come back",
                    "12 4 resident, 25165824 bytes", "16777216 bytes"}},
          {.name = "no bound (M66)",
           .change =
               [=](Attempt& a) { set(a, step(6), "resident", nlohmann::json::array({12, 4, 8})); },
           .rank = 0,
           .said = {"the cache of graphs holds more lengths than its bound", "12 4 8 resident",
                    "2 lengths at most"},
           .also = {"D43.shape_buckets"}},
          {.name = "captures that took nothing",
           .change =
               [=](Attempt& a) {
                 set(a, step(1), "captured_bytes", 0);
                 set(a, step(1), "pool_bytes", 0);
               },
           .rank = 0,
           .said = {"did not come back", "0 bytes, what the captures of these took"}},
      });
}

TEST(ShapeBuckets, RowsOfItsPadding) {
  const Where padded{.rank = 0, .kind = "padding", .step = 2};
  judge_rows(
      "D38.padding", kBucketAxes,
      {
          {.name = "padding counts (M144)",
           .change =
               [=](Attempt& a) {
                 set(a, padded, "max_abs", 0.5);
                 set(a, padded, "max_rel", 0.1);
               },
           .rank = 0,
           .said = {"losses and gradients of a padded step differ from those without padding",
                    "0.5 (0.1 of the largest element) in `losses`"}},
          {.name = "a bound that sees nothing",
           .change = [=](Attempt& a) { set(a, padded, "bound", 3.0); },
           .rank = 0,
           .said = {"the bound on a padded step is too wide"}},
          {.name = "nothing was padded",
           .change =
               [](Attempt& a) {
                 for (Line& line : a.ranks[0].evidence->lines)
                   if (line.kind == "padding")
                     for (nlohmann::json& length : line.fields["lengths"])
                       length = line.fields["length"];
               },
           .want = record::Result::unexercised,
           .rank = std::nullopt,
           .said = {"every microbatch filled its bucket"}},
          {.name = "a length was left out",
           .change = [=](Attempt& a) { erase(a, padded); },
           .rank = 0,
           .said = {"`padding` line of length 8"}},
      });
}

TEST(ShapeBuckets, RowsOfItsEvictions) {
  const Where evictions{.rank = 0, .kind = "evictions"};
  judge_rows("D29.idle_when_dropped", kBucketAxes,
             {
                 {.name = "an eviction that does not wait (M145)",
                  .change = [=](Attempt& a) { set(a, evictions, "in_flight", 2); },
                  .rank = 0,
                  .said = {"rank 0 evicted graphs that the device was still running",
                           "got 2 replays in flight"}},
                 {.name = "nobody looked",
                  .change = [=](Attempt& a) { erase(a, evictions); },
                  .rank = 0,
                  .said = {"`evictions` line of buckets"}},
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
  nlohmann::json axes = kBucketAxes;
  axes["impl"] = "callables";
  EXPECT_EQ(record::name(judge_one("D43.shape_buckets", axes, [](Attempt&) {}).result), "pass");
}

}  // namespace
}  // namespace graphproof::checks
