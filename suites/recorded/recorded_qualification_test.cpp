// A qualification of real GPUs: its digests hold, its stages are judged again, and the sheet says
// what they say.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "launcher/run/judge_again.h"
#include "matrix/case/case.h"
#include "matrix/catalogue/catalogue.h"
#include "reports/record/run/summary.h"
#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"
#include "reports/record/verdict/exit_code.h"
#include "suites/recorded/recorded_runs.h"

namespace graphproof {
namespace {

namespace fs = std::filesystem;

nlohmann::json sheet_of(const fs::path& folder) {
  return record::read_json(folder / "qualification.json");
}

/// The files of SHA256SUMS whose digest is another one; every file that it does not list.
std::vector<std::string> changed(const fs::path& folder) {
  std::vector<std::string> names;
  std::set<std::string> listed;
  std::istringstream sums(record::read_text(folder / "SHA256SUMS"));
  for (std::string line; std::getline(sums, line);) {
    const std::string digest = line.substr(0, 64), name = line.substr(66);
    listed.insert(name);
    if (!fs::exists(folder / name) ||
        matrix::sha256_hex(record::read_text(folder / name)) != digest)
      names.push_back(name);
  }
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder).string();
    if (entry.is_regular_file() && !listed.contains(name) && name != "SHA256SUMS" &&
        !name.starts_with("qualification."))
      names.push_back(name);
  }
  return names;
}

TEST(RecordedQualification, TheDigestsHoldAndAChangedFileIsFound) {
  ASSERT_FALSE(recorded_runs().empty());
  for (const fs::path& folder : recorded_runs()) {
    EXPECT_TRUE(changed(folder).empty()) << folder << " " << changed(folder).front();
    EXPECT_EQ(sheet_of(folder).at("signature"),
              matrix::sha256_hex(record::read_text(folder / "SHA256SUMS")));
    const record::ScratchFolder scratch{"/tmp"};
    const fs::path copy = scratch.path() / "copy";
    fs::copy(folder, copy, fs::copy_options::recursive);
    std::string plan = record::read_text(copy / "stages/faults/plan.jsonl");
    plan.front() = ' ';
    record::write_atomically(copy / "stages/faults/plan.jsonl", plan);
    record::write_atomically(copy / "stages/added", "a file that nobody signed");
    EXPECT_EQ(changed(copy),
              (std::vector<std::string>{"stages/faults/plan.jsonl", "stages/added"}));
  }
}

TEST(RecordedQualification, JudgedAgainEveryStageHasItsVerdictsAndTheSheetItsExitCode) {
  const reports::CheckEffects effects = reports::check_effects(matrix::load_catalogue().checks);
  int judged = 0;
  for (const fs::path& folder : recorded_runs()) {
    const nlohmann::json sheet = sheet_of(folder);
    record::ExitCode strongest = record::ExitCode::ok;
    for (const nlohmann::json& stage : sheet.at("stages")) {
      const auto code = static_cast<record::ExitCode>(stage.at("exit_code").get<int>());
      strongest = record::stronger(strongest, code);
      if (!stage.at("shown")) continue;
      const record::ScratchFolder scratch{"/tmp"};
      const fs::path run = scratch.path() / "run";
      fs::copy(folder / stage.at("folder").get<std::string>(), run, fs::copy_options::recursive);
      const record::Summary recorded =
          record::summary_from(record::read_json(run / "summary.json"), run / "summary.json");
      EXPECT_EQ(recorded.exit_code, record::value(code)) << stage.at("name");
      launcher::judge_again(run, fs::path(std::getenv("GRAPHPROOF_BIN")) / "graphproof-judge",
                            effects);
      const reports::RunResult again = launcher::JudgedRun(run).decide(effects);
      ASSERT_EQ(again.cases.size(), recorded.cases.size()) << stage.at("name");
      for (std::size_t index = 0; index < again.cases.size(); ++index) {
        const reports::CaseResult& now = again.cases[index];
        EXPECT_EQ(now.record.verdict.text(), recorded.cases[index].verdict.text())
            << now.plan.name << ": " << now.record.reason;
        judged += !now.record.verdict.in("not_run") && !now.record.verdict.in("skipped");
      }
    }
    EXPECT_EQ(sheet.at("exit_code"), record::value(strongest)) << folder;
  }
  EXPECT_GT(judged, 0);
}

}  // namespace
}  // namespace graphproof
