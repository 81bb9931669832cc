// The verbs plan and order, and mistakes in matrix files.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "launcher/cli/device_option.h"
#include "launcher/cli/planning.h"
#include "launcher/cli/testing/command_under_test.h"

namespace graphproof::cli {
namespace {

struct PlanVerbTest : CommandUnderTest {
  Printed plan(const std::string& members, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{
        "plan", "--device", "sim", "--matrix",
        file("m.json", "{\"schema\": \"graphproof-matrix/1\",\n" + members + "}")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return cli(arguments);
  }
};

TEST_F(PlanVerbTest, PrintsWhatWasRemovedByWhatAndWhatRemovedNothing) {
  const Printed printed = plan(
      R"("axes": {"impl": ["none", "full_iteration"], "nan_check_loss": [false, true],
                  "tp": [1, 2]},
      "require": [{"id": "A", "expr": "tp == 1 or impl == none", "why": "w"},
                  {"id": "B", "expr": "tp < 9", "why": "w"}], "profiles": {"p": {}})");
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  for (const char* text :
       {"8 raw  5 valid  0 filtered  0 negative  0 faults  5 cases planned\n",
        "  removed      2 by R035\n", "  removed      1 by A\n", ", B\n", " rank-minutes\n"})
    EXPECT_NE(printed.out.find(text), std::string::npos) << text << printed.out;
}

TEST_F(PlanVerbTest, ExplainNamesTheRuleOfEachPair) {
  const Printed printed = plan(
      R"("axes": {"impl": ["none", "full_iteration"], "nan_check_loss": [false, true]},
         "profiles": {"p": {}})",
      {"--explain", "unreachable"});
  EXPECT_NE(
      printed.out.find("  unreachable impl == full_iteration and nan_check_loss == true: R035\n"),
      std::string::npos)
      << printed.out;
}

TEST_F(PlanVerbTest, AnEarlierPlanIsExtended) {
  const std::string axes =
      R"("axes": {"impl": ["none", "manual", "full_iteration"], "tp": [1, 2], "dp": [1, 2],
                  "microbatches": [1, 2]}, "profiles": {"p": {"cover": 2}})";
  const Printed first = plan(axes, {"--json"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const std::string earlier = file("plan.jsonl", first.out);
  const auto cases = std::count(first.out.begin(), first.out.end(), '\n');
  const Printed again = plan(axes, {"--extend", earlier});
  EXPECT_NE(again.out.find("  of the earlier plan " + std::to_string(cases) +
                           " kept, 0 repaired, 0 dropped; 0 new\n"),
            std::string::npos)
      << again.out << again.err;
  EXPECT_NE(plan(axes, {"--extend", "nowhere"}).err.find("nowhere"), std::string::npos);
}

TEST_F(PlanVerbTest, WhereRanksShareGpusThereIsRoomForMoreOfThem) {
  const launcher::Device device{.name = "cuda",
                                .rank_program = {},
                                .stack = {},
                                .gpus = {"0", "1"},
                                .slots = 2,
                                .note = {},
                                .sharing = {.ranks_per_gpu = 2}};
  EXPECT_EQ(machine_of(device).slots, 4);
  std::vector<record::PlanLine> lines(4);
  lines[0].ranks = 8;
  lines[1].ranks = 4;
  lines[2].ranks = 2;
  lines[3].ranks = 4;
  for (record::PlanLine& line : lines) {
    line.axes = {{"model", "gpt"}};
    line.required_checks = {"D01.lockstep", "D31.device_trend"};
  }
  lines[3].axes["model"] = "collective";
  skip_too_large(lines, device);
  apply_gpu_sharing(lines, device, catalogue.checks);
  EXPECT_EQ(lines[0].skip.value().why, "8 ranks, but this machine has room for 4");
  EXPECT_FALSE(lines[1].skip);
  EXPECT_EQ(lines[1].required_checks, std::vector<std::string>{"D01.lockstep"})
      << "what the driver counts is not one rank's";
  EXPECT_FALSE(lines[2].skip);
  EXPECT_EQ(lines[2].required_checks.size(), 2u) << "each has a GPU";
  EXPECT_EQ(lines[3].skip.value().why,
            "it tests how NCCL reaches other GPUs of a host, but 4 ranks would share 2");
}

TEST_F(PlanVerbTest, SeedChoosesTheSample) {
  const std::string members =
      R"("axes": {"tp": [1, 2], "dp": [1, 2], "microbatches": [1, 2, 4], "dropout": [false, true]},
         "profiles": {"p": {"sample": 6}})";
  EXPECT_EQ(plan(members, {"--seed", "7"}).out, plan(members, {"--seed", "7"}).out);
  EXPECT_NE(plan(members, {"--seed", "7"}).out, plan(members, {"--seed", "8"}).out);
}

TEST_F(PlanVerbTest, WhatIsNoFileIsRefusedAtOnce) {
  std::filesystem::create_directory(top / "folder");
  const std::string sparse = file("large.json", "{");
  std::filesystem::resize_file(sparse, std::uintmax_t{40} << 20);
  const std::string huge = file("huge.json", "{");
  std::filesystem::resize_file(huge, std::uintmax_t{1} << 40);
  const struct {
    std::string path;
    const char* says;
  } rows[] = {{"/dev/zero", "a device"},
              {top / "folder", "a folder"},
              {top / "gone.json", "No such file"},
              {sparse, "the matrix file is too large"},
              {sparse, "41943040 bytes"},
              {sparse, "large.json:1:1"},
              {huge, "1099511627776 bytes or more"}};
  for (const auto& row : rows) {
    const auto began = std::chrono::steady_clock::now();
    const Printed printed = cli({"plan", "--device", "sim", "--matrix", row.path});
    EXPECT_EQ(printed.exit_code, 2) << row.path;
    EXPECT_NE(printed.err.find(row.says), std::string::npos) << printed.err;
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5)) << row.path;
  }
}

TEST_F(PlanVerbTest, FilesOfAFolderExtendTheirNeighbours) {
  std::filesystem::create_directory(top / "sub");
  file("sub/base.json",
       R"({"schema": "graphproof-matrix/1", "axes": {"tp": [1, 2]}, "profiles": {"p": {}}})");
  file("sub/more.json",
       R"({"schema": "graphproof-matrix/1", "extends": "base.json", "axes": {"dp": [1, 2]}})");
  const Printed printed = plan(R"("extends": "sub/more.json")");
  EXPECT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_NE(printed.out.find("4 raw  4 valid"), std::string::npos) << printed.out;

  file("a.json", R"({"schema": "graphproof-matrix/1", "extends": "b.json"})");
  file("b.json", R"({"schema": "graphproof-matrix/1", "extends": "a.json"})");
  const Printed circle =
      cli({"plan", "--device", "sim", "--matrix", top / "a.json", "--profile", "p"});
  EXPECT_EQ(circle.exit_code, 2);
  EXPECT_NE(circle.err.find("files that extend each other without end"), std::string::npos)
      << circle.err;
  EXPECT_NE(circle.err.find((top / "a.json").string() + " -> " + (top / "b.json").string() +
                            " -> " + (top / "a.json").string()),
            std::string::npos)
      << circle.err;
}

// The verb order. The orders themselves are tested in workloads/pipeline/pipeline_order_test.cpp.

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
