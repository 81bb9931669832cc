#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

const json kParallel = {{"impl", "none"}, {"dp", 2}, {"microbatches", 2}};

/// Sets a field of all `derivative` lines of a rank.
std::function<void(Attempt&)> all_with(std::size_t rank, const std::string& field, double value) {
  return [=](Attempt& a) {
    for (Line& line : a.ranks[rank].evidence->lines)
      if (line.kind == "derivative") line.fields[field] = value;
    type_again(a);
  };
}

TEST(Derivative, Rows) {
  const Where any{.rank = 1, .kind = "derivative"};
  judge_rows(
      "D92.derivative", kParallel,
      {
          {.name = "a bias has no gradient (M420)",
           .change = all_with(1, "computed", 0.0),
           .rank = 1,
           .mentions = {"the gradient of `embedding.weight` is not the derivative of the "
                        "loss",
                        "changes the loss by 0, measured by 0.0312", "both within 0.0004"}},
          {.name = "a gradient twice as large",
           .change = all_with(0, "computed", 0.062),
           .rank = 0,
           .mentions = {"by 0.062, measured by 0.0312"}},
          {.name = "not a number",
           .change =
               [=](Attempt& a) {
                 for (Line& line : a.ranks[1].evidence->lines)
                   if (line.kind == "derivative") line.fields["measured"] = "nan";
                 type_again(a);
               },
           .rank = 1,
           .mentions = {"measured by nan"}},
          {.name = "bounds so wide that nothing could be found",
           .change =
               [](Attempt& a) {
                 all_with(0, "bound", 1.0)(a);
                 all_with(1, "bound", 1.0)(a);
               },
           .rank = 0,
           .mentions = {"small against the change of the loss", "4 groups of parameters: 0"}},
          {.name = "absent",
           .change = [=](Attempt& a) { erase(a, any); },
           .rank = 1,
           .mentions = {"`derivative` line of its share of the parameters"}},
          rank_died(any),
      });
}

}  // namespace
}  // namespace graphproof::checks
