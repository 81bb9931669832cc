#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const nlohmann::json kGraphCase = {
    {"impl", "full_iteration"}, {"dp", 2}, {"overlap_grad_reduce", true}};

TEST(DelayedWork, EagerRows) {
  const Where delayed{.rank = 1, .kind = "delayed_steps", .arm = "eager_a"};
  const auto compared_at = [](std::int64_t step) {
    return Where{.rank = 1, .kind = "compare", .step = step, .name = "eager_repeats"};
  };
  judge_rows(
      "D13.late_eager", kGraphCase,
      {
          {.name = "a layer that does not wait (M141)",
           .change = [=](Attempt& a) { set(a, compared_at(1), "equal", false); },
           .rank = 1,
           .mentions = {"eager_a, of which some steps were delayed, differs from solo_eager",
                        "the 31 others were delayed by 10.0 ms", "was right by chance so far"},
           .also = {"D02.eager_repeats"}},
          {.name = "the last step differs alone",
           .change = [=](Attempt& a) { set(a, compared_at(4), "equal", false); },
           .rank = 1,
           .mentions = {"differs from solo_eager"},
           .also = {"D02.eager_repeats"}},
          {.name = "steps without a delay differ",
           .change =
               [=](Attempt& a) {
                 set(a, compared_at(0), "equal", false);
                 set(a, compared_at(1), "equal", false);
               },
           .want = record::Result::unexercised,
           .mentions = {"the results of eager_a differed even without a delay"},
           .also = {"D02.eager_repeats"}},
          {.name = "other steps were delayed",
           .change = [=](Attempt& a) { set(a, delayed, "steps", {0, 1}); },
           .rank = 1,
           .mentions = {"`delayed_steps` line of arm eager_a with 2 steps from step 1 on"}},
          {.name = "absent",
           .change = [=](Attempt& a) { erase(a, delayed); },
           .rank = 1,
           .mentions = {"`delayed_steps` line of arm eager_a"}},
          {.name = "the last step was not compared",
           .change = [=](Attempt& a) { erase(a, compared_at(4)); },
           .rank = 1,
           .mentions = {"comparison `eager_repeats`"},
           .also = {"D02.eager_repeats"}},
      },
      "cuda");
}

TEST(DelayedWork, ReplayRows) {
  const Where delayed{.rank = 1, .kind = "delayed_steps", .arm = "free_graph"};
  const Where free_run{.rank = 1, .kind = "compare", .name = "free_run"};
  judge_rows(
      "D13.late_replays", kGraphCase,
      {
          {.name = "a step that does not wait for the stream of its inputs (M165)",
           .change = [=](Attempt& a) { set(a, free_run, "equal", false); },
           .rank = 1,
           .mentions = {"free_graph, whose replays were delayed, differs from eager_a",
                        "the 31 others were delayed by 6.0 ms", "12 branches within graphs",
                        "was right by chance so far"},
           .also = {"D01.free_run"}},
          {.name = "replays without a delay differ",
           .change =
               [=](Attempt& a) {
                 set(a, {.rank = 1, .kind = "compare", .step = 3, .name = "lockstep"}, "equal",
                     false);
                 set(a, free_run, "equal", false);
               },
           .want = record::Result::unexercised,
           .mentions = {"the results of free_graph differed even without a delay"},
           .also = {"D01.lockstep", "D01.free_run", "D06.freed_memory"}},
          {.name = "no stream was delayed",
           .change = [=](Attempt& a) { set(a, delayed, "streams", 0); },
           .rank = 1,
           .mentions = {"`delayed_steps` line of arm free_graph with 3 steps from step 2 on"}},
          {.name = "too few steps were delayed",
           .change = [=](Attempt& a) { set(a, delayed, "steps", {2, 3}); },
           .rank = 1,
           .mentions = {"`delayed_steps` line of arm free_graph"}},
          {.name = "a step too many was delayed",
           .change = [=](Attempt& a) { set(a, delayed, "steps", {2, 3, 4, 5}); },
           .rank = 1,
           .mentions = {"`delayed_steps` line of arm free_graph"}},
          {.name = "one step in place of another",
           .change = [=](Attempt& a) { set(a, delayed, "steps", {2, 2, 4}); },
           .rank = 1,
           .mentions = {"`delayed_steps` line of arm free_graph"}},
          {.name = "nothing was compared",
           .change = [=](Attempt& a) { erase(a, free_run); },
           .rank = 1,
           .mentions = {"comparison `free_run`"},
           .also = {"D01.free_run"}},
      },
      "cuda");
}

TEST(DelayedWork, IsAskedOfTrainingOnGpusAlone) {
  for (const char* check : {"D13.late_eager", "D13.late_replays"}) {
    EXPECT_EQ(judge_one(
                  check, kGraphCase, [](Attempt&) {}, "sim")
                  .result,
              record::Result::not_applicable);
    EXPECT_EQ(judge_one(
                  check, {{"impl", "manual"}, {"dp", 2}, {"model", "collective"}}, [](Attempt&) {},
                  "cuda")
                  .result,
              record::Result::not_applicable);
  }
  EXPECT_EQ(judge_one(
                "D13.late_eager", {{"impl", "none"}}, [](Attempt&) {}, "cuda")
                .result,
            record::Result::pass);
  EXPECT_EQ(judge_one(
                "D13.late_eager", {{"impl", "none"}, {"steps", 2}}, [](Attempt&) {}, "cuda")
                .result,
            record::Result::pass)
      << "one late step";
  EXPECT_EQ(judge_one(
                "D13.late_replays", {{"impl", "none"}}, [](Attempt&) {}, "cuda")
                .result,
            record::Result::not_applicable);
}

}  // namespace
}  // namespace graphproof::checks
