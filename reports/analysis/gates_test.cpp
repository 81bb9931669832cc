// Ten differences are planted into a run of twelve cases. Each must be found by its gate and by no
// other, and a run compared with itself must pass all of them.
#include "reports/analysis/gates.h"

#include <gtest/gtest.h>

#include <functional>

#include "matrix/input/input_error.h"
#include "reports/testing/healthy_case.h"

namespace graphproof::reports {
namespace {

using record::operator""_verdict;
using State = GateResult::State;

constexpr const char* kAllGates = "broken,lost,changed,drift>bitwise,perf>3%,capture>10%,memory>5%";

struct Runs {
  RunResult left, right;
  std::map<std::string, Drift> drifts;
};

/// Twelve cases of which the last fails, with times that vary from case to case.
Runs same() {
  std::vector<CaseResult> cases;
  std::map<std::string, Drift> drifts;
  for (int i = 0; i < 12; ++i) {
    const bool failing = i == 11;
    CaseResult one = ended("0123456789abcdef"[i], "case " + std::to_string(i),
                           failing ? "fail.numerics"_verdict : "pass"_verdict, failing ? 60 : 90);
    one.plan.axes = {{"tp", i % 2}, {"case", i}};
    one.record.figures = {{"graph_step_ms", 2 + 0.1 * (i % 3)},
                          {"eager_step_ms", 5.0},
                          {"capture_ms", 30.0 + i},
                          {"pool_bytes", 1000.0 * (i + 1)}};
    cases.push_back(one);
    if (!failing) drifts[one.plan.id] = Drift{};
  }
  return {run_of(cases), run_of(cases), drifts};
}

struct Planted {
  const char* what;
  std::function<void(Runs&)> plant;
  std::vector<std::string_view> gates;  // that fail; none if only the report shows it
};

/// The kinds of all gates that fail.
std::vector<std::string_view> failing(const Runs& runs) {
  const Comparison comparison = compare(runs.left, runs.right, runs.drifts);
  std::vector<std::string_view> found;
  for (const Gate& gate : parse_gates(kAllGates)) {
    const GateResult result = judge(gate, comparison);
    EXPECT_NE(result.state, State::not_judged) << gate.text << ": " << result.why;
    if (result.state == State::failed) found.push_back(gate.kind);
    EXPECT_EQ(result.why.empty(), result.state == State::held) << gate.text;
  }
  return found;
}

void times(RunResult& run, const char* figure, double factor) {
  for (CaseResult& one : run.cases) one.record.figures.at(figure) *= factor;
}

TEST(Gates, FindTenPlantedDifferences) {
  const Planted rows[] = {
      {"a case broke",
       [](Runs& runs) { runs.right.cases[0].record.verdict = "fail.hang.replay"_verdict; },
       {"broken"}},
      {"a case was lost",
       [](Runs& runs) { runs.right.cases[1].record.verdict = "not_run"_verdict; },
       {"lost"}},
      {"a case fails in another way",
       [](Runs& runs) { runs.right.cases[11].record.verdict = "fail.capture"_verdict; },
       {"changed"}},
      {"a case computes other numbers",
       [](Runs& runs) {
         runs.drifts[runs.left.cases[2].plan.id] = {DriftClass::ulp, "a loss of step 1"};
       },
       {"drift"}},
      {"steps are 4 % slower",
       [](Runs& runs) { times(runs.right, "graph_step_ms", 1.04); },
       {"perf"}},
      {"captures take a fifth longer",
       [](Runs& runs) { times(runs.right, "capture_ms", 1.2); },
       {"capture"}},
      {"a pool grew by a tenth",
       [](Runs& runs) { runs.right.cases[3].record.figures.at("pool_bytes") *= 1.1; },
       {"memory"}},
      {"a check sees nothing any more",
       [](Runs& runs) { runs.right.cases[4].record.checks.unexercised = 1; },
       {"lost"}},
      {"a case healed",
       [](Runs& runs) { runs.right.cases[11].record.verdict = "pass"_verdict; },
       {}},
      {"NCCL differs", [](Runs& runs) { runs.right.run.stack.nccl_version = "2.29.2"; }, {}},
  };
  for (const Planted& row : rows) {
    Runs runs = same();
    row.plant(runs);
    EXPECT_EQ(failing(runs), row.gates) << row.what;
    const Comparison comparison = compare(runs.left, runs.right, runs.drifts);
    const auto gates = parse_gates(kAllGates);
    EXPECT_EQ(exit_code(gates, comparison),
              row.gates.empty() ? record::ExitCode::ok : record::ExitCode::product)
        << row.what;
    // The two that fail no gate are reported.
    const std::size_t reported = comparison.healed.cases.size() + comparison.stack.size();
    EXPECT_EQ(reported, row.gates.empty() ? 1u : 0u) << row.what;
  }
}

TEST(Gates, ARunAgainstItselfPassesAll) {
  EXPECT_EQ(failing(same()), std::vector<std::string_view>{});
}

TEST(Gates, SmallerDifferencesThanTheLimitHold) {
  Runs runs = same();
  times(runs.right, "graph_step_ms", 1.02);
  times(runs.right, "pool_bytes", 1.04);
  EXPECT_EQ(failing(runs), std::vector<std::string_view>{});
  runs.drifts[runs.left.cases[2].plan.id] = {DriftClass::ulp, "a loss of step 1"};
  const Comparison comparison = compare(runs.left, runs.right, runs.drifts);
  EXPECT_EQ(judge(parse_gates("drift>ulp")[0], comparison).state, State::held);
  EXPECT_EQ(judge(parse_gates("drift")[0], comparison).state, State::failed);
}

TEST(Gates, NoiseAroundTheSameTimeIsNotSlower) {
  Runs runs = same();
  // Single cases are up to 20 % slower and as many faster: their mean says nothing.
  for (int i = 0; i < 12; ++i)
    runs.right.cases[static_cast<std::size_t>(i)].record.figures.at("graph_step_ms") *=
        i % 2 == 0 ? 1.2 : 1 / 1.19;
  EXPECT_EQ(failing(runs), std::vector<std::string_view>{});
}

TEST(Gates, WhatCouldNotBeJudgedIsNoPass) {
  Runs runs = same();
  runs.right.run.stack.gpus = {"NVIDIA H200"};
  Comparison comparison = compare(runs.left, runs.right, {});
  for (const char* gate : {"perf>3%", "memory>5%", "capture>3%", "drift"}) {
    const auto gates = parse_gates(gate);
    EXPECT_EQ(judge(gates[0], comparison).state, State::not_judged) << gate;
    EXPECT_EQ(exit_code(gates, comparison), record::ExitCode::coverage) << gate;
  }
  runs = same();
  runs.left.cases.resize(3);
  comparison = compare(runs.left, runs.right, runs.drifts);
  EXPECT_EQ(judge(parse_gates("perf>3%")[0], comparison).why,
            "only 3 cases have graph_step_ms in both runs, 8 are needed");
}

TEST(Gates, WhatCannotBeReadIsRefused) {
  for (const char* text : {"", "broke", "perf", "perf>", "perf>3", "perf>x%", "perf>-3%",
                           "broken>3%", "drift>beyond", "drift>", "broken,,lost"})
    EXPECT_THROW(parse_gates(text), matrix::InputError) << text;
}

}  // namespace
}  // namespace graphproof::reports
