#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

/// Gives a rank another digest of one part from step 4 on.
std::function<void(Attempt&)> astray(std::size_t rank, const std::string& what,
                                     const std::string& part) {
  return [=](Attempt& a) {
    std::size_t changed = 0;
    for (Line& line : a.ranks[rank].evidence->lines) {
      if (line.kind != "held" || integer(line, "step") < 4) continue;
      if (text(line, "what") != what || text(line, "part") != part) continue;
      line.fields["digest"] = "ffffffffffffffff";
      ++changed;
    }
    if (changed == 0) throw std::logic_error("no `held` line of " + what + ", " + part);
    type_again(a);
  };
}

const json kTensorParallel = {
    {"impl", "none"}, {"tp", 2}, {"microbatches", 2}, {"optimizer", "adam"}};

TEST(CopiesAgree, Rows) {
  const Where last{.rank = 1, .kind = "held", .arm = "eager_a", .step = 4};
  judge_rows("D80.copies_agree", kTensorParallel,
             {
                 {.name = "norms drift apart",
                  .change = astray(1, "parameters", "whole"),
                  .rank = 1,
                  .mentions = {"the parameters that every rank of a stage holds whole of rank 1 "
                               "are not those of rank 0 after step 4",
                               "digest ffffffffffffffff", "different models"}},
                 {.name = "the moments of norms drift apart",
                  .change = astray(1, "state", "whole"),
                  .rank = 1,
                  .mentions = {"the optimizer's state of what every rank of a stage holds whole"}},
                 {.name = "the step numbers drift apart",
                  .change = astray(1, "state", "model"),
                  .rank = 1,
                  .mentions = {"the optimizer's step number, loss scale and gradient norm"}},
                 {.name = "one rank has other tensors",
                  .change =
                      [=](Attempt& a) {
                        set(a, {.rank = 1, .kind = "held", .arm = "eager_a", .step = 2}, "tensors",
                            8);
                      },
                  .rank = 1,
                  .mentions = {"after step 2"}},
                 {.name = "absent",
                  .change = [=](Attempt& a) { erase(a, last); },
                  .rank = 1,
                  .mentions = {"`held` line of the parameters"}},
                 {.name = "absent on all ranks",
                  .change = [](Attempt& a) { erase(a, {.rank = {}, .kind = "held"}); },
                  .rank = 0,
                  .mentions = {"`held` line of the parameters that every rank of a stage holds"}},
                 rank_died(last),
             });
}

TEST(CopiesAgree, EachPartIsComparedWithAllRanksThatHaveIt) {
  const auto judged = [](json axes, std::size_t rank, const char* what, const char* part) {
    axes["impl"] = "none";
    axes["microbatches"] = 4;
    axes["optimizer"] = "adam";
    return judge_one("D80.copies_agree", axes, astray(rank, what, part));
  };
  const auto fails = [&](const json& axes, std::size_t rank, const char* what, const char* part) {
    const record::CheckResult result = judged(axes, rank, what, part);
    return result.result == record::Result::fail && result.rank == static_cast<int>(rank);
  };
  const json tp_dp = {{"tp", 2}, {"dp", 2}};
  EXPECT_TRUE(fails(tp_dp, 1, "parameters", "whole")) << "over tensor parallel ranks";
  EXPECT_TRUE(fails(tp_dp, 3, "parameters", "split")) << "over data parallel ranks";
  EXPECT_EQ(judged({{"tp", 2}}, 1, "parameters", "split").result, record::Result::pass)
      << "each rank has another part";
  EXPECT_TRUE(fails({{"pp", 2}, {"tied_embeddings", true}}, 1, "parameters", "tied"));
  EXPECT_TRUE(fails({{"pp", 2}, {"mtp_num_layers", 1}}, 1, "parameters", "tied"));
  EXPECT_TRUE(fails({{"pp", 2}}, 1, "state", "model")) << "over stages";
  EXPECT_EQ(judged({{"pp", 2}}, 1, "state", "whole").result, record::Result::pass)
      << "each stage has layers of its own";
  json moe = {{"dp", 4},
              {"ep", 2},
              {"model", "moe"},
              {"experts", 4},
              {"topk", 2},
              {"dispatch", "drop_and_pad"},
              {"dispatcher", "alltoall"},
              {"router_score_correction", true}};
  EXPECT_TRUE(fails(moe, 2, "parameters", "experts")) << "0 and 2 hold the same experts";
  EXPECT_TRUE(fails(moe, 1, "state", "routers"));
  moe["ep"] = 4;
  EXPECT_EQ(judged(moe, 2, "parameters", "experts").result, record::Result::pass);
  const json sharded = {{"tp", 2}, {"dp", 2}, {"distributed_optimizer", true}};
  EXPECT_TRUE(fails(sharded, 2, "parameters", "split"));
  EXPECT_TRUE(fails(sharded, 1, "state", "whole"))
      << "the same elements over tensor parallel ranks";
  EXPECT_EQ(judged(sharded, 2, "state", "split").result, record::Result::pass)
      << "each rank owns other elements";
}

TEST(CopiesAgree, AStageInTheMiddleMayHoldNothingInCommonWithAnother) {
  const json axes = {{"impl", "none"},      {"pp", 4},
                     {"microbatches", 4},   {"layers", 4},
                     {"precision", "bf16"}, {"tied_embeddings", true}};
  const auto judged = [&](const std::function<void(Attempt&)>& change) {
    return judge_one("D80.copies_agree", axes, change).result;
  };
  EXPECT_EQ(judged([](Attempt&) {}), record::Result::pass);
  EXPECT_EQ(judged([](Attempt& a) { erase(a, {.rank = 1, .kind = "held"}); }),
            record::Result::fail);
  EXPECT_EQ(judged(astray(3, "parameters", "tied")), record::Result::fail);
}

}  // namespace
}  // namespace graphproof::checks
