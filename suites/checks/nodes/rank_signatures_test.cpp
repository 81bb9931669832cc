#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const nlohmann::json kCensusAxes = {{"impl", "full_iteration"}, {"tp", 2}};

TEST(RankSignatures, Rows) {
  judge_rows(
      "D24.rank_signatures", kCensusAxes,
      {
          {.name = "rank 1 captured something else",
           .change = [](Attempt& a) { set(a, {.rank = 1, .kind = "capture"}, "signature", "ff"); },
           .rank = 1,
           .mentions = {"of rank 1 differs from that of rank 0", "signature ff"}},
          {.name = "rank 1 has another graph",
           .change =
               [](Attempt& a) {
                 for (const char* kind : {"capture", "host_work"})
                   set(a, {.rank = 1, .kind = kind, .arm = "lockstep_graph"}, "graph",
                       "validation");
               },
           .rank = 0,
           .mentions = {"validation"},
           .also = {"D15.census"}},
          {.name = "rank 1 has no capture",
           .change = [](Attempt& a) { erase(a, {.rank = 1, .kind = "capture"}); },
           .rank = 1,
           .mentions = {"rank 1 left no successful"},
           .also = {"D15.census", "D18.coverage", "D19.capture_status", "D31.pool_sharing",
                    "D37.warmed_up", "D84.second_capture"}},
          {.name = "rank 1 died",
           .change = [](Attempt& a) { die_before(a, {.rank = 1, .kind = "capture"}); },
           .want = record::Result::unexercised,
           .rank = std::nullopt,
           .mentions = {"rank 1"},
           .also = {"*"}},
      });
}

TEST(RankSignatures, OnlyThereMayKernelsHaveOtherNames) {
  const auto other_kernels = [](const nlohmann::json& axes) {
    return judge_one("D24.rank_signatures", axes,
                     [](Attempt& a) { set(a, {.rank = 1, .kind = "capture"}, "signature", "ff"); })
        .result;
  };
  EXPECT_EQ(other_kernels({{"impl", "full_iteration"}, {"cp", 2}}), record::Result::fail)
      << "no mamba layer";
  EXPECT_EQ(other_kernels({{"impl", "full_iteration"}, {"model", "hybrid"}, {"dp", 2}}),
            record::Result::fail)
      << "the same slice";
}

TEST(RankSignatures, ContextParallelRanksOfAMambaLayerHaveAsManyNodesOfEachKind) {
  judge_rows(
      "D24.rank_signatures", {{"impl", "full_iteration"}, {"model", "hybrid"}, {"cp", 2}},
      {
          {.name = "a kernel that loads one by one where the other rank's loads in vectors",
           .change = [](Attempt& a) { set(a, {.rank = 1, .kind = "capture"}, "signature", "ff"); },
           .want = record::Result::pass,
           .rank = std::nullopt,
           .mentions = {"equal on 2 ranks"}},
          {.name = "one kernel more",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 1, .kind = "capture"}, "census", {{"kernel", 121}});
                 set(a, {.rank = 1, .kind = "capture"}, "nodes", 121);
               },
           .rank = 1,
           .mentions = {"of rank 1 differs from that of rank 0"}},
      });
}

TEST(RankSignatures, PlacesInARingOfAttentionAreJudgedApart) {
  const nlohmann::json ring = {
      {"subject", "megatron_core"}, {"impl", "full_iteration"}, {"cp", 2}, {"tp", 2}};
  const auto other_work = [&](std::vector<int> ranks) {
    return judge_one("D24.rank_signatures", ring,
                     [&](Attempt& a) {
                       for (const int rank : ranks)
                         set(a, {.rank = rank, .kind = "capture"}, "signature", "ff");
                     })
        .result;
  };
  EXPECT_EQ(other_work({2, 3}), record::Result::pass) << "the second place, both ranks";
  EXPECT_EQ(other_work({3}), record::Result::fail) << "one of the two ranks there";
}

}  // namespace
}  // namespace graphproof::checks
