// What the launcher itself costs: no-op cases, whose ranks and
// judge are those of the launcher's tests, in batches and in processes of their own, and as many no-ops through ctest, and
// prints, as Markdown, CPU time of the launcher alone, wall time, memory, and the time to the first verdict.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "launcher/child.h"
#include "launcher/fake_run.h"
#include "launcher/processes.h"
#include "launcher/run.h"
#include "launcher/tally.h"
#include "reports/record/plan.h"
#include "reports/record/scratch_folder.h"

namespace {

namespace fs = std::filesystem;
using namespace graphproof;
using Clock = std::chrono::steady_clock;

double cpu_seconds() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6; };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Resident memory now, in MiB.
double resident_mib() {
  std::istringstream pages(launcher::proc_text("/proc/self/statm"));
  long total = 0, resident = 0;
  pages >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

struct Cost {
  double cpu_s = 0, wall_s = 0, first_verdict_ms = 0, resident_mib = 0;
  int passed = 0;
};

Cost run_cases(const fs::path& folder, const fs::path& fake_rank, int cases, const char* isolation) {
  fs::create_directories(folder);
  launcher::RunSetup setup = launcher::fake_setup(folder, "20260101-000000-be2c", fake_rank);
  setup.run.slots = 2;
  for (auto& [phase, limit_ms] : setup.run.options.limits_ms) limit_ms = 30000;
  for (int i = 0; i < cases; ++i) setup.plan.push_back(launcher::fake_line(i, 1, "", isolation));
  Cost cost;
  const double cpu_before = cpu_seconds();
  const Clock::time_point begin = Clock::now();
  launcher::RunListener listener;
  listener.finished = [&](const record::Record& record, const reports::Progress&) {
    if (cost.passed == 0) cost.first_verdict_ms = seconds_since(begin) * 1000;
    cost.passed += record.verdict.text() == "pass";
    cost.resident_mib = std::max(cost.resident_mib, resident_mib());
  };
  launcher::run(setup, listener);
  if (cost.passed != cases) throw std::runtime_error(fmt::format("{} of {} no-op cases passed: {}", cost.passed, cases, folder.string()));
  cost.cpu_s = cpu_seconds() - cpu_before;
  cost.wall_s = seconds_since(begin);
  return cost;
}

/// The same number of no-ops as tests of ctest, two side by side; its own time and that of its children can't be told apart.
double ctest_wall_s(const fs::path& folder, int cases) {
  fs::create_directories(folder);
  std::ofstream tests(folder / "CTestTestfile.cmake");
  for (int i = 0; i < cases; ++i) tests << "add_test(t" << i << " /bin/true)\n";
  tests.close();
  const Clock::time_point begin = Clock::now();
  const launcher::Output output = launcher::run_to_end({{"ctest", "--test-dir", folder, "-j2", "-Q"}, launcher::own_environment()}, 600000);
  if (output.exit != launcher::Exit{}) throw std::runtime_error("ctest failed: " + output.error);
  return seconds_since(begin);
}

void print(const char* what, int cases, const Cost& cost) {
  std::cout << fmt::format("| {} | {} | {:.2f} | {:.2f} | {:.0f} | {:.0f} |\n", what, cases, cost.cpu_s * 1000 / cases,
                           cost.wall_s * 1000 / cases, cost.resident_mib, cost.first_verdict_ms)
            << std::flush;
  if (cost.passed != cases) std::cout << "only " << cost.passed << " of them passed: the figures are of something else\n";
}

}  // namespace

int main(int count, char** arguments) {
  int cases = 10000, alone = 300, listed = 100000;
  CLI::App app("what the launcher itself costs");
  app.add_option("--cases", cases, "no-op cases in batches")->check(CLI::PositiveNumber);
  app.add_option("--alone", alone, "no-op cases in processes of their own")->check(CLI::PositiveNumber);
  app.add_option("--status", listed, "cases of the plan whose status is asked")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, count, arguments);
  const fs::path tests = launcher::own_environment().contains("GRAPHPROOF_TESTS")
                             ? fs::path(std::getenv("GRAPHPROOF_TESTS"))
                             : fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "tests";
  const char* path = std::getenv("PATH");
  const record::ScratchFolder scratch{"/tmp"};
  std::cout << "| what | cases | launcher CPU, ms per case | wall, ms per case | resident, MiB | to the first verdict, ms |\n"
            << "| --- | ---: | ---: | ---: | ---: | ---: |\n";
  print("process isolation, Open MPI's mpirun", alone, run_cases(scratch.path() / "mpirun", tests / "graphproof_fake_rank", alone, "process"));
  setenv("PATH", (tests.string() + "/fake_mpirun:" + (path != nullptr ? path : "/usr/bin:/bin")).c_str(), 1);
  print("process isolation, a starter without MPI", alone, run_cases(scratch.path() / "alone", tests / "graphproof_fake_rank", alone, "process"));
  print("batches, a starter without MPI", cases, run_cases(scratch.path() / "batch", tests / "graphproof_fake_rank", cases, "batch"));
  const double ctest_s = ctest_wall_s(scratch.path() / "ctest", alone);
  std::cout << fmt::format("| ctest, `true` | {} | - | {:.2f} | - | - |\n", alone, ctest_s * 1000 / alone);
  // A plan of this size with as many records, made of those above.
  const fs::path large = scratch.path() / "large";
  fs::create_directories(large);
  {
    const std::string journal_line = [&] {
      std::ifstream in(scratch.path() / "batch" / "journal.jsonl");
      std::string first;
      std::getline(in, first);
      return first + "\n";
    }();
    std::ofstream plan(large / "plan.jsonl"), journal(large / "journal.jsonl");
    for (int i = 0; i < listed; ++i) {
      plan << record::to_line(launcher::fake_line(i, 1, ""));
      std::string one = journal_line;
      one.replace(one.find("\"case\":\"") + 8, 16, fmt::format("{:016x}", 0xabc000 + i));
      journal << one;
    }
  }
  const Clock::time_point begin = Clock::now();
  const launcher::Tally tally = launcher::tally(large);
  std::cout << fmt::format("\nstatus of a plan of {} cases with {} records: {:.2f} s\n", tally.planned, tally.planned - tally.not_run,
                           seconds_since(begin));
  return 0;
}
