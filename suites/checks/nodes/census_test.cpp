#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

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
           .mentions =
               {"graph training of arm solo_graph holds other nodes than graph training of arm "
                "lockstep_graph",
                "signature 00"}},
          {.name = "the free run captured something else",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 0, .kind = "capture", .arm = "free_graph"}, "signature", "00");
               },
           .rank = 0,
           .mentions = {"arm free_graph"}},
          {.name = "an empty graph (M85)",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 0, .kind = "capture"}, "nodes", 0);
                 set(a, {.rank = 0, .kind = "capture"}, "census", nlohmann::json::object());
               },
           .rank = 0,
           .mentions = {"does not add up", "0 nodes, 0 counted"}},
          {.name = "miscounted",
           .change = [](Attempt& a) { set(a, {.rank = 0, .kind = "capture"}, "nodes", 390); },
           .rank = 0,
           .mentions = {"390 nodes, 391 counted"}},
          {.name = "no signature",
           .change = [](Attempt& a) { set(a, {.rank = 0, .kind = "capture"}, "signature", ""); },
           .rank = 0,
           .mentions = {"does not add up"}},
          {.name = "an arm without capture",
           .change =
               [](Attempt& a) { erase(a, {.rank = 0, .kind = "capture", .arm = "solo_graph"}); },
           .rank = 0,
           .mentions = {"successful `capture` line of arm solo_graph"},
           .also = {"D18.coverage", "D19.capture_status", "D37.warmed_up", "D84.second_capture"}},
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
           .mentions = {"`capture` line of graph training of arm free_graph"}},
          {.name = "the optimizer's graph is in no arm",
           .change =
               [=](Attempt& a) {
                 for (const char* arm : {"lockstep_graph", "free_graph", "solo_graph"})
                   capture(arm, "optimizer")(a);
               },
           .rank = 0,
           .mentions = {"`capture` line of graph optimizer of arm lockstep_graph"}},
          {.name = "the graph of evaluation",
           .change = capture("lockstep_graph", "validation"),
           .rank = 0,
           .mentions = {"`capture` line of graph validation of arm lockstep_graph"}},
      });
}

}  // namespace
}  // namespace graphproof::checks
