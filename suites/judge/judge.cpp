// graphproof-judge ATTEMPT_FOLDER... [--drop CHECK]... [--gtest_...]
// graphproof-judge --watched RUN_FOLDER... [--gtest_...]
//
// Judges each attempt, or each watched run, from its files alone and writes checks.json into its
// folder; of a watched run it also writes the evidence of each process as lines. Each check is
// shown as a GoogleTest test; `unexercised` and `not_applicable` are shown as skipped, with the
// reason. Exits with 0 if checks.json was written, whatever the results, because reports/outcome
// makes the verdict; with 2 for a wrong command line; with 6 if an attempt or a run could not be
// judged.
#include <gtest/gtest.h>

#include <iostream>
#include <set>
#include <vector>

#include "matrix/catalogue/catalogue.h"
#include "reports/record/text/file.h"
#include "reports/record/verdict/exit_code.h"
#include "suites/checks/check_table.h"
#include "suites/checks/watched/watched_check_table.h"
#include "suites/judge/attempt_folder.h"
#include "suites/judge/watched_folder.h"

namespace {

using namespace graphproof;

struct CommandLine {
  std::vector<std::filesystem::path> folders;
  std::set<std::string> dropped;
  bool watched = false;  // the folders are those of watched runs
};

record::Error usage(std::string got) {
  return record::Error({.what = "graphproof-judge cannot read its command line",
                        .got = std::move(got),
                        .want = "graphproof-judge ATTEMPT_FOLDER... [--drop CHECK]..., or "
                                "graphproof-judge --watched RUN_FOLDER...",
                        .why = "",
                        .next = "give folders of attempts, or of runs of ./graphproof watch; "
                                "./graphproof list checks names the checks"});
}

/// Reads the arguments that are left after GoogleTest has removed its own flags.
CommandLine parse(int argc, char** argv, const matrix::CheckTable& table) {
  CommandLine line;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--drop") {
      if (++i == argc) throw usage("--drop without a check");
      if (!table.find(argv[i]))
        throw usage(std::string("--drop ") + argv[i] + ", which is no check");
      line.dropped.insert(argv[i]);
    } else if (argument == "--watched") {
      line.watched = true;
    } else if (argument.starts_with("-")) {
      throw usage("option " + argument);
    } else {
      line.folders.push_back(argument);
    }
  }
  if (line.folders.empty()) throw usage("no folder");
  if (line.watched && !line.dropped.empty()) throw usage("--drop with --watched");
  return line;
}

/// Shows a result that was judged and written before.
class JudgedCheck : public testing::Test {
 public:
  explicit JudgedCheck(record::CheckResult result) : result_(std::move(result)) {}
  void TestBody() override {
    // The message of a watched run begins with the process, which names its rank.
    const bool names_it = result_.message.what.starts_with("rank ");
    const std::string where =
        result_.rank && !names_it ? "rank " + std::to_string(*result_.rank) + ": " : std::string();
    const std::string message = where + record::to_text(result_.message);
    switch (result_.result) {
      case record::Result::pass:
        return;
      case record::Result::fail:
        ADD_FAILURE() << message;
        return;
      case record::Result::unexercised:
        GTEST_SKIP() << "unexercised: " << message;
      case record::Result::not_applicable:
        GTEST_SKIP() << "not applicable: " << message;
    }
  }

 private:
  record::CheckResult result_;
};

void register_test(const record::CheckResult& result) {
  const std::size_t dot = result.check.find('.');
  testing::RegisterTest(result.check.substr(0, dot).c_str(), result.check.substr(dot + 1).c_str(),
                        nullptr, nullptr, __FILE__, __LINE__,
                        [result]() -> testing::Test* { return new JudgedCheck(result); });
}

std::vector<record::CheckResult> judge_attempt(const std::filesystem::path& folder,
                                               const CommandLine& line,
                                               const matrix::AxisTable& axes,
                                               const matrix::CheckTable& table) {
  const record::Checks judged =
      checks::judge(judge::load_attempt(folder, axes, table), table, line.dropped);
  record::write_json(folder / "checks.json", record::to_json(judged));
  return judged.checks;
}

std::vector<record::CheckResult> judge_watched_run(const std::filesystem::path& folder,
                                                   const matrix::CheckTable& table) {
  const checks::watched::WatchedJob job = judge::load_watched_job(folder);
  judge::write_watched_evidence(folder, job);
  const record::WatchedChecks judged = checks::watched::judge_watched(job, table);
  record::write_json(folder / record::kWatchedChecksFile, record::to_json(judged));
  return judged.checks;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const auto quit = [](record::ExitCode code, const std::exception& error) {
    std::cerr << "graphproof-judge: " << error.what() << "\n";
    return static_cast<int>(code);
  };
  try {
    // Only these tables, because the rules take most of the time of loading the whole catalogue.
    const matrix::AxisTable axes = matrix::load_axes();
    const matrix::CheckTable table = matrix::load_checks(axes);
    CommandLine line;
    try {
      line = parse(argc, argv, table);
    } catch (const record::Error& error) {
      return quit(record::ExitCode::usage, error);
    }
    int code = 0;
    for (const std::filesystem::path& folder : line.folders) {
      try {
        const std::vector<record::CheckResult> results =
            line.watched ? judge_watched_run(folder, table)
                         : judge_attempt(folder, line, axes, table);
        for (const record::CheckResult& result : results) register_test(result);
      } catch (const std::exception& error) {
        code = quit(record::ExitCode::own_fault, error);
      }
    }
    if (code != 0) return code;
  } catch (const std::exception& error) {
    return quit(record::ExitCode::own_fault, error);
  }
  [[maybe_unused]] const int status = RUN_ALL_TESTS();  // has no more than checks.json
  return static_cast<int>(record::ExitCode::ok);
}
