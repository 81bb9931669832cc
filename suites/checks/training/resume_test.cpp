#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const nlohmann::json kResumed = {
    {"impl", "manual"}, {"microbatches", 2}, {"dropout", true}, {"schedule", "resume"}};
constexpr std::int64_t kFirstRank = 4710;  // process id of rank 0 in a clean attempt

TEST(Resume, Rows) {
  const Where resumed{.rank = 0, .kind = "compare", .step = 3, .name = "resumed"};
  const Where loaded{.rank = 0, .kind = "compare", .step = 4, .name = "loaded"};
  const Where counted{.rank = 0, .kind = "resumed"};
  judge_rows("D47.resume", kResumed,
             {
                 {.name = "random numbers were not saved (M99)",
                  .change = [=](Attempt& a) { set(a, resumed, "equal", false); },
                  .rank = 0,
                  .mentions = {"`resumed`: resumed differs from lockstep_graph at step 3"}},
                 {.name = "loaded in a model whose graphs read other memory",
                  .change = [=](Attempt& a) { set(a, loaded, "equal", false); },
                  .rank = 0,
                  .mentions = {"`loaded`: loaded differs from lockstep_graph at step 4"}},
                 {.name = "the end was not compared",
                  .change = [=](Attempt& a) { erase(a, loaded); },
                  .rank = 0,
                  .mentions = {"comparison `loaded` of lockstep_graph with loaded"}},
                 {.name = "ran eagerly",
                  .change = [=](Attempt& a) { set(a, counted, "replays", 0); },
                  .rank = 0,
                  .mentions = {"the resumed job did not replay every step after its warm-up",
                               "got 0 replays from step 2 on", "want 4 from step 2 on"}},
                 {.name = "absent",
                  .change = [=](Attempt& a) { erase(a, counted); },
                  .rank = 0,
                  .mentions = {"`resumed` line"}},
             });
}

TEST(Resume, OfANewProcessIsAnotherProcessAndLoadsOnce) {
  nlohmann::json axes = kResumed;
  axes["resume_in"] = "new_process";
  axes["steps"] = 7;
  const Where resumed{.rank = 0, .kind = "compare", .step = 6, .name = "resumed"};
  const Where counted{.rank = 0, .kind = "resumed"};
  judge_rows(
      "D47.resume", axes,
      {
          {.name = "the optimizer's steps were forgotten (M440)",
           .change = [=](Attempt& a) { set(a, resumed, "equal", false); },
           .rank = 0,
           .mentions = {"`resumed`: resumed differs from lockstep_graph at step 6"}},
          {.name = "in the process that saved the checkpoint (M446)",
           .change = [=](Attempt& a) { set(a, counted, "process", kFirstRank); },
           .rank = 0,
           .mentions = {"the resumed job did not run in a new process", "want another process"}},
          {.name = "an older rank, which says nothing of its process",
           .change = [=](Attempt& a) { unset(a, counted, "process"); },
           .rank = 0,
           .mentions = {"the resumed job did not run in a new process", "no process of its own"}},
          {.name = "ran eagerly",
           .change = [=](Attempt& a) { set(a, counted, "replays", 0); },
           .rank = 0,
           .mentions = {"got 0 replays from step 3 on", "want 2 from step 3 on"}},
      });
}

TEST(Resume, LaunchesAsManyGraphsAsTheCompilerMade) {
  const nlohmann::json axes = {{"subject", "torch_compile"},
                               {"impl", "callables"},
                               {"schedule", "resume"},
                               {"resume_in", "new_process"},
                               {"steps", 7}};
  const auto launching = [&](std::int64_t replays, std::int64_t resumed) {
    return judge_one("D47.resume", axes,
                     [=](Attempt& a) {
                       for (const std::int64_t step : {2, 3, 4, 5, 6})
                         set(a,
                             {.rank = 0, .kind = "replay", .arm = "lockstep_graph", .step = step},
                             "replays", replays * (step - 1));
                       set(a, {.rank = 0, .kind = "resumed"}, "replays", resumed);
                     })
        .result;
  };
  EXPECT_EQ(launching(2, 4), record::Result::pass);
  EXPECT_EQ(launching(2, 3), record::Result::fail);
  EXPECT_EQ(launching(5, 10), record::Result::pass);
}

TEST(Resume, IsOfCasesThatSave) {
  EXPECT_EQ(record::name(judge_one("D47.resume", {{"impl", "manual"}}, [](Attempt&) {}).result),
            "not_applicable");
}

}  // namespace
}  // namespace graphproof::checks
