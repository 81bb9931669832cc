// Evidence of real GPUs is judged again with the present checks and outcome rules. A change of
// either that changes the result of these runs fails here, without a GPU. The tests also show that
// each check is needed: without it, a fault that only it catches survives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "launcher/run/judge_again.h"
#include "matrix/catalogue/catalogue.h"
#include "reports/outcome/faults.h"
#include "reports/outcome/outcome.h"
#include "reports/record/run/summary.h"
#include "reports/record/text/file.h"
#include "suites/recorded/recorded_runs.h"

namespace graphproof {
namespace {

namespace fs = std::filesystem;

fs::path judge_program() { return fs::path(std::getenv("GRAPHPROOF_BIN")) / "graphproof-judge"; }

reports::CheckEffects effects() { return reports::check_effects(matrix::load_catalogue().checks); }

record::Summary summary_of(const fs::path& run) {
  return record::summary_from(record::read_json(run / "summary.json"), run / "summary.json");
}

/// Every run is judged once, before the first test.
struct RecordedTest : testing::Test {
  static void SetUpTestSuite() {
    for (const fs::path& run : recorded_runs())
      launcher::judge_again(run, judge_program(), effects());
  }
};

TEST_F(RecordedTest, JudgedAgainEveryCaseHasTheVerdictThatWasRecorded) {
  ASSERT_FALSE(recorded_runs().empty());
  for (const fs::path& run : recorded_runs()) {
    const record::Summary recorded = summary_of(run);
    const reports::RunResult again = launcher::JudgedRun(run).decide(effects());
    ASSERT_EQ(again.cases.size(), recorded.cases.size()) << run;
    for (std::size_t index = 0; index < again.cases.size(); ++index) {
      const reports::CaseResult& now = again.cases[index];
      EXPECT_EQ(now.plan.id, recorded.cases[index].id);
      EXPECT_EQ(now.record.verdict.text(), recorded.cases[index].verdict.text())
          << run.filename() << " " << now.plan.name << ": " << now.record.reason;
    }
  }
}

/// The failing checks of `fault`'s own detector in a judged run.
std::vector<std::string> killers(const record::FaultResult& fault) {
  std::vector<std::string> found;
  for (const std::string& check : fault.killed_by)
    if (reports::of_detector(check, fault.detector)) found.push_back(check);
  return found;
}

std::map<std::string, record::FaultResult> by_name(const std::vector<record::FaultResult>& faults) {
  std::map<std::string, record::FaultResult> map;
  for (const record::FaultResult& fault : faults) map.emplace(fault.fault, fault);
  return map;
}

TEST_F(RecordedTest, WithoutTheCheckThatCatchesItAFaultSurvives) {
  int faults_seen = 0;
  const matrix::Catalogue catalogue = matrix::load_catalogue();
  const reports::CheckEffects effects = reports::check_effects(catalogue.checks);
  const auto is_eager = [&](const std::string& check) {
    return effects.at(check).verdict == "fail.eager";
  };
  for (const fs::path& run : recorded_runs()) {
    if (!fs::exists(run / "faults.json") || record::read_json(run / "faults.json").empty())
      continue;
    const launcher::JudgedRun judged(run);
    const auto without = [&](const std::set<std::string>& checks) {
      return by_name(reports::faults(judged.decide(effects, checks)));
    };
    const auto whole = without({});
    for (const matrix::CheckEntry& entry : catalogue.checks.checks()) {
      const std::string& check = entry.check;
      const bool kills = std::any_of(whole.begin(), whole.end(), [&](const auto& fault) {
        return std::count(fault.second.killed_by.begin(), fault.second.killed_by.end(), check) > 0;
      });
      if (!kills) continue;  // no check failed it, so it needs none
      for (const auto& [name, fault] : without({check})) {
        std::vector<std::string> seen = whole.at(name).killed_by, needed = killers(whole.at(name));
        std::erase(seen, check);
        std::erase(needed, check);
        // If the eager arm fails, results of the graph arms mean nothing, so one of these checks
        // must judge the eager arm.
        const bool eager_fails = std::ranges::any_of(seen, is_eager),
                   eager_killer = std::ranges::any_of(needed, is_eager);
        // What is not caught with all checks was stopped ahead of the arms.
        const bool caught = whole.at(name).status == record::FaultStatus::killed;
        const matrix::FaultEntry* planted = catalogue.faults.find(name);
        const bool in_eager = planted != nullptr && planted->in_eager;
        EXPECT_EQ(fault.status == record::FaultStatus::killed,
                  caught && !needed.empty() && (!eager_fails || eager_killer || in_eager))
            << name << " without " << check;
      }
    }
    // If two checks of one detector catch a fault, both must be dropped.
    for (const auto& [name, fault] : whole) {
      if (fault.status != record::FaultStatus::killed) continue;
      ++faults_seen;
      const std::vector<std::string> needed = killers(fault);
      if (needed.size() == 1) continue;  // dropped above
      EXPECT_NE(without({needed.begin(), needed.end()}).at(name).status,
                record::FaultStatus::killed)
          << name;
    }
  }
  EXPECT_GT(faults_seen, 0) << "no recorded run holds a killed fault";
}

/// Of each model and layout that several implementations have trained on the same machine in one
/// run, the one graph of all forward and backward passes is replayed in less time than the graphs
/// of its layers.
TEST_F(RecordedTest, OneGraphOfAStepTakesLessTimeThanThoseOfItsLayers) {
  int compared = 0;
  for (const fs::path& run : recorded_runs()) {
    if (run.filename() != "h200-x2-step-times") continue;
    std::map<std::string, std::map<std::string, double>> steps;  // by layout, and implementation
    for (const reports::CaseResult& result : launcher::JudgedRun(run).decide(effects()).cases) {
      nlohmann::json layout = result.plan.axes;
      const std::string impl = layout.at("impl");
      for (const char* of_impl : {"impl", "capture_mode"}) layout.erase(of_impl);
      const auto step = result.record.figures.find("graph_step_ms");
      ASSERT_NE(step, result.record.figures.end()) << result.plan.name;
      steps[layout.dump()][impl] = step->second;
    }
    for (const auto& [layout, of_impl] : steps)
      for (const char* layers : {"callables", "local", "transformer_engine"}) {
        if (!of_impl.contains("full_iteration") || !of_impl.contains(layers)) continue;
        EXPECT_LT(of_impl.at("full_iteration"), of_impl.at(layers)) << layers << ": " << layout;
        ++compared;
      }
  }
  EXPECT_EQ(compared, 9) << "graphproof's own engines on one and two ranks, Megatron-Core, PyTorch";
}

}  // namespace
}  // namespace graphproof
