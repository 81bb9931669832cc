// Every report of runs of real GPUs, and of a run of ten thousand cases, follows the schema or the
// grammar of its format; compare finds ten differences that are planted into the large run, and
// nothing between a run and itself.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "launcher/run/judge_again.h"
#include "launcher/run/run_reports.h"
#include "reports/analysis/compare.h"
#include "reports/analysis/gates.h"
#include "reports/outcome/outcome.h"
#include "reports/print/compare_report.h"
#include "reports/print/formats/formats.h"
#include "reports/record/schema/violations.h"
#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"
#include "reports/testing/format_mistakes.h"
#include "reports/testing/large_run.h"
#include "suites/recorded/recorded_runs.h"

namespace graphproof {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using record::operator""_verdict;

constexpr int kCases = 10'000;
constexpr const char* kAllGates = "broken,lost,changed,drift>bitwise,perf>3%,capture>10%,memory>5%";

// Cases of the large run into which something is planted. The plan of the recorded run has 48
// cases, so their names differ.
constexpr int kBroken = 1'000, kLost = 2'000, kChanged = 3'000, kOtherNumbers = 4'000,
              kLargerPool = 5'000, kSeesNothing = 6'000, kHealed = 7'000;

/// Copies of recorded runs, judged, and a large run.
struct RecordedReports : testing::Test {
  static void SetUpTestSuite() {
    scratch = std::make_unique<record::ScratchFolder>();
    for (const char* name : {"h200-x4-hazards", "h200-x4-faults", "h200-x4-layouts", "sim-smoke"}) {
      const fs::path from = recorded_runs().front().parent_path() / name;
      fs::copy(from, folder(name), fs::copy_options::recursive);
      launcher::judge_again(folder(name),
                            fs::path(std::getenv("GRAPHPROOF_BIN")) / "graphproof-judge",
                            reports::check_effects(matrix::load_catalogue().checks));
    }
    reports::write_large_run(folder("sim-smoke"), folder("large"), kCases, fails_where_planned);
  }
  static void TearDownTestSuite() { scratch.reset(); }

  static fs::path folder(const std::string& name) { return scratch->path() / name; }

  static void fail(record::Record& record, record::Verdict verdict) {
    record.verdict = record.observed = verdict;
    record.rule = 60;
    record.reason = "a failure that was planted";
    record.failing = {{.check = "D01.lockstep", .rank = 0, .message = {.what = "step 3 differs"}}};
  }
  /// The run before: one case that will be healed, and one that will fail in another way.
  static bool fails_where_planned(int index, record::Record& record) {
    if (index == kHealed || index == kChanged) fail(record, "fail.numerics"_verdict);
    return true;
  }

  static std::unique_ptr<record::ScratchFolder> scratch;
};
std::unique_ptr<record::ScratchFolder> RecordedReports::scratch;

/// The text of a format as `report --format` gives it out.
std::string text_of(const reports::Format& format, const reports::RunResult& run,
                    const fs::path& folder) {
  std::string text;
  format.put(run, folder, [&text](std::string_view piece) { text += piece; });
  return text;
}

std::vector<std::string> mistakes(const reports::Format& format, const std::string& text) {
  if (format.name == "github") return reports::github_mistakes(text);
  if (format.name == "prometheus") return reports::prometheus_mistakes(text);
  const char* schema = format.name == "gitlab" ? "code-quality" : format.name.data();
  return record::violations(schema, json::parse(text));
}

TEST_F(RecordedReports, EveryFormatPassesItsValidator) {
  for (const char* name : {"h200-x4-hazards", "h200-x4-faults", "h200-x4-layouts", "large"}) {
    const reports::RunResult run = launcher::read_run(folder(name));
    launcher::write_reports(run, folder(name));
    ASSERT_GE(run.cases.size(), 50u) << name;
    for (const char* file : {"summary", "faults", "hazards"}) {
      const fs::path path = folder(name) / (std::string(file) + ".json");
      if (!fs::exists(path)) {
        EXPECT_EQ(file, std::string("hazards")) << name;
        continue;
      }
      EXPECT_EQ(record::violations(file, record::read_json(path)), std::vector<std::string>{})
          << name << " " << file;
    }
    EXPECT_TRUE(reports::is_junit(folder(name) / "junit.xml")) << name;
    for (const reports::Format& format : reports::formats()) {
      const std::string text = text_of(format, run, folder(name));
      EXPECT_EQ(mistakes(format, text), std::vector<std::string>{}) << name << " " << format.name;
    }
    // GitHub refuses longer comments.
    const std::string markdown = record::read_text(folder(name) / "summary.md");
    EXPECT_LE(markdown.size(), 65'000u) << name;
    EXPECT_TRUE(markdown.starts_with("# ")) << markdown.substr(0, 80);
    if (run.cases.size() <= 1'000) {
      EXPECT_LT(fs::file_size(folder(name) / "report.html"), 3'000'000u) << name;
    }
  }
  EXPECT_TRUE(fs::exists(folder("h200-x4-hazards/hazards.json")));
  EXPECT_GT(record::read_json(folder("h200-x4-faults/faults.json")).size(), 50u);
}

TEST_F(RecordedReports, ARunComparedWithItselfShowsNothing) {
  for (const char* name : {"h200-x4-hazards", "h200-x4-faults", "h200-x4-layouts", "large"}) {
    const reports::RunResult run = launcher::read_verdicts(folder(name));
    const auto comparison =
        reports::compare(run, run, reports::drifts(run, folder(name), run, folder(name)));
    EXPECT_GE(comparison.compared, 50) << name;
    EXPECT_TRUE(comparison.stack.empty() && comparison.drift.empty()) << name;
    EXPECT_TRUE(comparison.only_left.empty() && comparison.only_right.empty()) << name;
    for (const reports::NamedGroup& group : reports::change_groups())
      EXPECT_TRUE((comparison.*group.group).cases.empty()) << name << " " << group.name;
    const auto gates = reports::parse_gates(kAllGates);
    for (const reports::Gate& gate : gates)
      EXPECT_NE(reports::judge(gate, comparison).state, reports::GateResult::State::failed)
          << name << " " << gate.text;
    EXPECT_EQ(record::violations("compare", reports::to_json(comparison, gates)),
              std::vector<std::string>{})
        << name;
  }
}

/// Replaces the losses of the first step of eager_a, and its digests, on every rank.
void compute_other_numbers(const fs::path& attempt) {
  for (const auto& entry : fs::directory_iterator(attempt)) {
    if (!entry.path().filename().string().ends_with(".evidence.jsonl")) continue;
    std::string text;
    for (const std::string& line : record::read_lines(entry.path()).lines) {
      if (!line.starts_with(R"({"kind":"step","arm":"eager_a",)")) {
        text += line + "\n";
        continue;
      }
      record::Json value = record::Json::parse(line);
      for (record::Json& loss : value["loss"]) loss = loss.get<double>() * 1.5;
      for (auto& [part, digest] : value["digest"].items()) digest = std::string(16, '0');
      text += value.dump() + "\n";
    }
    record::write_atomically(entry.path(), text, record::Survives::kill);
  }
}

TEST_F(RecordedReports, CompareFindsTenPlantedDifferencesInALargeRun) {
  const fs::path right = folder("right");
  reports::write_large_run(folder("sim-smoke"), right, kCases,
                           [](int index, record::Record& record) {
                             if (index == kLost) return false;
                             if (index == kBroken) fail(record, "fail.hang.replay"_verdict);
                             if (index == kChanged) fail(record, "fail.capture"_verdict);
                             const auto times = [&](const char* figure, double factor) {
                               const auto found = record.figures.find(figure);
                               if (found != record.figures.end()) found->second *= factor;
                             };
                             times("graph_step_ms", 1.04);
                             times("capture_ms", 1.2);
                             if (index == kLargerPool) times("pool_bytes", 1.3);
                             if (index == kSeesNothing) record.checks.unexercised += 1;
                             return true;
                           });
  record::Run run = record::run_from(record::read_json(right / "run.json"), "run.json");
  run.stack.torch_version = "2.99.0";
  record::write_json(right / "run.json", record::to_json(run), record::Survives::kill);
  compute_other_numbers(right / "cases" / reports::large_run_id(kOtherNumbers) / "attempt-1");

  const reports::RunResult before = launcher::read_verdicts(folder("large")),
                           now = launcher::read_verdicts(right);
  const auto comparison =
      reports::compare(before, now, reports::drifts(before, folder("large"), now, right));
  const auto only = [](const reports::ChangeGroup& group, int index) {
    return group.cases.size() == 1 && group.cases[0].case_id == reports::large_run_id(index);
  };
  EXPECT_TRUE(only(comparison.broke, kBroken)) << comparison.broke.cases.size();
  EXPECT_TRUE(only(comparison.lost, kLost)) << comparison.lost.cases.size();
  EXPECT_TRUE(only(comparison.changed, kChanged)) << comparison.changed.cases.size();
  EXPECT_TRUE(only(comparison.healed, kHealed)) << comparison.healed.cases.size();
  EXPECT_TRUE(only(comparison.grew, kLargerPool)) << comparison.grew.cases.size();
  EXPECT_TRUE(comparison.slower.cases.empty()) << "no single case is notably slower";
  ASSERT_EQ(comparison.drift.size(), 1u);
  EXPECT_EQ(comparison.drift[0].case_id, reports::large_run_id(kOtherNumbers));
  EXPECT_EQ(comparison.drift[0].drift.drift_class, reports::DriftClass::beyond);
  ASSERT_EQ(comparison.stack.size(), 1u);
  EXPECT_EQ(comparison.stack[0].right, "2.99.0");
  EXPECT_EQ(comparison.covered_right.checks_unexercised,
            comparison.covered_left.checks_unexercised -
                before.cases[kLost].record.checks.unexercised + 1);
  std::map<std::string, double> ratios;
  for (const reports::FigureChange& one : comparison.figures) {
    ratios[one.figure] = one.ratio;
    ASSERT_TRUE(one.interval) << one.figure;
  }
  EXPECT_NEAR(ratios.at("graph_step_ms"), 1.04, 1e-3);
  EXPECT_NEAR(ratios.at("capture_ms"), 1.2, 1e-3);
  EXPECT_NEAR(ratios.at("eager_step_ms"), 1, 1e-6);
  // Each of the seven gates fails; every format says so.
  const auto gates = reports::parse_gates(kAllGates);
  for (const reports::Gate& gate : gates)
    EXPECT_EQ(reports::judge(gate, comparison).state, reports::GateResult::State::failed)
        << gate.text;
  EXPECT_EQ(record::violations("compare", reports::to_json(comparison, gates)),
            std::vector<std::string>{});
  const std::string text = reports::compare_report(comparison, gates, reports::CompareFormat::text);
  for (const char* part : {"2.99.0", "seq_length=1000", "seq_length=2000", "seq_length=3000",
                           "seq_length=4000", "seq_length=5000", "seq_length=7000"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text.substr(0, 4000);
}

}  // namespace
}  // namespace graphproof
