#include "reports/analysis/advice.h"

#include <gtest/gtest.h>

namespace graphproof::reports {
namespace {

using record::operator""_verdict;
using Figures = std::map<std::string, double>;

RunResult gpu_run(const char* device = "cuda") {
  RunResult run;
  run.run.device = device;
  run.run.slots = 1;
  run.run_name = "latest";
  return run;
}

CaseResult timed_case(Figures figures, nlohmann::json axes = {}) {
  CaseResult one;
  one.plan.id = "0123456789abcdef";
  one.plan.axes = {{"subject", "torch"}, {"precision", "fp32"}, {"pp", 1}, {"dispatch", "none"}};
  if (!axes.is_null()) one.plan.axes.update(axes);
  one.record.verdict = "pass"_verdict;
  one.record.ranks = 1;
  one.record.figures = std::move(figures);
  return one;
}

const Figures kFaster = {{"eager_step_ms", 10},     {"graph_step_ms", 4}, {"eager_busy_share", 0.3},
                         {"capture_seconds", 0.06}, {"graphs", 1},        {"graph_nodes", 300}};

Figures with(Figures figures, const Figures& others) {
  for (const auto& [name, value] : others) figures[name] = value;
  return figures;
}
Figures without(Figures figures, const char* name) {
  figures.erase(name);
  return figures;
}

std::string answer(const Figures& figures, const nlohmann::json& axes = {}) {
  return advise(gpu_run(), timed_case(figures, axes)).answer;
}

TEST(Advice, AMeasuredGraphDecides) {
  EXPECT_EQ(answer(kFaster), "worth it");
  EXPECT_EQ(answer(with(kFaster, {{"graph_step_ms", 9.9}})), "not worth it") << "within the noise";
  EXPECT_EQ(answer(with(kFaster, {{"graph_step_ms", 12}})), "not worth it");
  // What was measured counts more than what the busy share lets expect.
  EXPECT_EQ(answer(with(kFaster, {{"eager_busy_share", 0.99}})), "worth it");
  const std::string text = advice_text(advise(gpu_run(), timed_case(kFaster)));
  for (const char* said : {"worth it: a step from graphs takes 40 %", "2.50 times as fast",
                           "10 steps", "10 us", "below 50 us", "23.3 us", "30 %"})
    EXPECT_NE(text.find(said), std::string::npos) << said << "\n" << text;
}

TEST(Advice, WithoutAGraphTheThresholdsDecide) {
  const Figures eager = without(kFaster, "graph_step_ms");
  EXPECT_EQ(answer(eager), "likely");
  EXPECT_EQ(answer(with(eager, {{"eager_busy_share", 0.81}})), "perhaps");
  EXPECT_EQ(answer(with(eager, {{"eager_busy_share", 0.96}})), "unlikely");
  EXPECT_EQ(answer(with(eager, {{"graph_nodes", 50}})), "perhaps") << "60 us a kernel";
  EXPECT_EQ(answer(with(eager, {{"graph_nodes", 99}, {"eager_step_ms", 1}})), "perhaps") << "few";
  EXPECT_EQ(answer(without(eager, "graph_nodes")), "perhaps");
  EXPECT_EQ(answer(without(eager, "eager_busy_share")), "unknown");
  // Only a single graph says how many launches a step has.
  EXPECT_EQ(answer(with(eager, {{"graphs", 2}})), "perhaps");
}

TEST(Advice, WhatSaysNothingAboutSpeedIsUnknown) {
  EXPECT_EQ(advise(gpu_run("sim"), timed_case(kFaster)).answer, "unknown");
  CaseResult failed = timed_case(kFaster);
  failed.record.verdict = "fail.numerics"_verdict;
  const Advice advice = advise(gpu_run(), failed);
  EXPECT_EQ(advice.answer, "unknown");
  EXPECT_NE(advice.next.find("explain latest/0123456789abcdef"), std::string::npos);
  CaseResult shared = timed_case(kFaster);
  shared.record.ranks = 2;
  RunResult run = gpu_run();
  run.run.options.sharing.ranks_per_gpu = 4;
  EXPECT_EQ(advise(run, shared).answer, "unknown");
  EXPECT_EQ(answer({}), "unknown");
}

TEST(Advice, TheApiFollowsFromTheCase) {
  const auto api = [](const nlohmann::json& axes) {
    return advise(gpu_run(), timed_case(kFaster, axes)).api;
  };
  EXPECT_NE(api({}).find("torch.cuda.make_graphed_callables"), std::string::npos);
  EXPECT_NE(api({{"precision", "fp8_delayed"}}).find("transformer_engine"), std::string::npos);
  EXPECT_NE(api({{"subject", "torch_compile"}}).find("reduce-overhead"), std::string::npos);
  EXPECT_NE(api({{"subject", "megatron_core"}}).find("full_iteration"), std::string::npos);
  CaseResult old = timed_case(kFaster);
  old.plan.axes.erase("subject");
  EXPECT_NE(advise(gpu_run(), old).api.find("full_iteration"), std::string::npos);
  EXPECT_NE(api({{"subject", "megatron_core"}, {"pp", 2}}).find("per layer"), std::string::npos);
  EXPECT_NE(api({{"subject", "megatron_core"}, {"dispatch", "dropless"}}).find("per module"),
            std::string::npos);
  for (const nlohmann::json& axes :
       std::vector<nlohmann::json>{{{"subject", "megatron_core"}, {"pp", 2}},
                                   {{"subject", "megatron_core"}, {"dispatch", "dropless"}}})
    EXPECT_NE(advise(gpu_run(), timed_case(kFaster, axes)).api_why.find("layer specification"),
              std::string::npos)
        << "local graphs of Megatron-Core 0.19.2 are wrong with the local one";
}

TEST(Advice, AWatchedRunIsJudgedByItsWindowOfTheDevice) {
  record::WatchedRun run{.command = {"python3", "train.py"}, .profile = "full"};
  const Figures waiting = {
      {"device_busy_share", 0.4}, {"kernel_us", 8}, {"kernels_per_step", 900}, {"graph_share", 0}};
  const auto of = [&](const Figures& figures) { return advise(run, {.figures = figures}).answer; };
  EXPECT_EQ(of(waiting), "likely");
  EXPECT_EQ(of(with(waiting, {{"device_busy_share", 0.97}})), "unlikely");
  EXPECT_EQ(of(with(waiting, {{"kernel_us", 400}})), "perhaps");
  EXPECT_EQ(of(with(waiting, {{"graph_share", 0.95}})), "unlikely") << "all is captured already";
  run.profile = "quick";
  const Advice quick = advise(run, {.figures = {{"graph_share", 0.5}}});
  EXPECT_EQ(quick.answer, "unknown");
  EXPECT_NE(quick.next.find("watch --profile full"), std::string::npos);
  EXPECT_EQ(quick.missing.size(), 2u);
  run.command = {"torchrun", "pretrain_gpt.py"};
  EXPECT_NE(advise(run, {.figures = waiting}).api.find("Megatron"), std::string::npos);
}

}  // namespace
}  // namespace graphproof::reports
