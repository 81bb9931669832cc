#include <gtest/gtest.h>

#include <algorithm>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const nlohmann::json kEvaluated = {{"impl", "full_iteration"},
                                   {"microbatches", 2},
                                   {"dropout", true},
                                   {"schedule", "train-eval-train"}};

/// Removes the last line of a kind in the step of the evaluations. In clean evidence it belongs to
/// a replay of evaluation.
std::function<void(Attempt&)> without_one(const char* kind) {
  return [=](Attempt& a) {
    auto& lines = a.ranks[0].evidence->lines;
    const auto last = std::find_if(lines.rbegin(), lines.rend(), [=](const Line& line) {
      return line.kind == kind && integer(line, "step") == 2;
    });
    lines.erase(std::next(last).base());
    set(a, {.rank = 0, .kind = "end"}, "lines", lines.size() - 1);
  };
}

TEST(Evaluation, Rows) {
  const Where compared{.rank = 0, .kind = "compare", .step = 1, .name = "evaluation"};
  const Where repeated{.rank = 0, .kind = "compare", .step = 4, .name = "evaluation_repeats"};
  const Where later{.rank = 0, .kind = "compare", .step = 5, .name = "evaluation_later"};
  const Where counted{.rank = 0, .kind = "evaluated"};
  judge_rows(
      "D47.evaluation", kEvaluated,
      {
          {.name = "the graph of training was replayed (M111)",
           .change = [=](Attempt& a) { set(a, compared, "equal", false); },
           .rank = 0,
           .mentions = {"`evaluation`: lockstep_graph differs from lockstep_eager at step 1"}},
          {.name = "random numbers in evaluation",
           .change = [=](Attempt& a) { set(a, repeated, "equal", false); },
           .rank = 0,
           .mentions =
               {"`evaluation_repeats`: lockstep_graph differs from lockstep_graph at step 4"}},
          {.name = "parameters of the capture in a later evaluation (M355)",
           .change = [=](Attempt& a) { set(a, later, "equal", false); },
           .rank = 0,
           .mentions =
               {"`evaluation_later`: lockstep_graph differs from lockstep_eager at step 5"}},
          {.name = "no later evaluation",
           .change = [=](Attempt& a) { erase(a, later); },
           .rank = 0,
           .mentions = {"comparison `evaluation_later`"}},
          {.name = "without a repetition",
           .change = [=](Attempt& a) { erase(a, repeated); },
           .rank = 0,
           .mentions = {"comparison `evaluation_repeats` of lockstep_graph with lockstep_graph"}},
          {.name = "ran eagerly",
           .change = [=](Attempt& a) { set(a, counted, "replays", 0); },
           .rank = 0,
           .mentions = {"evaluation did not run from the expected graphs",
                        "got 6 evaluations, 1 captures, 0 replays",
                        "want 6 evaluations, 1 captures, 4 replays"}},
          {.name = "a replay that was not announced",
           .change = [=](Attempt& a) { set(a, counted, "announced", 2); },
           .rank = 0,
           .mentions = {"replays of evaluation were not announced", "2 of 4 announced"}},
          {.name = "no count of announced replays",
           .change = [=](Attempt& a) { unset(a, counted, "announced"); },
           .rank = 0,
           .mentions = {"unknown of 4 announced"}},
          {.name = "one of the batches was not compared",
           .change = [=](Attempt& a) { erase(a, compared); },
           .rank = 0,
           .mentions = {"comparison `evaluation` at step 1"}},
          {.name = "the first batch was not compared",
           .change =
               [=](Attempt& a) {
                 erase(a, {.rank = 0, .kind = "compare", .step = 0, .name = "evaluation"});
               },
           .rank = 0,
           .mentions = {"comparison `evaluation` at step 0"}},
          {.name = "a replay without an `address` line",
           .change = without_one("address"),
           .rank = 0,
           .mentions = {"`address` line of each of 4 replays of evaluation"}},
          {.name = "a replay without a `poison` line",
           .change = without_one("poison"),
           .rank = 0,
           .mentions = {"`poison` line of each of 4 replays of evaluation"}},
          {.name = "absent",
           .change = [=](Attempt& a) { erase(a, counted); },
           .rank = 0,
           .mentions = {"`evaluated` line"}},
      });
}

TEST(Evaluation, OfOtherEnginesIsEager) {
  nlohmann::json axes = kEvaluated;
  for (const char* impl : {"local", "transformer_engine", "callables", "manual"}) {
    axes["impl"] = impl;
    EXPECT_EQ(record::name(judge_one("D47.evaluation", axes, [](Attempt&) {}).result), "pass")
        << impl;
    const record::CheckResult result = judge_one("D47.evaluation", axes, [](Attempt& a) {
      set(a, {.rank = 0, .kind = "evaluated"}, "replays", 4);
    });
    EXPECT_EQ(record::name(result.result), "fail") << impl;
  }
}

TEST(Evaluation, BeforeRevisionFiveNobodyWatchedIt) {
  judge_rows(
      "D47.evaluation", kEvaluated,
      {{.name = "no count of announced replays",
        .change = [](Attempt& a) { unset(a, {.rank = 0, .kind = "evaluated"}, "announced"); },
        .want = record::Result::pass,
        .rank = std::nullopt,
        .mentions = {}},
       {.name = "absent",
        .change = [](Attempt& a) { erase(a, {.rank = 0, .kind = "evaluated"}); },
        .rank = 0,
        .mentions = {"`evaluated` line"}}},
      "sim", 4);
}

TEST(Evaluation, IsOfCasesThatEvaluate) {
  EXPECT_EQ(record::name(judge_one("D47.evaluation", {{"impl", "manual"}}, [](Attempt&) {}).result),
            "not_applicable");
}

}  // namespace
}  // namespace graphproof::checks
