// Tests of the program and its reader, on attempt folders as ranks and the launcher leave them.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "reports/record/text/file.h"
#include "suites/checks/testing/clean_attempt.h"
#include "suites/judge/attempt_folder.h"

namespace graphproof::judge {
namespace {

namespace fs = std::filesystem;

const matrix::Catalogue& catalogue() {
  static const matrix::Catalogue loaded = matrix::load_catalogue();
  return loaded;
}

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A temporary run folder with one attempt.
class AttemptFolder {
 public:
  explicit AttemptFolder(const checks::Attempt& attempt, const std::string& which = "")
      : run_(fs::path(testing::TempDir()) / fs::path(std::string("judge-") + name() + which)) {
    fs::remove_all(run_);
    path_ = run_ / "cases" / attempt.context.case_id / "attempt-1";
    record::Context context = attempt.context;
    for (const checks::RankFiles& files : attempt.ranks) {
      std::string text;
      for (const checks::Line& line : files.evidence->lines) text += line.fields.dump() + "\n";
      write(evidence(files.rank), text);
      const std::string log = *files.log, earlier = "CUDA error: of an earlier case\n";
      write(run_ / "batches/b001" / log_name(files.rank),
            earlier + log + "CUDA error: of a later case\n");
      context.ranks.at(static_cast<std::size_t>(files.rank)).log = {
          "batches/b001/" + log_name(files.rank), static_cast<std::int64_t>(earlier.size()),
          static_cast<std::int64_t>(earlier.size() + log.size())};
    }
    record::write_json(path_ / "context.json", record::to_json(context));
  }
  ~AttemptFolder() { fs::remove_all(run_); }
  AttemptFolder(const AttemptFolder&) = delete;
  AttemptFolder& operator=(const AttemptFolder&) = delete;

  const fs::path& path() const { return path_; }
  fs::path evidence(int rank) const { return path_ / record::evidence_file_name(rank); }
  fs::path log(int rank) const { return run_ / "batches/b001" / log_name(rank); }
  fs::path checks_file() const { return path_ / "checks.json"; }

 private:
  static std::string name() {
    return testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  static std::string log_name(int rank) { return "rank-" + std::to_string(rank) + ".log"; }
  fs::path run_, path_;
};

checks::Attempt two_ranks() {
  return checks::clean_attempt(catalogue(),
                               {{"impl", "full_iteration"}, {"tp", 2}, {"microbatches", 2}});
}

struct Ended {
  int code;
  std::string output;
};

/// Runs the judge as the launcher does. The caller quotes arguments that need it.
Ended run_judge(const std::string& arguments) {
  const char* bin = std::getenv("GRAPHPROOF_BIN");
  const std::string command = (bin ? fs::path(bin) : fs::path("bin")) / "graphproof-judge";
  FILE* pipe = popen(("'" + command + "' " + arguments + " 2>&1").c_str(), "r");
  Ended ended{-1, ""};
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe))
    ended.output += static_cast<char>(c);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
  return ended;
}

record::Checks checks_of(const AttemptFolder& folder) {
  return record::checks_from(record::read_json(folder.checks_file()), "checks.json");
}

std::string word_of(const record::Checks& checks, const std::string& name) {
  for (const record::CheckResult& result : checks.checks)
    if (result.check == name) return std::string(record::name(result.result));
  return "missing";
}

TEST(LoadAttempt, ReadsWhatWasWritten) {
  const checks::Attempt written = two_ranks();
  const AttemptFolder folder(written);
  const checks::Attempt attempt = load_attempt(folder.path(), catalogue().axes, catalogue().checks);
  ASSERT_EQ(attempt.ranks.size(), 2u);
  EXPECT_EQ(attempt.ranks[1].evidence->lines.size(), written.ranks[1].evidence->lines.size());
  EXPECT_TRUE(attempt.ranks[1].evidence->complete());
  EXPECT_EQ(attempt.ranks[1].log, written.ranks[1].log);  // without the lines of other cases
  EXPECT_EQ(attempt.axes.integer("steps"), 5);
  EXPECT_TRUE(attempt.foreign_ranks.empty());
}

TEST(LoadAttempt, ReadsTheLogOfComputeSanitizer) {
  const AttemptFolder folder(two_ranks());
  const auto log = [&] {
    return load_attempt(folder.path(), catalogue().axes, catalogue().checks).sanitizer_log;
  };
  EXPECT_EQ(log(), std::nullopt);
  write(folder.path() / "compute-sanitizer.log", "========= COMPUTE-SANITIZER\n");
  EXPECT_EQ(log(), "========= COMPUTE-SANITIZER\n");
}

TEST(LoadAttempt, ALogShorterThanItsRangeIsAbsent) {
  const AttemptFolder folder(two_ranks());
  write(folder.log(1), "short\n");
  fs::remove(folder.log(0));
  const checks::Attempt attempt = load_attempt(folder.path(), catalogue().axes, catalogue().checks);
  EXPECT_FALSE(attempt.ranks[0].log);
  EXPECT_FALSE(attempt.ranks[1].log);
}

TEST(LoadAttempt, NamesEvidenceOfRanksOutsideTheWorld) {
  const AttemptFolder folder(two_ranks());
  write(folder.path() / "rank-7.evidence.jsonl", "{}\n");
  write(folder.path() / "rank-x.evidence.jsonl", "{}\n");
  EXPECT_EQ(load_attempt(folder.path(), catalogue().axes, catalogue().checks).foreign_ranks,
            std::vector<int>{7});
}

TEST(Judge, WritesChecksThatTheirReaderTakes) {
  const AttemptFolder folder(two_ranks());
  const Ended ended = run_judge(folder.path().string());
  EXPECT_EQ(ended.code, 0) << ended.output;
  const record::Checks checks = checks_of(folder);
  EXPECT_EQ(checks.case_id, two_ranks().context.case_id);
  EXPECT_EQ(checks.ranks.size(), 2u);
  EXPECT_EQ(word_of(checks, "D01.lockstep"), "pass");
  EXPECT_NE(ended.output.find("[       OK ] D01.lockstep"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("[  SKIPPED ] D28.one_libnccl"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("device sim loads no libnccl"), std::string::npos) << ended.output;
}

TEST(Judge, ExitsZeroWhereAChecksFails) {
  checks::Attempt attempt = two_ranks();
  checks::set(attempt, {.rank = 1, .kind = "poison", .arm = "lockstep_graph", .step = 3},
              "canary_words", 16);
  const AttemptFolder folder(attempt);
  const Ended ended = run_judge(folder.path().string());
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(word_of(checks_of(folder), "D03.outputs_written"), "fail");
  EXPECT_NE(ended.output.find("rank 1: the replay left poison"), std::string::npos) << ended.output;
}

TEST(Judge, JudgesWhatADyingRankLeft) {
  checks::Attempt attempt = two_ranks();
  checks::die_before(attempt, {.rank = 1, .kind = "replay", .arm = "lockstep_graph", .step = 3});
  const AttemptFolder folder(attempt);
  std::ofstream(folder.evidence(1), std::ios::app) << "{\"kind\":\"repl";  // torn
  EXPECT_EQ(run_judge(folder.path().string()).code, 0);
  const record::Checks checks = checks_of(folder);
  EXPECT_EQ(word_of(checks, "D21.evidence_complete"), "fail");
  EXPECT_EQ(word_of(checks, "D01.lockstep"), "unexercised");
  EXPECT_EQ(checks.ranks[1].last_phase, record::Phase::replay);
}

TEST(Judge, JudgesAnAttemptWithoutAnyEvidence) {
  const AttemptFolder folder(two_ranks());
  for (int rank : {0, 1}) fs::remove(folder.evidence(rank));
  EXPECT_EQ(run_judge(folder.path().string()).code, 0);
  EXPECT_EQ(word_of(checks_of(folder), "D21.evidence_complete"), "fail");
  EXPECT_EQ(word_of(checks_of(folder), "D43.replays"), "unexercised");
}

TEST(Judge, JudgesAllThatCanBeJudgedOfSeveral) {
  const AttemptFolder first(two_ranks(), "1"), broken(two_ranks(), "2"), last(two_ranks(), "3");
  write(broken.path() / "context.json", "{");
  EXPECT_EQ(run_judge(first.path().string() + " " + broken.path().string() + " " +
                      last.path().string() + " --drop D43.replays")
                .code,
            6);
  EXPECT_FALSE(fs::exists(broken.checks_file()));
  for (const AttemptFolder* folder : {&first, &last}) {
    EXPECT_EQ(word_of(checks_of(*folder), "D01.lockstep"), "pass");
    EXPECT_EQ(word_of(checks_of(*folder), "D43.replays"), "missing") << "dropped of each";
    fs::remove(folder->checks_file());
  }
  const Ended ended = run_judge(first.path().string() + " " + last.path().string());
  EXPECT_EQ(ended.code, 0) << ended.output;
  for (const AttemptFolder* folder : {&first, &last})
    EXPECT_EQ(word_of(checks_of(*folder), "D01.lockstep"), "pass");
}

TEST(Judge, LeavesADroppedCheckOut) {
  const AttemptFolder folder(two_ranks());
  EXPECT_EQ(run_judge(folder.path().string() + " --drop D43.replays --drop D01.lockstep").code, 0);
  EXPECT_EQ(word_of(checks_of(folder), "D43.replays"), "missing");
  EXPECT_EQ(word_of(checks_of(folder), "D01.lockstep"), "missing");
  EXPECT_EQ(word_of(checks_of(folder), "D01.free_run"), "pass");
}

TEST(Judge, AFilterShowsLessAndWritesEverything) {
  const AttemptFolder folder(two_ranks());
  const Ended ended = run_judge(folder.path().string() + " --gtest_filter=D43.*");
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.output.find("D01.lockstep"), std::string::npos) << ended.output;
  EXPECT_EQ(word_of(checks_of(folder), "D01.lockstep"), "pass");
}

TEST(Judge, ReplacesAnOlderResultAndLeavesNothingBesideIt) {
  const AttemptFolder folder(two_ranks());
  write(folder.checks_file(), "older");
  EXPECT_EQ(run_judge(folder.path().string()).code, 0);
  EXPECT_EQ(word_of(checks_of(folder), "D01.lockstep"), "pass");
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder.path())) ++files;
  EXPECT_EQ(files, 4u);  // context, two ranks, checks
}

TEST(Judge, CannotJudgeWithoutAContext) {
  const AttemptFolder folder(two_ranks());
  const std::string context = read(folder.path() / "context.json");
  for (const std::string& text : {std::string(), std::string("{"), std::string("[]"),
                                  context.substr(0, context.size() / 2)}) {
    write(folder.path() / "context.json", text);
    const Ended ended = run_judge(folder.path().string());
    EXPECT_EQ(ended.code, 6) << ended.output;
    EXPECT_NE(ended.output.find("context.json"), std::string::npos) << ended.output;
    EXPECT_FALSE(fs::exists(folder.checks_file()));
  }
  const Ended missing = run_judge("/nonexistent/attempt-1");
  EXPECT_EQ(missing.code, 6);
  EXPECT_NE(missing.output.find("/nonexistent/attempt-1"), std::string::npos) << missing.output;
}

struct WrongLine {
  const char* arguments;
  const char* message;
};

TEST(Judge, NamesWhatIsWrongWithItsCommandLine) {
  const WrongLine rows[] = {{"", "no folder"},
                            {"a --drop", "--drop without a check"},
                            {"a --drop D43.replay", "--drop D43.replay, which is no check"},
                            {"a --force", "option --force"}};
  for (const WrongLine& row : rows) {
    const Ended ended = run_judge(row.arguments);
    EXPECT_EQ(ended.code, 2) << row.arguments << ": " << ended.output;
    EXPECT_NE(ended.output.find(row.message), std::string::npos) << ended.output;
    EXPECT_NE(ended.output.find("graphproof-judge ATTEMPT_FOLDER... [--drop CHECK]..."),
              std::string::npos)
        << ended.output;
    EXPECT_NE(ended.output.find("next:"), std::string::npos) << ended.output;
  }
}

}  // namespace
}  // namespace graphproof::judge
