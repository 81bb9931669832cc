#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

const json kParallel = {{"impl", "none"}, {"dp", 2}, {"microbatches", 2}};

const json kRouters = {{"impl", "none"},
                       {"model", "moe"},
                       {"experts", 4},
                       {"topk", 2},
                       {"dispatch", "dropless"},
                       {"dispatcher", "alltoall"},
                       {"router_z_loss", true},
                       {"router_aux_loss", true},
                       {"router_score_correction", true}};

/// Sets a field of all lines of this kind of a rank.
std::function<void(Attempt&)> all_with(std::size_t rank, const std::string& field, double value,
                                       const std::string& kind = "derivative") {
  return [=](Attempt& a) {
    for (Line& line : a.ranks[rank].evidence->lines)
      if (line.kind == kind) line.fields[field] = value;
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

TEST(Derivative, RowsOfTheLossesOfRouters) {
  const Where any{.rank = 0, .kind = "router_loss"};
  judge_rows("D92.derivative", kRouters,
             {
                 {.name = "a router's loss is left out (M451, M452)",
                  .change = all_with(0, "computed", 0.0, "router_loss"),
                  .rank = 0,
                  .mentions = {"the gradients that router_aux_loss adds are not its derivative",
                               "changes this loss by 0, measured by 0.00114 of 0.0571",
                               "both within 1e-05"}},
                 {.name = "a bound so wide that nothing could be found",
                  .change = all_with(0, "bound", 0.1, "router_loss"),
                  .rank = 0,
                  .mentions = {"`router_loss` line of router_aux_loss with a bound that is small "
                               "against its change"}},
                 {.name = "absent",
                  .change = [=](Attempt& a) { erase(a, any); },
                  .rank = 0,
                  .mentions = {"`router_loss` line of router_aux_loss"}},
             });
}

TEST(Derivative, ABalancingLossOfTokensThatUseAllExpertsIsConstant) {
  json all_experts = kRouters;
  all_experts["topk"] = 4;
  all_experts["router_z_loss"] = false;
  const auto constant = [](Attempt& a) {
    all_with(0, "computed", 0.0, "router_loss")(a);
    all_with(0, "measured", 0.0, "router_loss")(a);
  };
  EXPECT_EQ(judge_one("D92.derivative", all_experts, constant).result, record::Result::pass);
}

}  // namespace
}  // namespace graphproof::checks
