#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

const Where kLine{.rank = 1, .kind = "second_capture", .arm = "solo_graph"};

/// One difference in the graph of rank 1.
std::function<void(Attempt&)> differs(const char* what, const char* first, const char* second,
                                      const char* name = "aten::mul.Tensor") {
  return [=](Attempt& a) {
    set(a, kLine, "differing", 3);
    set(a, kLine, "found",
        json::array({{{"node", 17},
                      {"name", name},
                      {"what", what},
                      {"first", first},
                      {"second", second}}}));
  };
}

TEST(SecondCapture, Rows) {
  judge_rows(
      "D84.second_capture", kTwoRanks,
      {
          {.name = "a number that the host passed by value (M362)",
           .change = differs("argument other", "Double[] 1", "Double[] 0.5"),
           .rank = 1,
           .mentions = {"argument other of node 17 (aten::mul.Tensor) of graph training is another "
                        "one in a second capture",
                        "Double[] 0.5 in step 11, 2 more differences", "Double[] 1, as in step 2",
                        "passed a number by value"}},
          {.name = "another branch (M363)",
           .change = differs("nodes", "391", "392", "aten::nan_to_num_"),
           .rank = 1,
           .mentions = {"a second capture of graph training holds 392 nodes, first at node 17 "
                        "(aten::nan_to_num_)",
                        "391 nodes", "took another branch"}},
          {.name = "another kernel",
           .change = differs("kernel", "kernel aten::mul.Tensor", "kernel aten::div.Tensor"),
           .rank = 1,
           .mentions = {"took another branch"}},
          {.name = "another launch",
           .change = differs("launch", "grid 1x1x1", "grid 2x1x1"),
           .rank = 1,
           .mentions = {"chose another launch"}},
          {.name = "another edge",
           .change = differs("edges", "after 16", "after 15"),
           .rank = 1,
           .mentions = {"ordered its streams differently"}},
          {.name = "other memory",
           .change = differs("argument self", "memory 3", "another memory 3"),
           .rank = 1,
           .mentions = {"passed other memory"}},
          {.name = "the text of both captures was kept",
           .change =
               [](Attempt& a) {
                 differs("argument other", "1", "2")(a);
                 add(a, 1,
                     {{"kind", "node_dump"},
                      {"arm", "solo_graph"},
                      {"file", "rank-1.nodes.txt"},
                      {"reason", "graph training was captured otherwise a second time"},
                      {"bytes", 100}});
               },
           .rank = 1,
           .mentions = {"rank-1.nodes.txt"}},
          {.name = "differences without a name",
           .change = [](Attempt& a) { set(a, kLine, "differing", 1); },
           .rank = 1,
           .mentions = {"do not hold the same", "1 differences"}},
          {.name = "no second capture",
           .change = [](Attempt& a) { set(a, kLine, "nodes_again", 0); },
           .rank = 1,
           .mentions = {"0 nodes"}},
          {.name = "an empty graph twice",
           .change =
               [](Attempt& a) {
                 set(a, kLine, "nodes", 0);
                 set(a, kLine, "nodes_again", 0);
               },
           .rank = 1,
           .mentions = {"above zero"}},
          {.name = "another number of edges",
           .change = [](Attempt& a) { set(a, kLine, "edges_again", 1); },
           .rank = 1,
           .mentions = {"1 edges"}},
          {.name = "nodes of another kind",
           .change = [](Attempt& a) { set(a, kLine, "kinds_again", {{"kernel", 391}}); },
           .rank = 1,
           .mentions = {"391 kernel"}},
          {.name = "the host had not moved on",
           .change = [](Attempt& a) { set(a, kLine, "step_again", 2); },
           .rank = 1,
           .mentions = {"twice with the same state of the host"}},
          {.name = "the learning rate had not",
           .change =
               [](Attempt& a) {
                 set(a, kLine, "learning_rate", 0.09);
                 set(a, kLine, "learning_rate_again", 0.09);
               },
           .rank = 1,
           .mentions = {"twice with the same state of the host"}},
          {.name = "absent",
           .change = [](Attempt& a) { erase(a, kLine); },
           .rank = 1,
           .mentions = {"`second_capture` line of graph training of arm solo_graph"}},
          rank_died(kLine),
      });
}

TEST(SecondCapture, IsUnexercisedIfNoArgumentCanBeRead) {
  const auto result = judge_one("D84.second_capture", kTwoRanks, [](Attempt& a) {
    for (const int rank : {0, 1}) {
      const Where line{.rank = rank, .kind = "second_capture", .arm = "solo_graph"};
      set(a, line, "arguments", 0);
      set(a, line, "unread", 391);
    }
  });
  EXPECT_EQ(result.result, record::Result::unexercised);
}

TEST(SecondCapture, SaysHowMuchCouldNotBeRead) {
  const auto result =
      judge_one("D84.second_capture", kTwoRanks, [](Attempt& a) { set(a, kLine, "unread", 12); });
  EXPECT_EQ(result.result, record::Result::pass);
  EXPECT_NE(result.message.got.find("those of 12 nodes cannot be read"), std::string::npos);
}

}  // namespace
}  // namespace graphproof::checks
