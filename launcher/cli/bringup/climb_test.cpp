#include "launcher/cli/bringup/climb.h"

#include <gtest/gtest.h>

#include "matrix/testing/loaded_catalogue.h"

namespace graphproof::cli {
namespace {

using record::operator""_verdict;

const matrix::Machine kMachine{.device = "sim", .slots = 4, .stack = {}};

RungResult good() {
  return {.observed = "pass"_verdict,
          .reason = "",
          .checks = {{"D43.replays", record::Result::pass},
                     {"D01.lockstep", record::Result::pass},
                     {"D01.free_run", record::Result::pass}},
          .figures = {{"extra_memory_bytes", 2 << 20}},
          .reference = "r/c"};
}

struct ClimbTest : testing::Test {
  std::vector<Step> climb_to(const std::string& name, std::map<int, RungResult> results = {}) {
    ran.clear();
    std::vector<std::string> told;
    const auto steps = climb(
        matrix::case_from_name(matrix::catalogue().axes, name, "test"), matrix::catalogue(),
        kMachine,
        [&](const matrix::Case& one, const std::string&) {
          ran.push_back(matrix::case_name(matrix::catalogue().axes, one));
          const auto special = results.find(static_cast<int>(ran.size()));
          return special == results.end() ? good() : special->second;
        },
        [&](const Step& step) { told.push_back(step.name); });
    EXPECT_EQ(told.size(), steps.size());
    return steps;
  }
  std::vector<std::string> ran;
};

constexpr const char* kTarget = "impl=full_iteration,dp=2,overlap_grad_reduce=true";

TEST_F(ClimbTest, EveryStepIsTakenInItsOrder) {
  const auto steps = climb_to(kTarget);
  std::vector<std::string> names;
  for (const Step& step : steps) names.push_back(step.name);
  EXPECT_EQ(names, (std::vector<std::string>{"eager is stable", "shapes and options are fixed",
                                             "narrowest scope: attention alone is captured",
                                             "replay is proven", "numbers are those of eager",
                                             "wider: the whole scope, nothing overlaps",
                                             "wider: with overlap_grad_reduce"}));
  EXPECT_EQ(ran, (std::vector<std::string>{"dp=2,overlap_grad_reduce=true",
                                           "impl=local,modules=[attn],dp=2",
                                           "impl=full_iteration,dp=2", kTarget}));
  EXPECT_EQ(exit_code(steps), record::ExitCode::ok);
  EXPECT_NE(steps[3].why.find("2 MiB more memory"), std::string::npos) << steps[3].why;
}

TEST_F(ClimbTest, ItEndsAtTheFirstStepThatFails) {
  RungResult wrong = good();
  wrong.observed = "fail.numerics"_verdict;
  wrong.reason = "D01.lockstep failed";
  for (const int at : {1, 2, 3, 4}) {
    const auto steps = climb_to(kTarget, {{at, wrong}});
    EXPECT_EQ(ran.size(), static_cast<std::size_t>(at));
    EXPECT_EQ(steps.back().result, "fail");
    EXPECT_EQ(steps.back().why, "fail.numerics: D01.lockstep failed");
    EXPECT_EQ(exit_code(steps), record::ExitCode::product);
  }
}

TEST_F(ClimbTest, WhatWasNotShownIsNoPass) {
  RungResult silent = good();
  silent.checks["D43.replays"] = record::Result::unexercised;
  auto steps = climb_to(kTarget, {{2, silent}});
  EXPECT_EQ(steps.back().name, "replay is proven");
  EXPECT_EQ(exit_code(steps), record::ExitCode::coverage);
  silent = good();
  silent.checks.erase("D01.free_run");
  steps = climb_to(kTarget, {{2, silent}});
  EXPECT_EQ(steps.back().name, "numbers are those of eager");
  EXPECT_EQ(exit_code(steps), record::ExitCode::coverage);
  silent = good();
  silent.checks.erase("D43.replays");
  steps = climb_to(kTarget, {{4, silent}});
  EXPECT_EQ(steps.back().name, "replay is proven") << "a wider scope may fall back to eager";
  silent = good();
  silent.observed = "unexercised"_verdict;
  EXPECT_EQ(exit_code(climb_to(kTarget, {{1, silent}})), record::ExitCode::coverage);
  silent.observed = "infra.gpu"_verdict;
  EXPECT_EQ(exit_code(climb_to(kTarget, {{1, silent}})), record::ExitCode::infrastructure);
  silent.interrupted = true;
  EXPECT_EQ(exit_code(climb_to(kTarget, {{3, silent}})), record::ExitCode::interrupted);
}

TEST_F(ClimbTest, ATargetThatIsRefusedOrChangesItsShapesRunsOnlyEager) {
  auto steps = climb_to("impl=full_iteration,nan_check_loss=true");
  EXPECT_EQ(ran.size(), 1u);
  EXPECT_EQ(exit_code(steps), record::ExitCode::product);
  EXPECT_NE(steps.back().why.find("R035"), std::string::npos) << steps.back().why;
  steps = climb_to("impl=full_iteration,microbatches=2,shape_buckets=2");
  EXPECT_EQ(ran.size(), 1u);
  EXPECT_NE(steps.back().why.find("shape_buckets"), std::string::npos);
}

}  // namespace
}  // namespace graphproof::cli
