#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const nlohmann::json kStashAxes = {{"impl", "full_iteration"},
                                   {"dp", 2},
                                   {"ep", 2},
                                   {"model", "moe"},
                                   {"experts", 4},
                                   {"topk", 2},
                                   {"dispatch", "paged_stash"},
                                   {"dispatcher", "flex"},
                                   {"warmup_steps", 2}};

// In the clean attempt steps 4 and 5 need 128 rows on the first rank; step 4 has 80.
TEST(PagedStash, Rows) {
  const auto of = [](const char* arm, std::int64_t step, int rank = 0) {
    return Where{.rank = rank, .kind = "stash", .arm = arm, .step = step};
  };
  const Where overflow = of("stash_graph", 4), held = of("stash_graph", 5),
              last = of("stash_graph", 6);
  judge_rows(
      "D76.paged_stash", kStashAxes,
      {
          {.name = "the flag is not read (M376)",
           .change =
               [=](Attempt& a) {
                 set(a, overflow, "reruns", 0);
                 set(a, overflow, "carried", 200);
                 set(a, overflow, "dropped", 56);
               },
           .rank = 0,
           .mentions = {"step 4 of arm stash_graph did not run again",
                        "a rank needed 128 rows and had 80"}},
          {.name = "the flag is not cleared (M377)",
           .change = [=](Attempt& a) { set(a, held, "reruns", 1); },
           .rank = 0,
           .mentions = {"step 5 of arm stash_graph ran again without need", "had 128"}},
          {.name = "another rank's overflow is not heard of",
           .change = [=](Attempt& a) { set(a, of("stash_graph", 4, 1), "reruns", 0); },
           .rank = 1,
           .mentions = {"did not run again"}},
          {.name = "tokens lost in the second run",
           .change = [=](Attempt& a) { set(a, overflow, "carried", 250); },
           .rank = 0,
           .mentions = {"lost tokens", "250 carried and 0 dropped of 256"}},
          {.name = "counted as dropped",
           .change = [=](Attempt& a) { set(a, of("stash_eager", 0), "dropped", 6); },
           .rank = 0,
           .mentions = {"step 0 of arm stash_eager lost tokens"}},
          {.name = "buffers do not grow (M379)",
           .change = [=](Attempt& a) { set(a, overflow, "grown", 100); },
           .rank = 0,
           .mentions = {"did not grow its buffers", "100 rows after 80", "want 128 rows or more"}},
          {.name = "buffers shrink",
           .change = [=](Attempt& a) { set(a, held, "grown", 80); },
           .rank = 0,
           .mentions = {"changed its buffers without need"}},
          {.name = "the growth is forgotten",
           .change =
               [=](Attempt& a) {
                 set(a, last, "capacity", 120);
                 set(a, last, "grown", 120);
               },
           .rank = 0,
           .mentions = {"began with other buffers than the step before left"}},
          {.name = "no capture after the growth",
           .change =
               [=](Attempt& a) {
                 set(a, held, "captures", 1);
                 set(a, last, "captures", 1);
               },
           .rank = 0,
           .mentions = {"step 5 of arm stash_graph was not replayed as it should be",
                        "0 captures and 1 replays", "want a capture and a replay"}},
          {.name = "an eager step",
           .change = [=](Attempt& a) { set(a, last, "replays", 4); },
           .rank = 0,
           .mentions = {"was not replayed as it should be", "0 captures and 0 replays"}},
          {.name = "another batch in the second run (M380)",
           .change =
               [=](Attempt& a) {
                 set(a, {.rank = 0, .kind = "compare", .step = 4, .name = "stash"}, "equal", false);
               },
           .rank = 0,
           .mentions = {"`stash`: stash_graph differs from stash_eager at step 4"}},
          {.name = "absent",
           .change = [=](Attempt& a) { erase(a, last); },
           .rank = 0,
           .mentions = {"`stash` line of arm stash_graph at step 6"}},
          {.name = "no overflow",
           .change =
               [=](Attempt& a) {
                 for (const char* arm : {"stash_eager", "stash_graph"})
                   for (const int rank : {0, 1})
                     for (std::int64_t step = 0; step < 7; ++step) {
                       const Where line = of(arm, step, rank);
                       set(a, line, "needed", 70);
                       set(a, line, "capacity", 80);
                       set(a, line, "grown", 80);
                       set(a, line, "reruns", 0);
                       if (arm == std::string_view("stash_graph") && step >= 2)
                         set(a, line, "captures", 1);
                     }
               },
           .want = record::Result::unexercised,
           .mentions = {"no replay overflowed"}},
      });
}

}  // namespace
}  // namespace graphproof::checks
