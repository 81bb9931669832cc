// Every program of suites/watch/programs.json was watched on GPUs, with its defect and as its sound
// twin. What the probes left is judged again: the checks that the table names fail for the defect,
// and none fails for the twin.
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <set>

#include "matrix/catalogue/catalogue.h"
#include "matrix/input/located_json.h"
#include "reports/record/schema/violations.h"
#include "reports/record/text/file.h"
#include "suites/checks/watched/watched_check_table.h"
#include "suites/judge/watched_folder.h"
#include "suites/recorded/recorded_runs.h"

namespace graphproof {
namespace {

namespace fs = std::filesystem;

struct Program {
  std::string name;
  bool seen = false;             // by watching at all
  bool recorded = true;          // false: the table says that no recording has it yet
  std::set<std::string> checks;  // that fail for the defect
};

/// The rows of one list of the table.
std::vector<Program> programs(const char* list = "programs") {
  const fs::path file = fs::path(std::getenv("GRAPHPROOF_SOURCE")) / "suites/watch/programs.json";
  const matrix::Document document = matrix::parse_document(record::read_text(file), file.string());
  std::vector<Program> programs;
  for (const matrix::Located& row : matrix::Located(document).at(list).items()) {
    Program program{.name = row.at("program").string(),
                    .seen = row.string_or("seen_by", "driver") != "nothing",
                    .recorded = !row.has("recorded") || row.at("recorded").boolean(),
                    .checks = {}};
    for (const matrix::Located& check : row.at("checks").items())
      program.checks.insert(check.string());
    programs.push_back(std::move(program));
  }
  return programs;
}

bool is_recorded(const std::string& run) {
  for (const fs::path& recording : recorded_runs())
    if (fs::exists(recording / run / "watched.json")) return true;
  return false;
}

/// The checks that fail for a recorded run, each with its message.
std::map<std::string, std::string> failing(const fs::path& run) {
  static const matrix::CheckTable table = matrix::load_checks(matrix::load_axes());
  std::map<std::string, std::string> found;
  for (const record::CheckResult& result :
       checks::watched::judge_watched(judge::load_watched_job(run), table).checks)
    if (result.result == record::Result::fail)
      found[result.check] = record::to_text(result.message);
  return found;
}

TEST(RecordedWatchedRuns, TheNamedChecksFailForTheDefect) {
  for (const fs::path& recording : recorded_runs())
    for (const Program& program : programs()) {
      const fs::path run = recording / (program.name + "-defect");
      if (!fs::exists(run)) continue;
      const auto found = failing(run);
      for (const std::string& check : program.checks)
        EXPECT_TRUE(found.contains(check)) << run << ": " << check << " does not fail";
      if (program.seen) continue;
      for (const auto& [check, message] : found)
        ADD_FAILURE() << run << ", whose defect nothing sees, fails " << check << ": " << message;
    }
}

TEST(RecordedWatchedRuns, NoCheckFailsForTheTwin) {
  for (const fs::path& recording : recorded_runs())
    for (const Program& program : programs()) {
      const fs::path run = recording / (program.name + "-sound");
      if (!fs::exists(run)) continue;
      for (const auto& [check, message] : failing(run)) ADD_FAILURE() << run << ": " << message;
    }
}

/// Real programs and installed packages: exactly the named checks fail.
TEST(RecordedWatchedRuns, RealProgramsFailTheChecksThatTheTableNames) {
  for (const Program& program : programs("real")) {
    bool found = false;
    for (const fs::path& recording : recorded_runs()) {
      const fs::path run = recording / program.name;
      if (!fs::exists(run / "watched.json")) continue;
      found = true;
      std::set<std::string> failed;
      for (const auto& [check, message] : failing(run)) {
        failed.insert(check);
        EXPECT_TRUE(program.checks.contains(check)) << run << ": " << message;
      }
      EXPECT_EQ(failed, program.checks) << run;
    }
    EXPECT_EQ(found, program.recorded)
        << program.name
        << (program.recorded ? " is in no recording" : " is recorded: remove `recorded`");
  }
}

TEST(RecordedWatchedRuns, TheirFilesFitTheSchemas) {
  static const matrix::CheckTable table = matrix::load_checks(matrix::load_axes());
  record::SchemaOf of_run("watched"), of_checks("watched_checks");
  int runs = 0;
  for (const fs::path& recording : recorded_runs())
    for (const auto& entry : fs::directory_iterator(recording)) {
      if (!fs::exists(entry.path() / "watched.json")) continue;
      ++runs;
      for (const std::string& violation :
           of_run.violations(record::read_json(entry.path() / "watched.json")))
        ADD_FAILURE() << entry.path() << "/watched.json: " << violation;
      const record::WatchedChecks checks =
          checks::watched::judge_watched(judge::load_watched_job(entry.path()), table);
      for (const std::string& violation :
           of_checks.violations(nlohmann::json(record::to_json(checks))))
        ADD_FAILURE() << entry.path() << "/checks.json: " << violation;
    }
  EXPECT_GT(runs, 0);
}

TEST(RecordedWatchedRuns, EveryProgramWasWatchedInBothForms) {
  for (const Program& program : programs())
    for (const char* form : {"-defect", "-sound"})
      EXPECT_EQ(is_recorded(program.name + form), program.recorded)
          << program.name << form
          << (program.recorded ? " is in no recording" : " is recorded: remove `recorded`");
}

/// What no GPU has shown yet is counted with every test run.
TEST(RecordedWatchedRuns, ProgramsThatNoGpuHasRunYetAreCounted) {
  std::string names;
  int count = 0;
  std::size_t all = 0;
  for (const char* list : {"programs", "real"})
    for (const Program& program : programs(list)) {
      ++all;
      if (program.recorded) continue;
      ++count;
      names += (names.empty() ? "" : ", ") + program.name;
    }
  std::cout << count << " of " << all << " programs were not recorded yet: " << names << "\n";
  RecordProperty("not_recorded", count);
}

}  // namespace
}  // namespace graphproof
