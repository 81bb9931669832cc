#include "launcher/run/run_reports.h"

#include <gtest/gtest.h>

#include <fstream>

#include "reports/outcome/summary.h"
#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

/// A run of one case that passed, as its folder is without cases/.
void write_run_without_evidence(const fs::path& folder) {
  const record::Run run{.run_id = "20261121-101500-3f2a",
                        .started = "2026-11-21T10:15:00Z",
                        .command = {"graphproof", "run"},
                        .profile = "smoke",
                        .matrix = {.name = "m", .sha256 = std::string(64, '0'), .axes_version = 1},
                        .device = "sim",
                        .engine = "local",
                        .slots = 2};
  record::write_json(folder / "run.json", record::to_json(run));
  const record::PlanLine line{.id = std::string(16, '1'),
                              .name = "tp=2",
                              .axes = {{"tp", 2}},
                              .ranks = 2,
                              .isolation = "batch",
                              .environment = {},
                              .limits_ms = {},
                              .expect = {},
                              .required_checks = {"D01.lockstep"},
                              .skip = {},
                              .why = "product",
                              .expected_seconds = 1};
  std::ofstream(folder / "plan.jsonl") << record::to_line(line);
  const record::Record record{.run_id = run.run_id,
                              .case_id = line.id,
                              .name = line.name,
                              .context = {"sim", "batch", "local", "cold", "b001"},
                              .ranks = 2,
                              .verdict = *record::Verdict::from("pass"),
                              .observed = *record::Verdict::from("pass"),
                              .rule = 90,
                              .reason = "every required check passed",
                              .checks = {.pass = 9},
                              .artefacts = "cases/1111111111111111/attempt-1"};
  std::ofstream(folder / "journal.jsonl") << record::to_line(record);
}

TEST(RunReports, OfARunWithoutItsEvidenceAreWrittenAndClaimNoSuccess) {
  const record::ScratchFolder folder;
  write_run_without_evidence(folder.path());
  const reports::RunResult result = read_run(folder.path());
  write_reports(result, folder.path());
  for (const char* name : {"report.html", "summary.json", "summary.md", "junit.xml"})
    EXPECT_TRUE(fs::exists(folder.path() / name)) << name;
  EXPECT_EQ(reports::exit_code(result), record::ExitCode::interrupted) << "it has no ending";
  reports::RunResult ended = result;
  ended.ending = reports::Ending::finished;
  EXPECT_EQ(reports::exit_code(ended), record::ExitCode::coverage);
}

TEST(RunReports, ThePageAloneChangesNoOtherFile) {
  const record::ScratchFolder folder;
  write_run_without_evidence(folder.path());
  const reports::RunResult result = read_run(folder.path());
  std::ofstream(folder.path() / "summary.json") << "original";
  write_page(result, folder.path());
  EXPECT_TRUE(fs::exists(folder.path() / "report.html"));
  EXPECT_EQ(record::read_text(folder.path() / "summary.json"), "original");
}

}  // namespace
}  // namespace graphproof::launcher
