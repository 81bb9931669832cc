#include "reports/print/hazard_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "matrix/plan/plan.h"
#include "reports/analysis/hazards.h"
#include "reports/record/schema/violations.h"
#include "reports/testing/healthy_case.h"

namespace graphproof::reports {
namespace {

using record::operator""_verdict;
using ::testing::HasSubstr;
using ::testing::Not;

class HazardReport : public testing::Test {
 protected:
  static record::Run gpu_run() {
    record::Run run = run_of_tests();
    run.device = "cuda";
    run.stack.nccl_version = "2.28.9";
    run.stack.sm = 90;
    return run;
  }
  /// A planned cell that ended as `observed`, with the verdict that outcome() gives it.
  static CaseResult cell(const std::string& settings, record::Verdict observed,
                         std::optional<record::Hang> hang = std::nullopt) {
    const matrix::Machine machine{
        .device = "cuda",
        .slots = 2,
        .stack = {{"nccl_version", "2.28.9"}, {"sm", "90"}, {"torch_version", "2.11.0"}}};
    const matrix::Case test_case = matrix::case_from_name(
        catalogue_.axes, "dp=2,model=collective,collective_bytes=16777216," + settings, "test");
    OutcomeInput input = healthy_case();
    input.plan = matrix::plan_case(catalogue_, test_case, machine, "test");
    input.plan.required_checks = {};
    input.context->case_id = input.plan.id;
    input.context->device = "cuda";
    if (hang) {
      input.context->hang = hang;
      input.context->ended = "killed";
    }
    if (observed == "fail.constraint"_verdict)
      input.checks->checks.push_back(check_result("D27.registration_parity", record::Result::fail));
    const Outcome judged = outcome(input, check_effects(catalogue_.checks));
    EXPECT_EQ(judged.observed.text(), observed.text()) << settings;
    return {
        input.plan,
        make_record(input, judged, "20261121-101500-3f2a", "cases/" + input.plan.id + "/attempt-1"),
        {}};
  }
  static RunResult run_of_cells(std::vector<CaseResult> cells) {
    RunResult run = run_of(std::move(cells));
    run.run = gpu_run();
    return run;
  }
  static record::Hang in_replay() {
    return {.phase = record::Phase::replay,
            .limit_ms = 10'000,
            .missing_rank = 1,
            .waiting_ranks = {0},
            .last_collective = record::Collective{.sequence = 8, .op = "all_gather", .group = "dp"},
            .stacks = ""};
  }
  /// The facts of attempts in which every hung case has the hang `hang`.
  static record::Hazards report(const RunResult& run) {
    return hazards(run, catalogue_, [](const record::Record& record) {
      AttemptFacts facts;
      if (!record.observed.in("fail.hang")) return facts;
      facts.context = *healthy_case().context;
      facts.context->hang = in_replay();
      facts.checks = *healthy_case().checks;
      facts.checks->checks.push_back(check_result("D27.registration_parity", record::Result::fail));
      facts.checks->checks.back().message.got = "1 buffers on ranks 0; 0 buffers on ranks 1";
      return facts;
    });
  }
  static const record::HazardPrediction& rule(const record::HazardCell& cell,
                                              const std::string& name) {
    return *std::find_if(cell.predictions.begin(), cell.predictions.end(),
                         [&](const auto& one) { return one.rule == name; });
  }
  inline static const matrix::Catalogue catalogue_ =
      matrix::load_catalogue();  // read once, never changed
};

constexpr const char* kHanging =
    "impl=manual,allocator=expandable,placement=per_rank,collective=all_gather";
constexpr const char* kCured =
    "impl=manual,allocator=expandable,placement=per_rank,collective=all_gather,nccl_graph_register="
    "\"0\"";
constexpr const char* kSymmetric = "impl=manual,allocator=expandable,collective=all_gather";
constexpr const char* kInPlace =
    "impl=manual,allocator=expandable,placement=per_rank,collective=all_reduce_in_place";

TEST_F(HazardReport, ExpectationMetAndNotMetOfEachKind) {
  struct Row {
    const char* settings;
    record::Verdict observed;
    std::optional<record::Hang> hang;
    const char* verdict;
    record::ExitCode exit_code;
  };
  const Row rows[] = {
      {kHanging, "fail.hang.replay"_verdict, in_replay(), "xfail", record::ExitCode::ok},
      {kHanging, "pass"_verdict, std::nullopt, "xpass", record::ExitCode::product},
      {kHanging, "fail.constraint"_verdict, std::nullopt, "fail.constraint",
       record::ExitCode::product},
      {kSymmetric, "pass"_verdict, std::nullopt, "pass", record::ExitCode::ok},
      {kSymmetric, "fail.hang.replay"_verdict, in_replay(), "fail.hang.replay",
       record::ExitCode::product},
      {kSymmetric, "fail.constraint"_verdict, std::nullopt, "fail.constraint",
       record::ExitCode::product},
  };
  for (const Row& row : rows) {
    const CaseResult one = cell(row.settings, row.observed, row.hang);
    EXPECT_EQ(one.record.verdict.text(), row.verdict) << row.settings << " " << row.observed.text();
    EXPECT_EQ(exit_code(one.record.verdict, one.record.rule), row.exit_code)
        << row.settings << " " << row.observed.text();
  }
}

TEST_F(HazardReport, HangIsNamedWithRanksCollectiveAndAProvenCure) {
  const RunResult run = run_of_cells(
      {cell(kHanging, "fail.hang.replay"_verdict, in_replay()), cell(kCured, "pass"_verdict)});
  const record::Hazards seen = report(run);
  ASSERT_EQ(seen.cells.size(), 2u);
  const record::HazardCell& hung = seen.cells[0];
  EXPECT_EQ(hung.hazard, "H01");
  EXPECT_EQ(hung.verdict.text(), "xfail");
  EXPECT_EQ(hung.hang->ranks, (std::vector<int>{1, 0}));
  EXPECT_EQ(hung.cure, (record::HazardCure{.setting = "NCCL_GRAPH_REGISTER=0",
                                           .case_id = run.cases[1].plan.id,
                                           .verdict = "pass"_verdict}));
  EXPECT_EQ(seen.cells[1].cure, std::nullopt);
  const std::string text = hazard_text(seen, {});
  EXPECT_THAT(
      text,
      HasSubstr(
          "hazards: 2 cells on cuda, NCCL 2.28.9: 2 gave a result, 1 failed, 0 not as expected"));
  EXPECT_THAT(text, HasSubstr("captured all_gather, allocator expandable, placement per_rank, "
                              "NCCL_GRAPH_REGISTER unset"));
  EXPECT_THAT(text, HasSubstr("fail.hang.replay, expected fail.hang (H01, seen)"));
  EXPECT_THAT(text,
              HasSubstr("ranks 1, 0 hung in phase replay, last collective 8 all_gather in dp"));
  EXPECT_THAT(text, HasSubstr("NCCL registered: 1 buffers on ranks 0; 0 buffers on ranks 1"));
  EXPECT_THAT(text, HasSubstr("cure: NCCL_GRAPH_REGISTER=0, with which it passes (" +
                              run.cases[1].plan.id + ")"));
  EXPECT_THAT(text, Not(HasSubstr(run.cases[1].plan.id + "  captured")))
      << "what works is not listed";
}

TEST_F(HazardReport, CureThatDidNotRunIsNotCalledOne) {
  const record::Hazards seen =
      report(run_of_cells({cell(kHanging, "fail.hang.replay"_verdict, in_replay())}));
  EXPECT_EQ(seen.cells[0].cure->verdict.text(), "not_run");
  EXPECT_THAT(hazard_text(seen, {}),
              HasSubstr("cure: NCCL_GRAPH_REGISTER=0, with which it ended not_run"));
}

TEST_F(HazardReport, UnexpectedFailureIsShownWithACureToTry) {
  const record::Hazards seen =
      report(run_of_cells({cell(kSymmetric, "fail.hang.replay"_verdict, in_replay())}));
  EXPECT_EQ(seen.cells[0].hazard, "H00");
  EXPECT_EQ(seen.cells[0].cure->setting, "NCCL_GRAPH_REGISTER=0");
  EXPECT_THAT(hazard_text(seen, {}), HasSubstr("1 failed, 1 not as expected"));
}

TEST_F(HazardReport, EachDialectsRuleIsComparedWithTheResults) {
  const record::Hazards seen = report(run_of_cells(
      {cell(kHanging, "fail.hang.replay"_verdict, in_replay()), cell(kCured, "pass"_verdict),
       cell(kSymmetric, "pass"_verdict), cell(kInPlace, "pass"_verdict)}));
  EXPECT_EQ(rule(seen.cells[0], "R059").agrees, true);
  EXPECT_EQ(rule(seen.cells[0], "R060, removed").agrees, false) << "allows what hangs";
  EXPECT_EQ(rule(seen.cells[0], "R060").agrees, true);
  EXPECT_EQ(rule(seen.cells[1], "R059").agrees, true);
  EXPECT_EQ(rule(seen.cells[2], "R059").agrees, false) << "refuses what works";
  EXPECT_EQ(rule(seen.cells[2], "R060, removed").agrees, true);
  const std::string text = hazard_text(seen, {});
  EXPECT_THAT(text, HasSubstr("megatron-lm R059, transformer_engine graphs: agrees with 2 of 4 "
                              "cells, refuses 2 that work"));
  EXPECT_THAT(text, HasSubstr("megatron-lm R060, removed, local and full_iteration graphs: agrees "
                              "with 3 of 4 cells, allows 1 that fail"));
  const std::string page = hazard_markdown(seen);
  EXPECT_THAT(page, HasSubstr("| megatron-lm | R059 | transformer\\_engine graphs | agrees with 2 "
                              "of 4 cells, refuses 2 that work |"));
  EXPECT_THAT(page,
              HasSubstr("| all\\_gather | captured | expandable | unset | per\\_rank | fail.hang | "
                        "fail.hang.replay | xfail | refuses, agrees | allows, **disagrees** |"));
}

TEST_F(HazardReport, CellThatDidNotRunNeitherAgreesNorDisagrees) {
  CaseResult skipped = cell(kHanging, "pass"_verdict);
  skipped.record.observed = skipped.record.verdict = "skipped.capability"_verdict;
  const record::Hazards seen = report(run_of_cells({skipped}));
  for (const record::HazardPrediction& one : seen.cells[0].predictions)
    EXPECT_EQ(one.agrees, std::nullopt);
  EXPECT_EQ(bites(seen.cells[0]), std::nullopt);
  EXPECT_THAT(hazard_text(seen, {}), HasSubstr("0 gave a result, 0 failed"));
  EXPECT_THAT(hazard_text(seen, {}), HasSubstr("no cell gave a result"));
}

TEST_F(HazardReport, RunWithoutHazardsHasNoSection) {
  const RunResult run = mixed_run();
  EXPECT_FALSE(has_hazards(run));
  EXPECT_EQ(hazard_text(report(run), {}), "");
  EXPECT_EQ(hazard_markdown(report(run)), "");
}

TEST_F(HazardReport, FileFitsItsSchemaAndReadsBack) {
  const record::Hazards seen = report(run_of_cells(
      {cell(kHanging, "fail.hang.replay"_verdict, in_replay()), cell(kCured, "pass"_verdict)}));
  const nlohmann::json file = nlohmann::json::parse(record::to_json(seen).dump());
  for (const std::string& violation : record::violations("hazards", file))
    ADD_FAILURE() << violation;
  EXPECT_EQ(record::hazards_from(file, "hazards.json"), seen);
}

}  // namespace
}  // namespace graphproof::reports
