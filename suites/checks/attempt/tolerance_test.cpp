#include "suites/checks/attempt/tolerance.h"

#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;
using record::Result;

const json kTolerant = {{"impl", "full_iteration"},
                        {"tp", 2},
                        {"microbatches", 2},
                        {"embedding_gradient", "index_add"},
                        {"deterministic_algorithms", "off"},
                        {"tolerance", "gradients: rtol 0.01 atol 0.001"}};

/// Changes the lines `distances` of rank 1 of a comparison, from step `first` on.
std::function<void(Attempt&)> apart(const std::string& compared, json values,
                                    std::int64_t first = 0) {
  return [=](Attempt& attempt) {
    for (Line& line : attempt.ranks[1].evidence->lines)
      if (line.kind == "distances" && text(line, "compared") == compared &&
          *integer(line, "step") >= first)
        line.fields["tensors"][0].update(values);
  };
}

/// The comparisons whose names begin like that found the same bytes, on every rank.
std::function<void(Attempt&)> equal(const std::string& compared) {
  return [=](Attempt& attempt) {
    for (RankFiles& files : attempt.ranks) {
      std::vector<Line>& lines = files.evidence->lines;
      std::erase_if(lines, [&](const Line& line) {
        return line.kind == "distances" && text(line, "compared").starts_with(compared);
      });
      for (Line& line : lines)
        if (line.kind == "compare" && text(line, "compared").starts_with(compared)) {
          line.fields["equal"] = true;
          line.fields["mismatch"] = nullptr;
        }
      lines.back().fields["lines"] = lines.size() - 1;
    }
  };
}

// The clean attempt has eager runs that differ by 2^-23 of the largest element of a gradient, which
// is 0.5, and graphs that differ by three times as much; its bound of rounding is 3e-4 a step.
TEST(Tolerance, OfFreeRun) {
  judge_rows(
      "D01.free_run", kTolerant,
      {
          {.name = "within the rule, beyond the spread of eager runs",
           .change = apart("free_run", {{"max_abs", 5e-6}, {"right", 0.500005}}),
           .rank = 1,
           .mentions = {"`free_run`: free_graph differs from eager_a at step 4",
                        "`grad:embedding.weight` element 17 is 0.500005, off by 5e-06 (1e-05 of "
                        "the largest element); 311 of 1024 elements differ",
                        "the rule for gradients, 0.006 here (rtol 0.01, atol 0.001); the spread of "
                        "eager runs, 4.76837158e-07 here: 8 times 1.1920929e-07 of the largest "
                        "element (this decides); rounding, 0.00075 here: sums in another order",
                        "differs from itself"}},
          {.name = "the eager runs agree",
           .change = equal("eager_"),
           .rank = 0,
           .mentions = {"the spread of eager runs, 0: they agree byte for byte (this decides)",
                        "nothing in this case depends on chance"},
           .also = {"D01.lockstep", "D01.capture_inputs_last", "D02.graph_repeats",
                    "D06.freed_memory"}},
          {.name = "no number",
           .change = apart("free_run", {{"incomparable", 1}}),
           .rank = 1,
           .mentions = {"1 elements that are not finite in both arms"}},
          {.name = "integers",
           .change = apart("free_run", {{"resolution", 0}}),
           .rank = 1,
           .mentions = {"integers do not round"}},
          {.name = "another class",
           .change = apart("free_run", {{"tensor", "param:embedding.weight"}}),
           .rank = 1,
           .mentions = {"the case states no tolerance for parameters"}},
          {.name = "a mask",
           .change = apart("free_run", {{"tensor", "mask:0.0.core_attention"}}),
           .rank = 1,
           .mentions = {"the case states no tolerance for masks"}},
          {.name = "a tensor of zeros in eager",
           .change = apart("free_run", {{"largest", 0.0}}),
           .rank = 1,
           .mentions = {"(this decides)"}},
          {.name = "nobody knows how far apart",
           .change =
               [](Attempt& a) { erase(a, {.rank = 1, .kind = "distances", .name = "free_run"}); },
           .rank = 1,
           .mentions = {"no `distances` line that says how far apart"}},
      });
}

TEST(Tolerance, OfEagerRuns) {
  judge_rows(
      "D02.eager_repeats", kTolerant,
      {
          {.name = "beyond the rule",
           .change = apart("eager_repeats", {{"beyond_rtol", 0.002}}),
           .rank = 1,
           .mentions =
               {"solo_eager differs from eager_a at step 1",
                "the rule for gradients, 0.006 here (rtol 0.01, atol 0.001; all elements need "
                "0.002) (this decides)",
                "by more than the matrix accepts, so no graph can be held to it"}},
          {.name = "beyond rounding",
           .change = apart("eager_again", {{"max_abs", 0.01}}, 4),
           .rank = 1,
           .mentions = {"lockstep_eager differs from eager_a at step 4",
                        "rounding, 0.00075 here: sums in another order (this decides)",
                        "so something else differs too"}},
          {.name = "the third eager run was not compared",
           .change =
               [](Attempt& a) {
                 erase(a, {.rank = 1, .kind = "compare", .step = 4, .name = "eager_again"});
               },
           .rank = 1,
           .mentions = {"comparison `eager_again` of eager_a with lockstep_eager at step 4"}},
          {.name = "digests of gradients differ, and nothing says by how much",
           .change =
               [](Attempt& a) {
                 erase(a, {.rank = 1, .kind = "compare", .step = 2, .name = "eager_repeats"});
                 for (Line& line : a.ranks[1].evidence->lines)
                   if (line.kind == "step" && text(line, "arm") == "solo_eager" &&
                       *integer(line, "step") == 2)
                     line.fields["digest"]["grads"] = "00";
               },
           .rank = 1,
           .mentions = {"comparison `eager_repeats`, although digests differ at step 2"}},
          {.name = "digests of losses, which have no tolerance",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 1, .kind = "step", .arm = "solo_eager", .step = 2}, "loss_bits",
                     "00");
               },
           .rank = 1,
           .mentions = {"the digests of losses of arms eager_a and solo_eager differ at step 2"}},
      });
}

TEST(Tolerance, TheSmallestLimitThatIsExceededDecides) {
  json axes = kTolerant;
  axes["tolerance"] = "gradients: rtol 0 atol 1e-07";
  EXPECT_EQ(judge_one("D02.eager_repeats", axes, [](Attempt&) {}).result, Result::pass);
  const record::CheckResult of_rule =
      judge_one("D01.lockstep", axes, apart("lockstep", {{"beyond_rtol", 1.2e-7}}));
  EXPECT_EQ(of_rule.result, Result::fail);
  EXPECT_NE(of_rule.message.want.find("atol 1e-07; all elements need 1.2e-07) (this decides)"),
            std::string::npos)
      << of_rule.message.want;
  const auto wide = [](Attempt& a) { apart("eager_repeats", {{"max_abs", 6e-4}})(a); };
  EXPECT_EQ(judge_one("D01.lockstep", kTolerant,
                      [&](Attempt& a) {
                        wide(a);
                        apart("lockstep", {{"max_abs", 7e-4}}, 4)(a);
                      })
                .result,
            Result::pass);
  const record::CheckResult of_rounding = judge_one("D01.lockstep", kTolerant, [&](Attempt& a) {
    wide(a);
    apart("lockstep", {{"max_abs", 8e-4}}, 4)(a);
  });
  EXPECT_EQ(of_rounding.result, Result::fail);
  EXPECT_NE(of_rounding.message.want.find("sums in another order (this decides)"),
            std::string::npos)
      << of_rounding.message.want;
}

// A difference of a later step is no reason for one of an earlier step.
TEST(Tolerance, TheSpreadIsThatOfTheStepsSoFar) {
  const auto judged = [](std::int64_t spread_from) {
    return judge_one("D01.lockstep", kTolerant, [&](Attempt& a) {
      apart("eager_repeats", {{"max_abs", 1e-4}}, spread_from)(a);
      apart("lockstep", {{"max_abs", 2e-4}}, 3)(a);
    });
  };
  EXPECT_EQ(judged(3).result, Result::pass);
  EXPECT_EQ(judged(4).result, Result::fail);
}

TEST(Tolerance, APassSaysByHowMuchTheArmsDiffer) {
  EXPECT_EQ(judge_one("D01.lockstep", kTolerant, [](Attempt&) {}).message.got,
            "3 of 3 replayed steps equal on 2 ranks; within the tolerance: 3.57627869e-07 of a "
            "tensor's largest element at most, eager runs among themselves 1.1920929e-07");
  EXPECT_EQ(judge_one("D01.lockstep", kTolerant, [](Attempt& a) { equal("")(a); }).message.got,
            "3 of 3 replayed steps equal on 2 ranks; byte for byte, as the eager runs among "
            "themselves, so the tolerance was not used");
}

// Gradients that are within the tolerance under losses that are, too, were added up as eager's.
TEST(Tolerance, OfAccumulatedGradients) {
  const auto digests_differ = [](Attempt& a) {
    for (Line& line : a.ranks[1].evidence->lines)
      if (line.kind == "step" && text(line, "arm") == "lockstep_graph")
        line.fields["digest"]["grads"] = "00";
  };
  EXPECT_EQ(judge_one("D11.accumulated_gradients", kTolerant, digests_differ).result, Result::pass);
  EXPECT_EQ(judge_one("D11.accumulated_gradients", kTolerant,
                      [&](Attempt& a) {
                        digests_differ(a);
                        apart("lockstep", {{"max_abs", 1e-3}})(a);
                      })
                .result,
            Result::fail);
}

TEST(Tolerance, FreedMemoryMayNotMoveAResultFurther) {
  EXPECT_EQ(judge_one("D06.freed_memory", kTolerant, [](Attempt&) {}).result, Result::pass);
  EXPECT_EQ(
      judge_one("D06.freed_memory", kTolerant, apart("capture_inputs_last", {{"incomparable", 3}}))
          .result,
      Result::fail);
}

}  // namespace
}  // namespace graphproof::checks
