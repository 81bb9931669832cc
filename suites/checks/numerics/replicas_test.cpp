#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

const json kReplicas = {{"impl", "none"}, {"dp", 2}, {"microbatches", 2}};

/// Gives a rank other parameters after step 4 in every arm.
std::function<void(Attempt&)> astray(int rank) {
  return [=](Attempt& a) {
    for (Line& line : a.ranks[static_cast<std::size_t>(rank)].evidence->lines)
      if (line.kind == "step" && integer(line, "step") == 4)
        line.fields["digest"]["params"] = "ffffffffffffffff";
  };
}

TEST(Replicas, Rows) {
  const Where last{.rank = 1, .kind = "step", .arm = "eager_a", .step = 4};
  judge_rows("D53.replicas", kReplicas,
             {
                 {.name = "one rank differs in the last step",
                  .change = astray(1),
                  .rank = 1,
                  .mentions = {"the parameters of rank 1 are not those of rank 0 after step 4",
                               "digest ffffffffffffffff"}},
                 {.name = "no step",
                  .change = [=](Attempt& a) { erase(a, last); },
                  .rank = 1,
                  .mentions = {"`step` line of arm eager_a at step 4"},
                  .also = {"*"}},
                 {.name = "the rank died",
                  .change = [=](Attempt& a) { die_before(a, last); },
                  .want = record::Result::unexercised,
                  .rank = std::nullopt,
                  .mentions = {"rank 1"},
                  .also = {"*"}},
             });
}

TEST(Replicas, AreThoseOfOneStageOnePartOfTheDenseModelAndOneOfTheExperts) {
  const auto judged = [](json axes, int rank) {
    axes["impl"] = "none";
    axes["microbatches"] = 4;
    return judge_one("D53.replicas", axes, astray(rank)).result;
  };
  json moe = {{"dp", 4},
              {"ep", 2},
              {"model", "moe"},
              {"experts", 4},
              {"topk", 2},
              {"dispatch", "drop_and_pad"},
              {"dispatcher", "alltoall"}};
  EXPECT_EQ(judged({{"tp", 2}}, 1), record::Result::not_applicable)
      << "another part of the dense model";
  EXPECT_EQ(judged({{"pp", 2}}, 1), record::Result::not_applicable) << "another stage";
  EXPECT_EQ(judged({{"tp", 2}, {"dp", 2}}, 2), record::Result::fail) << "0 and 2 hold the same";
  EXPECT_EQ(judged({{"tp", 2}, {"cp", 2}}, 3), record::Result::fail) << "1 and 3 hold the same";
  EXPECT_EQ(judged({{"pp", 2}, {"dp", 2}}, 3), record::Result::fail) << "2 and 3 hold the same";
  EXPECT_EQ(judged(moe, 2), record::Result::fail) << "0 and 2 hold the same experts";
  moe["ep"] = 4;
  EXPECT_EQ(judged(moe, 2), record::Result::not_applicable) << "every rank has experts of its own";
  EXPECT_EQ(judged({{"dp", 2},
                    {"distributed_optimizer", true},
                    {"overlap_grad_reduce", true},
                    {"overlap_param_gather", true}},
                   1),
            record::Result::not_applicable);
}

}  // namespace
}  // namespace graphproof::checks
