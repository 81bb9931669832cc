// For tests that end and disturb runs at random moments: a plan with cases of every kind, a host
// that obeys the test (fake_host.h), and what must hold for a run folder whatever happened to it.
#pragma once

#include <cstdlib>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/batch/attempt_folder.h"
#include "launcher/policy/case_policy.h"
#include "launcher/testing/fake_host.h"
#include "launcher/testing/run_of_fakes.h"

namespace graphproof::launcher {

inline int number_in(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : otherwise;
}

/// A run of fakes on a fake host.
struct ChaosOfFakes : RunOfFakes {
  ChaosOfFakes() {
    setenv(kFakeHostVariable, (scratch.path() / "fake-host").c_str(), 1);
    setup.disk_floor_bytes = 1;  // so that the disk becomes full, and not only nearly full
    for (auto& [phase, limit_ms] : setup.run.options.limits_ms) limit_ms = 2000;
    setup.plan = {fake_line(0, 1, ""),
                  fake_line(1, 1, "wrong replay 0"),
                  fake_line(2, 2, ""),
                  fake_line(3, 1, "slow replay 0"),
                  fake_line(4, 2, "exit7 build 1", "process"),
                  fake_line(5, 1, ""),
                  fake_line(6, 1, "slow replay 0"),
                  fake_line(7, 2, ""),
                  fake_line(8, 1, "", "process"),
                  fake_line(9, 4, "signal capture 2", "process"),
                  fake_line(10, 4, "slow replay 0", "process"),  // one of them is prestarted
                  fake_line(11, 4, "slow replay 0", "process")};
  }

  void TearDown() override {
    if (!HasFailure()) return;
    const std::filesystem::path kept =
        std::filesystem::temp_directory_path() / ("chaos-" + std::to_string(getpid()));
    std::error_code ignored;
    std::filesystem::copy(
        folder, kept,
        std::filesystem::copy_options::recursive | std::filesystem::copy_options::skip_symlinks,
        ignored);
    std::cout << "the run folder of the round that failed: " << kept.string() << "\n";
  }

  static std::map<std::string, std::string> verdicts(const reports::RunResult& result) {
    std::map<std::string, std::string> found;
    for (const reports::CaseResult& one : result.cases)
      found[one.plan.id] = one.record.verdict.text();
    return found;
  }

  /// The cases whose verdict stands by the journal as it is now, with the numbers of their
  /// attempts.
  std::map<std::string, std::vector<int>> final_cases() const {
    std::map<std::string, std::vector<int>> found;
    for (const auto& [id, record] : record::last_records(journal()))
      for (const record::PlanLine& line : setup.plan)
        if (line.id == id && !wants_diagnosis(record, line) && !record.verdict.in("infra"))
          found[id] = attempt_numbers(folder, id);
    return found;
  }

  std::vector<int> ranks_of_the_run() const {
    std::vector<int> pids;
    for (const Process& process : processes_of(0, setup.run.run_id + "."))
      if (process.command.starts_with("graphproof_fake") || process.command == "graphproof_fake")
        pids.push_back(process.pid);
    return pids;
  }
  std::vector<int> starters_of_the_run() const {
    std::vector<int> pids;
    for (const Process& process : processes_of(0, setup.run.run_id + "."))
      if (process.command == "mpirun" || process.command == "graphproof-star")
        pids.push_back(process.pid);
    return pids;
  }

  std::vector<std::string> half_written() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().filename().string().find(".writing-") != std::string::npos)
        found.push_back(entry.path());
    return found;
  }

  void expect_one_verdict_each(const std::string& round) const {
    std::set<std::pair<std::string, int>> attempts;
    std::map<std::string, int> final;
    for (const record::Record& record : journal()) {
      EXPECT_TRUE(attempts.emplace(record.case_id, record.attempt).second)
          << round << record.name << " attempt " << record.attempt;
      EXPECT_TRUE(record.attempt == 1 || !record.again.empty())
          << round << record.name << " does not say why it ran again";
      EXPECT_EQ(final[record.case_id], 0)
          << round << record.name << " was run after its verdict stood";
      for (const record::PlanLine& line : setup.plan)
        if (line.id == record.case_id)
          final[record.case_id] += !wants_diagnosis(record, line) && !record.verdict.in("infra");
    }
  }
};

/// Restarts the test program with fake_host.so preloaded, because only a fresh process can have its
/// calls intercepted.
inline int main_with_fake_host(int count, char** arguments) {
  const std::string host =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fake_host.so";
  const char* preloaded = std::getenv("LD_PRELOAD");
  if ((preloaded == nullptr || host != preloaded) && std::filesystem::exists(host)) {
    setenv("LD_PRELOAD", host.c_str(), 1);
    execv("/proc/self/exe", arguments);
  }
  testing::InitGoogleTest(&count, arguments);
  return RUN_ALL_TESTS();
}

}  // namespace graphproof::launcher
