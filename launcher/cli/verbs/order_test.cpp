// The verb order. The orders themselves are tested in workloads/pipeline/pipeline_order_test.cpp.
#include <gtest/gtest.h>

#include "launcher/cli/testing/command_under_test.h"

namespace graphproof::cli {
namespace {

using OrderVerbTest = CommandUnderTest;
using nlohmann::json;

TEST_F(OrderVerbTest, PrintsOrderWarmupAndBuffersOfAStage) {
  const Printed printed = cli(
      {"order", "--pp", "2", "--pp-rank", "0", "--microbatches", "4", "--layers", "2", "--json"});
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_EQ(json::parse(printed.out), (json{{"order", {1, 1, -1, 1, -1, 1, -1, -1}},
                                            {"warmup", 1},
                                            {"buffers", {0, 1, 2, 3, 0, 1, 2, 3}}}));
  const Printed text = cli({"order", "--pp", "2", "--pp-rank", "0", "--microbatches", "4"});
  EXPECT_EQ(text.out, "order    1 1 -1 1 -1 1 -1 -1\nwarm-up  1\nbuffers  0 1 0 1\n");
}

TEST_F(OrderVerbTest, ExpandsLayersWithTagsAndHalfEntriesForWeightGradients) {
  const Printed printed = cli({"order", "--pp", "1", "--pp-rank", "0", "--microbatches", "1",
                               "--layers", "3", "--overlap-ep", "--wgrad", "--json"});
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  const json order = json::parse(printed.out);
  EXPECT_EQ(order.at("order").dump(), "[1,2,3,-3,-3.5,-2,-2.5,-1,-1.5]");
  EXPECT_EQ(order.at("tags").dump(), "[[0,0],[0,1],[0,2],null,null,null,null,null,null]");
  EXPECT_EQ(order.at("buffers").dump(), "[0,1,2]");
}

TEST_F(OrderVerbTest, InterleavedStagesTakeTheirGroupFromThePipelineSize) {
  const Printed as_given = cli({"order", "--pp", "2", "--pp-rank", "1", "--vpp", "2",
                                "--microbatches", "4", "--group", "2", "--json"});
  const Printed by_default =
      cli({"order", "--pp", "2", "--pp-rank", "1", "--vpp", "2", "--microbatches", "4", "--json"});
  EXPECT_EQ(as_given.out, by_default.out);
  EXPECT_EQ(json::parse(by_default.out).at("order").dump(),
            "[1,1,2,-2,2,-2,1,-1,1,-1,2,-2,2,-2,-1,-1]");
}

TEST_F(OrderVerbTest, WhatNoPipelineHasIsAUsageErrorThatSaysWhatToChange) {
  const struct {
    std::vector<std::string> more;
    const char* part;
  } rows[] = {{{"--wgrad"}, "got   --wgrad without --overlap-ep"},
              {{"--layers", "2,1"}, "got   2 numbers for 1 chunks"},
              {{"--layers", "-1"}, "a number of --layers is out of range"},
              {{"--vpp", "0"}, "a pipeline's chunks"},
              {{"--pp-rank", "2"}, "a pipeline's rank"},
              {{"--group", "0"}, "the command line of `order` can't be read"},
              {{"--microbatches", "0"}, "a pipeline's microbatches"},
              {{"--microbatches", "9000000000"}, "the order is too long"},
              {{"--layer", "2"}, "--layers"}};
  for (const auto& row : rows) {
    std::vector<std::string> arguments = {"order"};
    for (const auto& [name, value] :
         {std::pair{"--pp", "2"}, {"--pp-rank", "0"}, {"--microbatches", "4"}})
      if (row.more[0] != name) arguments.insert(arguments.end(), {name, value});
    arguments.insert(arguments.end(), row.more.begin(), row.more.end());
    const Printed printed = cli(arguments);
    EXPECT_EQ(printed.exit_code, 2) << printed.err;
    EXPECT_NE(printed.err.find(row.part), std::string::npos) << printed.err;
    EXPECT_NE(printed.err.find("\n  next  "), std::string::npos) << printed.err;
  }
}

}  // namespace
}  // namespace graphproof::cli
