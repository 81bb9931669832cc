// What the launcher itself costs, compared with ctest and ReFrame (PyPI's ReFrame-HPC) in the same
// run: no-op cases, whose ranks and judge are those of the launcher's tests, in batches and in
// processes of their own. Prints, as Markdown, the CPU time of the launcher alone, wall time,
// memory, and the times to the first verdict, from the program's start to its first rank, and of
// `graphproof status`.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "launcher/host/child.h"
#include "launcher/host/processes.h"
#include "launcher/run/run.h"
#include "launcher/testing/fake_run.h"
#include "reports/record/evidence/evidence.h"
#include "reports/record/job/plan.h"
#include "reports/record/testing/scratch_folder.h"

namespace {

namespace fs = std::filesystem;
using namespace graphproof;
using Clock = std::chrono::steady_clock;

double cpu_seconds() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The resident memory now, in MiB.
double resident_mib() {
  std::istringstream pages(launcher::proc_text("/proc/self/statm"));
  long total = 0, resident = 0;
  pages >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

constexpr int kLook =
    50;  // cases between two looks at the resident memory, which are part of the launcher's time

struct Cost {
  double cpu_s = 0, wall_s = 0, first_verdict_ms = 0, tenth_mib = 0,
         resident_mib = 0;  // after a tenth of the cases, and the largest
  int passed = 0;
};

Cost run_cases(const fs::path& folder, const fs::path& fake_rank, int cases, int ranks,
               const char* isolation) {
  fs::create_directories(folder);
  launcher::RunSetup setup = launcher::fake_setup(folder, "20260101-000000-be2c", fake_rank);
  setup.run.slots = 2;
  for (auto& [phase, limit_ms] : setup.run.options.limits_ms) limit_ms = 30000;
  for (int i = 0; i < cases; ++i)
    setup.plan.push_back(launcher::fake_line(i, ranks, "", isolation));
  Cost cost;
  const double cpu_before = cpu_seconds();
  const Clock::time_point begin = Clock::now();
  launcher::RunListener listener;
  listener.finished = [&](const record::Record& record, const reports::Progress&) {
    if (cost.passed == 0) cost.first_verdict_ms = seconds_since(begin) * 1000;
    cost.passed += record.verdict.text() == "pass";
    const int tenth = std::max(cases / 10, 1);
    if (cost.passed % kLook == 0 || cost.passed == tenth || cost.passed == cases)
      cost.resident_mib = std::max(cost.resident_mib, resident_mib());
    if (cost.passed <= tenth) cost.tenth_mib = cost.resident_mib;
  };
  launcher::run(setup, listener);
  if (cost.passed != cases)
    throw std::runtime_error(
        fmt::format("{} of {} no-op cases passed: {}", cost.passed, cases, folder.string()));
  cost.cpu_s = cpu_seconds() - cpu_before;
  cost.wall_s = seconds_since(begin);
  return cost;
}

/// How long a program takes, in milliseconds. Throws std::runtime_error unless it ends with one of
/// `codes`.
double wall_ms(const std::vector<std::string>& arguments, std::initializer_list<int> codes = {0}) {
  const Clock::time_point begin = Clock::now();
  const launcher::Output output =
      launcher::run_to_end({arguments, launcher::own_environment()}, 1200000);
  const double ms = seconds_since(begin) * 1000;
  if (output.exit.signalled ||
      std::find(codes.begin(), codes.end(), output.exit.value) == codes.end())
    throw std::runtime_error(fmt::format("{} ended with {}: {}{}", arguments.front(),
                                         output.exit.value, output.out, output.error));
  return ms;
}

/// The same number of no-ops as tests of ctest, two at the same time. Its own time and that of its
/// children cannot be separated.
double ctest_ms(const fs::path& folder, int cases) {
  fs::create_directories(folder);
  std::ofstream tests(folder / "CTestTestfile.cmake");
  for (int i = 0; i < cases; ++i) tests << "add_test(t" << i << " /bin/true)\n";
  tests.close();
  return wall_ms({"ctest", "--test-dir", folder, "-j2", "-Q"});
}

/// The same as cases of one parametrized ReFrame test on a local partition, two at the same time.
double reframe_ms(const std::string& reframe, const fs::path& folder, int cases) {
  fs::create_directories(folder);
  std::ofstream(folder / "settings.py")
      << "site_configuration = {'systems': [{'name': 'box', 'hostnames': ['.*'], 'partitions': "
         "[{'name': 'local', 'scheduler': 'local', "
         "'launcher': 'local', 'environs': ['none'], 'max_jobs': 2}]}], 'environments': [{'name': "
         "'none'}]}\n";
  std::ofstream(folder / "noop.py")
      << "import reframe as rfm\nimport reframe.utility.sanity as sn\n@rfm.simple_test\nclass "
         "NoOp(rfm.RunOnlyRegressionTest):\n"
         "    p = parameter(range("
      << cases
      << "))\n    valid_systems = ['*']\n    valid_prog_environs = ['*']\n    executable = 'true'\n"
         "    @sanity_function\n    def ended(self):\n        return sn.assert_true(1)\n";
  return wall_ms({reframe, "-C", folder / "settings.py", "--system", "box:local", "-c",
                  folder / "noop.py", "--prefix", folder, "-r"});
}

/// The time from the start of the program graphproof, with stand-ins for its ranks and judge in its
/// folder, to the first line of its first rank.
double first_rank_ms(const fs::path& folder, const fs::path& program, const fs::path& fake_rank) {
  fs::create_directories(folder / "bin");
  fs::copy_file(program, folder / "bin/graphproof");
  for (const char* name : {"graphproof-rank-sim", "graphproof-judge"})
    fs::create_symlink(fake_rank, folder / "bin" / name);
  fs::create_symlink(program.parent_path() / "graphproof-start", folder / "bin/graphproof-start");
  const double begin_ms =
      std::chrono::duration<double, std::milli>(Clock::now().time_since_epoch()).count();
  // That judge knows only one check, so every case ends unexercised.
  wall_ms({folder / "bin/graphproof", "run", "--profile", "smoke", "--device", "sim", "--where",
           "tp * pp * dp * ep == 1", "--run-dir", folder / "run"},
          {4});
  double first_ms = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder / "run/cases"))
    if (entry.path().filename() == "rank-0.evidence.jsonl") {
      const double began_ms =
          static_cast<double>(record::read_evidence(entry.path()).of<record::StartLine>()[0].t_ms) -
          begin_ms;
      first_ms = first_ms == 0 ? began_ms : std::min(first_ms, began_ms);
    }
  return first_ms;
}

/// A run with this many cases and as many records, made of the files of a small run.
void enlarge(const fs::path& small, const fs::path& large, int cases) {
  fs::create_directories(large);
  for (const char* name : {"run.json", "summary.json"}) fs::copy_file(small / name, large / name);
  std::ifstream in(small / "journal.jsonl");
  std::string journal_line;
  std::getline(in, journal_line);
  std::ofstream plan(large / "plan.jsonl"), journal(large / "journal.jsonl");
  for (int i = 0; i < cases; ++i) {
    plan << record::to_line(launcher::fake_line(i, 1, ""));
    std::string one = journal_line + "\n";
    one.replace(one.find("\"case\":\"") + 8, 16, fmt::format("{:016x}", 0xabc000 + i));
    journal << one;
  }
}

void print(const char* what, int cases, const Cost& cost) {
  std::cout << fmt::format("| {} | {} | {:.2f} | {:.2f} | {:.1f}, {:.1f} | {:.0f} |\n", what, cases,
                           cost.cpu_s * 1000 / cases, cost.wall_s * 1000 / cases, cost.tenth_mib,
                           cost.resident_mib, cost.first_verdict_ms)
            << std::flush;
}

}  // namespace

int main(int count, char** arguments) {
  int cases = 10000, alone = 300, listed = 100000;
  std::string runs = "/tmp", reframe = "reframe";
  CLI::App app("what the launcher itself costs");
  app.add_option("--cases", cases, "no-op cases in batches")->check(CLI::PositiveNumber);
  app.add_option("--alone", alone, "no-op cases in processes of their own")
      ->check(CLI::PositiveNumber);
  app.add_option("--status", listed, "cases of the plan whose status is asked")
      ->check(CLI::PositiveNumber);
  app.add_option("--runs", runs, "where run folders go: the file system's cost is in the figures")
      ->check(CLI::ExistingDirectory);
  app.add_option("--reframe", reframe, "the program of ReFrame-HPC (default: the one in PATH)");
  CLI11_PARSE(app, count, arguments);
  const fs::path tests = fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "tests";
  const record::ScratchFolder scratch(runs);
  std::cout << std::unitbuf
            << "| what | cases | launcher CPU, ms per case | wall, ms per case | resident after a "
               "tenth and at most, MiB | to the first verdict, ms |\n"
            << "| --- | ---: | ---: | ---: | ---: | ---: |\n";
  const fs::path rank = tests / "graphproof_fake_rank";
  print("process isolation, two ranks of Open MPI's mpirun", alone,
        run_cases(scratch.path() / "mpirun", rank, alone, 2, "process"));
  print("process isolation, one rank", alone,
        run_cases(scratch.path() / "alone", rank, alone, 1, "process"));
  print("batches, one rank", cases, run_cases(scratch.path() / "batch", rank, cases, 1, "batch"));
  std::cout << fmt::format("| ctest, `true` | {} | - | {:.2f} | - | - |\n", alone,
                           ctest_ms(scratch.path() / "ctest", alone) / alone);
  if (const fs::path program = launcher::find_program(reframe, launcher::own_environment());
      !program.empty())
    std::cout << fmt::format("| ReFrame, `true` | {} | - | {:.2f} | - | - |\n", alone,
                             reframe_ms(program, scratch.path() / "reframe", alone) / alone);
  else
    std::cout << "| ReFrame | not installed: pip install ReFrame-HPC into a venv, and name it by "
                 "--reframe | | | | |\n";
  const fs::path program = tests.parent_path() / "bin/graphproof";
  std::cout << "\n| what | ms |\n| --- | ---: |\n"
            << fmt::format("| start of graphproof to its first rank | {:.0f} |\n",
                           first_rank_ms(scratch.path() / "start", program,
                                         tests / "graphproof_fake_rank"));
  const fs::path large = scratch.path() / "large";
  enlarge(scratch.path() / "batch", large, listed);
  std::cout << fmt::format("| status of {} cases, finished | {:.0f} |\n", listed,
                           wall_ms({program, "status", large}));
  fs::remove(large / "summary.json");
  fs::resize_file(large / "journal.jsonl", fs::file_size(large / "journal.jsonl") / 2);
  std::cout << fmt::format("| status of {} cases, killed half-way | {:.0f} |\n", listed,
                           wall_ms({program, "status", large}));
  return 0;
}
