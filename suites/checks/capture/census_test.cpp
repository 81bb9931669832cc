#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const nlohmann::json kCensusAxes = {{"impl", "full_iteration"}, {"tp", 2}};

TEST(Census, Rows) {
  const Where second{.rank = 1, .kind = "capture", .arm = "solo_graph"};
  judge_rows(
      "D15.census", {{"impl", "full_iteration"}},
      {
          {.name = "another order of nodes",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 0, .kind = "capture", .arm = "solo_graph"}, "signature", "00");
               },
           .rank = 0,
           .said = {"graph training of arm solo_graph holds other nodes than graph training of arm "
                    "lockstep_graph",
                    "signature 00"}},
          {.name = "the free run captured something else",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 0, .kind = "capture", .arm = "free_graph"}, "signature", "00");
               },
           .rank = 0,
           .said = {"arm free_graph"}},
          {.name = "an empty graph (M85)",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 0, .kind = "capture"}, "nodes", 0);
                 set(a, {.rank = 0, .kind = "capture"}, "census", nlohmann::json::object());
               },
           .rank = 0,
           .said = {"does not add up", "0 nodes, 0 counted"}},
          {.name = "miscounted",
           .change = [](Attempt& a) { set(a, {.rank = 0, .kind = "capture"}, "nodes", 390); },
           .rank = 0,
           .said = {"390 nodes, 391 counted"}},
          {.name = "no signature",
           .change = [](Attempt& a) { set(a, {.rank = 0, .kind = "capture"}, "signature", ""); },
           .rank = 0,
           .said = {"does not add up"}},
          {.name = "an arm without capture",
           .change =
               [](Attempt& a) { erase(a, {.rank = 0, .kind = "capture", .arm = "solo_graph"}); },
           .rank = 0,
           .said = {"successful `capture` line of arm solo_graph"},
           .also = {"D18.coverage", "D19.capture_status", "D37.warmed_up"}},
      });
}

TEST(Census, EveryArmCapturesTheSameGraphs) {
  const auto capture = [](const char* arm, const char* graph) {
    return [=](Attempt& a) {
      std::erase_if(a.ranks[0].evidence->lines, [&](const Line& line) {
        return line.kind == "capture" && text(line, "arm") == arm && text(line, "graph") == graph;
      });
      set(a, {.rank = 0, .kind = "end"}, "lines", a.ranks[0].evidence->lines.size() - 1);
    };
  };
  judge_rows(
      "D15.census",
      {{"impl", "full_iteration"}, {"optimizer_graph", true}, {"schedule", "train-eval-train"}},
      {
          {.name = "one of two graphs in one arm",
           .change = capture("free_graph", "training"),
           .rank = 0,
           .said = {"`capture` line of graph training of arm free_graph"}},
          {.name = "the optimizer's in no arm",
           .change =
               [=](Attempt& a) {
                 for (const char* arm : {"lockstep_graph", "free_graph", "solo_graph"})
                   capture(arm, "optimizer")(a);
               },
           .rank = 0,
           .said = {"`capture` line of graph optimizer of arm lockstep_graph"}},
          {.name = "that of evaluation",
           .change = capture("lockstep_graph", "validation"),
           .rank = 0,
           .said = {"`capture` line of graph validation of arm lockstep_graph"}},
      });
}

TEST(RankSignatures, Rows) {
  judge_rows(
      "D24.rank_signatures", kCensusAxes,
      {
          {.name = "rank 1 captured something else",
           .change = [](Attempt& a) { set(a, {.rank = 1, .kind = "capture"}, "signature", "ff"); },
           .rank = 1,
           .said = {"of rank 1 differs from that of rank 0", "signature ff"}},
          {.name = "rank 1 has another graph",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 1, .kind = "capture", .arm = "lockstep_graph"}, "graph",
                     "validation");
               },
           .rank = 0,
           .said = {"validation"},
           .also = {"D15.census"}},
          {.name = "rank 1 has no capture",
           .change = [](Attempt& a) { erase(a, {.rank = 1, .kind = "capture"}); },
           .rank = 1,
           .said = {"rank 1 left no successful"},
           .also = {"D15.census", "D18.coverage", "D19.capture_status", "D31.pool_sharing",
                    "D37.warmed_up"}},
          {.name = "rank 1 died",
           .change = [](Attempt& a) { die_before(a, {.rank = 1, .kind = "capture"}); },
           .want = record::Result::unexercised,
           .rank = std::nullopt,
           .said = {"rank 1"},
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
           .said = {"equal on 2 ranks"}},
          {.name = "one kernel more",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 1, .kind = "capture"}, "census", {{"kernel", 121}});
                 set(a, {.rank = 1, .kind = "capture"}, "nodes", 121);
               },
           .rank = 1,
           .said = {"of rank 1 differs from that of rank 0"}},
      });
}

}  // namespace
}  // namespace graphproof::checks
