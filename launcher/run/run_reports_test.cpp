#include "launcher/run/run_reports.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <fstream>
#include <functional>
#include <map>

#include "reports/history/history.h"
#include "reports/outcome/summary.h"
#include "reports/print/packing.h"
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

/// Writes the run of write_run_without_evidence() as RUNS/ID, with another day and verdict.
reports::RunResult written_run(const fs::path& runs, int day, record::Verdict verdict) {
  const std::string id = "2026112" + std::to_string(day) + "-101500-3f2a";
  fs::create_directories(runs / id);
  write_run_without_evidence(runs / id);
  record::Run run = record::run_from(record::read_json(runs / id / "run.json"), "run.json");
  run.run_id = id;
  run.started = "2026-11-2" + std::to_string(day) + "T10:15:00Z";
  run.stack.nccl_version = day < 2 ? "2.28" : "2.29";
  record::write_json(runs / id / "run.json", record::to_json(run));
  reports::RunResult result = read_run(runs / id);
  result.cases[0].record.verdict = result.cases[0].record.observed = verdict;
  return result;
}

/// The data that a page shows, as its script unpacks them.
nlohmann::json data_of(const fs::path& page) {
  const std::string text = record::read_text(page), begin = "id=\"data\">";
  const std::size_t at = text.find(begin) + begin.size();
  const std::string encoded = text.substr(at, text.find('<', at) - at);
  std::string bytes(encoded.size(), '\0');
  EXPECT_GT(EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                            reinterpret_cast<const unsigned char*>(encoded.data()),
                            static_cast<int>(encoded.size())),
            0);
  return nlohmann::json::parse(reports::gunzip(bytes));
}

TEST(RunReports, ThePageOfTheThirdRunKnowsTheTwoInTheHistory) {
  const record::ScratchFolder runs;
  const record::Verdict pass = *record::Verdict::from("pass"),
                        fails = *record::Verdict::from("fail.capture");
  {
    reports::History history(runs.path() / reports::kHistoryFile, reports::Database::Mode::write);
    history.add(written_run(runs.path(), 1, pass));
    history.add(written_run(runs.path(), 2, fails));
  }
  const reports::RunResult third = written_run(runs.path(), 3, fails);
  const fs::path folder = runs.path() / third.run.run_id;
  write_reports(third, folder);
  const nlohmann::json known = data_of(folder / "report.html").at("cross_run");
  EXPECT_EQ(known.at("last_run"), "20261122-101500-3f2a");
  EXPECT_TRUE(known.at("broke").empty()) << "it failed in the last run already";
  EXPECT_EQ(known.at("sequences"),
            nlohmann::json::array({nlohmann::json::array({"pass", "fail.capture"})}));
  EXPECT_EQ(known.at("since").at("0"),
            "It fails since run 20261122-101500-3f2a; the last good run was "
            "20261121-101500-3f2a. Between the two changed NCCL 2.28 -> 2.29.");
  // On the stack of this run it failed twice and never passed.
  EXPECT_TRUE(known.at("flaky").empty());

  const reports::RunResult healed = written_run(runs.path(), 4, pass);
  write_page(healed, runs.path() / healed.run.run_id);
  const nlohmann::json then =
      data_of(runs.path() / healed.run.run_id / "report.html").at("cross_run");
  EXPECT_EQ(then.at("healed"), nlohmann::json::array({0}));
  EXPECT_EQ(then.at("flaky").at("0"),
            "It failed in 1 of 2 runs on this stack (95 % interval of the rate: 9 to 91 %).");
}

TEST(RunReports, AHistoryThatCannotBeUsedIsNamedAndKeepsNoReportBack) {
  const record::ScratchFolder runs;
  const reports::RunResult result = written_run(runs.path(), 1, *record::Verdict::from("pass"));
  const fs::path folder = runs.path() / result.run.run_id;
  EXPECT_EQ(earlier_runs(result, folder).unknown,
            "There is no history next to this run; graphproof history add makes one.");
  const std::string damage(5000, 'x');
  std::ofstream(runs.path() / reports::kHistoryFile) << damage;
  for (const fs::path& spelling : {folder, folder / "", folder / "."}) {
    const std::string unknown = earlier_runs(result, spelling).unknown;
    EXPECT_TRUE(unknown.starts_with("Earlier runs are not known: the history is damaged"))
        << unknown;
  }
  write_reports(result, folder);
  EXPECT_TRUE(fs::exists(folder / "report.html"));
  EXPECT_EQ(record::read_text(runs.path() / reports::kHistoryFile), damage);
}

/// The content of every file below `folder`, by its path.
std::map<std::string, std::string> content_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files[entry.path().lexically_relative(folder)] = record::read_text(entry.path());
  return files;
}

/// Replaces what is in a file of the run, or adds to it.
void put(const fs::path& file, const std::string& text, std::ios::openmode mode = std::ios::trunc) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::out | mode) << text;
}
std::string replaced(std::string text, const std::string& old_text, const std::string& new_text) {
  text.replace(text.find(old_text), old_text.size(), new_text);
  return text;
}

TEST(RunReports, OfADamagedRunWhatCanBeReadIsReportedAndTheDamageIsNamed) {
  const std::string checks = "cases/1111111111111111/attempt-1/checks.json";
  struct Row {
    std::string file, text;
    std::ios::openmode mode;
    std::string said;
  };
  const Row rows[] = {
      {"journal.jsonl", "{\"schema\": \"graph", std::ios::app, "is torn after 17 bytes"},
      {"journal.jsonl", "2222222222222222", std::ios::app,
       "The journal has 1 case that the plan does not have"},
      {checks, "{\"schema\": \"graph", std::ios::trunc,
       "1 file with the results of checks can't be read"},
      {checks, "[\"of another program\"]", std::ios::trunc,
       "1 file with the results of checks can't be read"},
      {checks, "{\"schema\": \"graphproof-checks/9\"}", std::ios::trunc, "graphproof-checks/9"},
      {"summary.json", "{\"schema\": \"graph", std::ios::trunc,
       "How and after what time the run ended is not known"},
      {"summary.json", "{\"schema\": \"graphproof-summary/9\"}", std::ios::trunc,
       "graphproof-summary/9"}};
  for (const Row& row : rows) {
    const record::ScratchFolder folder;
    write_run_without_evidence(folder.path());
    std::string text = row.text;
    if (text == "2222222222222222")  // a whole record
      text = replaced(record::read_text(folder.path() / "journal.jsonl"), "1111111111111111", text);
    put(folder.path() / row.file, text, row.mode);
    const auto before = content_of(folder.path());
    const reports::RunResult result = read_run(folder.path());
    const std::string said = overview_of(result, folder.path(), matrix::load_catalogue()).sentence;
    EXPECT_NE(said.find(row.said), std::string::npos)
        << row.file << " " << row.text << ": " << said;
    EXPECT_NE(reports::exit_code(result), record::ExitCode::ok) << row.file;
    write_page(result, folder.path());
    auto after = content_of(folder.path());
    EXPECT_EQ(after.erase("report.html"), 1u);
    EXPECT_EQ(after, before) << row.file << ": nothing original is changed";
  }
}

TEST(RunReports, WithoutARunAPlanOrAJournalThereIsAMessageAndNoReport) {
  struct Row {
    std::string file;
    std::function<std::string(const std::string&)> damaged;
    std::string said;
  };
  const auto newer = [](const char* old_text, const char* new_text) {
    return [=](const std::string& text) { return replaced(text, old_text, new_text); };
  };
  const Row rows[] = {
      {"run.json", newer("graphproof-run/1", "graphproof-run/9"), "graphproof-run/9"},
      {"run.json", [](const std::string& text) { return text.substr(0, 40); }, "is not JSON"},
      {"plan.jsonl", newer("graphproof-plan/1", "graphproof-plan/9"), "graphproof-plan/9"},
      {"plan.jsonl", [](const std::string& text) { return text + "{\"schema\""; },
       "ends in the middle of line 2"},
      {"plan.jsonl", [](const std::string& text) { return text + text; },
       "line 2 has the id of line 1"},
      {"journal.jsonl", newer("graphproof-record/1", "graphproof-record/9"), "graphproof-record/9"},
      {"journal.jsonl", [](const std::string& text) { return "\x1b[2J\n" + text; }, "line 1"}};
  for (const Row& row : rows) {
    const record::ScratchFolder folder;
    write_run_without_evidence(folder.path());
    put(folder.path() / row.file, row.damaged(record::read_text(folder.path() / row.file)));
    const auto before = content_of(folder.path());
    try {
      read_run(folder.path());
      ADD_FAILURE() << row.file << " was read: " << row.said;
    } catch (const record::ReadError& error) {
      EXPECT_NE(std::string(error.what()).find(row.said), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(row.file), std::string::npos) << error.what();
      EXPECT_NE(error.message().next, "") << error.what();
    }
    EXPECT_EQ(content_of(folder.path()), before);
  }
}

}  // namespace
}  // namespace graphproof::launcher
