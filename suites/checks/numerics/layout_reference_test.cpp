#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

TEST(LayoutReference, Rows) {
  const Where losses{.rank = 1, .kind = "reference", .name = "losses"},
      gradients{.rank = 1, .kind = "reference", .name = "gradients"};
  judge_rows("D53.layout_reference", {{"impl", "none"}, {"tp", 2}},
             {
                 {.name = "beyond the bound",
                  .change =
                      [=](Attempt& a) {
                        set(a, gradients, "max_abs", 0.5);
                        set(a, gradients, "max_rel", 0.1);
                        set(a, gradients, "worst", "grad:mlp.up");
                      },
                  .rank = 1,
                  .mentions = {"the parallel arm's gradients differ from the single-rank model",
                               "0.5 (0.1 of the largest element) in `grad:mlp.up`",
                               "0.0031 at most: reordered sums"}},
                 {.name = "NaN",
                  .change = [=](Attempt& a) { set(a, losses, "max_abs", "nan"); },
                  .rank = 1,
                  .mentions = {"distance of losses", "is unknown"}},
                 {.name = "no largest difference",
                  .change = [=](Attempt& a) { set(a, losses, "max_abs", "inf"); },
                  .rank = 1,
                  .mentions = {"is unknown"}},
                 {.name = "no largest element",
                  .change = [=](Attempt& a) { set(a, losses, "max_rel", "nan"); },
                  .rank = 1,
                  .mentions = {"is unknown"}},
                 {.name = "no bound",
                  .change = [=](Attempt& a) { set(a, losses, "bound", "nan"); },
                  .rank = 1,
                  .mentions = {"is unknown"}},
                 {.name = "a negative difference",
                  .change = [=](Attempt& a) { set(a, losses, "max_abs", -1.0); },
                  .rank = 1,
                  .mentions = {"is unknown"}},
                 {.name = "a negative ratio",
                  .change = [=](Attempt& a) { set(a, losses, "max_rel", -1.0); },
                  .rank = 1,
                  .mentions = {"is unknown"}},
                 {.name = "a negative bound",
                  .change = [=](Attempt& a) { set(a, losses, "bound", -1.0); },
                  .rank = 1,
                  .mentions = {"is unknown"}},
                 {.name = "an infinite bound",
                  .change = [=](Attempt& a) { set(a, losses, "bound", "inf"); },
                  .rank = 1,
                  .mentions = {"is unknown"}},
                 {.name = "as far as a defect, within a bound that is too wide",
                  .change =
                      [=](Attempt& a) {
                        set(a, losses, "bound", 3.0);
                        set(a, losses, "max_abs", 0.3);
                        set(a, losses, "max_rel", 0.06);
                      },
                  .rank = 1,
                  .mentions = {"as far as a defect may move them", "0.06 of the largest element",
                               "0.05 at most"}},
                 {.name = "no tensor",
                  .change = [=](Attempt& a) { set(a, losses, "tensors", 0); },
                  .rank = 1,
                  .mentions = {"is unknown"}},
                 {.name = "gradients absent",
                  .change = [=](Attempt& a) { erase(a, gradients); },
                  .rank = 1,
                  .mentions = {"`reference` line whose compared quantity begins with grad"}},
                 {.name = "the rank died",
                  .change = [=](Attempt& a) { die_before(a, losses); },
                  .want = record::Result::unexercised,
                  .rank = std::nullopt,
                  .mentions = {"rank 1"},
                  .also = {"*"}},
             });
}

TEST(LayoutReference, EqualIsWithinAnyBound) {
  const record::CheckResult result = judge_one("D53.layout_reference", {{"tp", 2}}, [](Attempt& a) {
    for (const char* key : {"max_abs", "max_rel", "bound"})
      set(a, {.rank = std::nullopt, .kind = "reference"}, key, 0.0);
  });
  EXPECT_EQ(result.result, record::Result::pass);
}

TEST(LayoutReference, WantsLossesFromTheLastStageOfAPipelineAlone) {
  const auto without = [](int rank) {
    return judge_one("D53.layout_reference", {{"impl", "none"}, {"pp", 2}}, [rank](Attempt& a) {
      erase(a, {.rank = rank, .kind = "reference", .name = "losses"});
    });
  };
  EXPECT_EQ(without(0).result, record::Result::pass) << record::to_text(without(0).message);
  EXPECT_NE(without(1).result, record::Result::pass);
}

}  // namespace
}  // namespace graphproof::checks
