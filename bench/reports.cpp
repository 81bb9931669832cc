// What a run of ten thousand cases costs to compare, to report and to remember. The run is made of
// the cases of a recorded run, each many times with an id of its own and links to its evidence.
// Each work is a process of its own, as it is for a user, so that its peak memory is its own too.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <chrono>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <string>
#include <system_error>

#include "bench/cost.h"
#include "launcher/run/run_reports.h"
#include "reports/analysis/compare.h"
#include "reports/history/history.h"
#include "reports/print/compare_report.h"
#include "reports/print/formats/formats.h"
#include "reports/print/markdown.h"
#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"
#include "reports/testing/large_run.h"

namespace {

using namespace graphproof;
namespace fs = std::filesystem;

struct Arguments {
  std::string like;
  int cases = 10'000, runs = 1'000;
};

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Calls `work` in a child process and waits for it. Throws if it failed.
void in_child(const std::function<void()>& work) {
  std::cout.flush();
  const pid_t child = fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) {
    try {
      work();
    } catch (const std::exception& error) {
      std::cerr << error.what() << "\n";
      _exit(1);
    }
    std::cout.flush();
    _exit(0);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0)
    throw std::runtime_error("a work failed: see above");
}

/// The runs of a folder of nightly runs: `count` runs of a hundred cases each.
void fill(reports::History& history, reports::RunResult run, int count) {
  run.cases.resize(std::min<std::size_t>(run.cases.size(), 100));
  for (int i = 0; i < count; ++i) {
    run.run.run_id = fmt::format("run-{:05}", i);
    run.run.started = fmt::format("2026-01-01T00:00:00Z-{:05}", i);
    history.add(run);
  }
}

void measure(const Arguments& arguments) {
  // Next to the recorded run, so that evidence can be linked.
  const record::ScratchFolder scratch(fs::absolute(arguments.like).parent_path());
  const fs::path left = scratch.path() / "left", right = scratch.path() / "right";
  const fs::path history_file = scratch.path() / "history.db";
  in_child([&] {
    const auto slower = [](int, record::Record& record) {
      for (auto& [figure, value] : record.figures) value *= 1.04;
      return true;
    };
    reports::write_large_run(arguments.like, left, arguments.cases,
                             [](int, record::Record&) { return true; });
    reports::write_large_run(arguments.like, right, arguments.cases, slower);
  });

  std::cout << "| work | seconds | goal | peak memory, MB | goal |\n"
               "| --- | ---: | ---: | ---: | ---: |\n";
  const auto row = [](const std::string& work, double took, const char* goal,
                      const char* goal_mb = "") {
    std::cout << fmt::format("| {} | {:.2f} | {} | {:.0f} | {} |\n", work, took, goal,
                             bench::peak_mb(), goal_mb);
  };
  in_child([&] {
    row("read a run with the checks of its cases", seconds([&] { launcher::read_run(right); }), "");
  });
  // What `run` does at its end and then `report` with every format: one after the other in one
  // process, which is the most that they can take together.
  in_child([&] {
    const reports::RunResult result = launcher::read_run(right);
    const double reports = seconds([&] { launcher::write_reports(result, right); });
    row("the reports of every run, once it is read", reports, "");
    const double machines = seconds([&] {
      for (const reports::Format& format : reports::formats()) {
        record::AtomicFile file(right / (format.file.empty() ? format.name : format.file));
        format.put(result, right, [&](std::string_view piece) { file.append(piece); });
        file.commit();
      }
    });
    row("the formats for machines as well", machines, "");
    row("all reports together", reports + machines, "5", "315");
  });
  in_child([&] {
    row("compare two runs, with their evidence", seconds([&] {
          const reports::RunResult before = launcher::read_verdicts(left),
                                   now = launcher::read_verdicts(right);
          const auto comparison =
              reports::compare(before, now, reports::drifts(before, left, now, right));
          record::write_atomically(
              scratch.path() / "compare",
              reports::compare_report(comparison, {}, reports::CompareFormat::text));
        }),
        "3");
  });
  in_child([&] {
    reports::History history(history_file, reports::Database::Mode::write);
    fill(history, launcher::read_verdicts(left), arguments.runs);
  });
  in_child([&] {
    const reports::RunResult now = launcher::read_verdicts(right);
    row(fmt::format("add it to a history of {} runs, once it is read", arguments.runs),
        seconds([&] { reports::History(history_file, reports::Database::Mode::write).add(now); }),
        "1");
  });
  in_child([&] {
    reports::History history(history_file, reports::Database::Mode::read);
    row("the history of one case", seconds([&] { history.show(reports::large_run_id(0)); }), "");
    row("flaky cases of the latest 50 runs", seconds([&] { history.flaky(50); }), "");
  });
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("What a large run costs to compare, to report and to remember");
  app.add_option("--like", arguments.like, "the run folder whose cases are repeated")->required();
  app.add_option("--cases", arguments.cases, "cases of the run");
  app.add_option("--runs", arguments.runs, "runs that the history has already");
  CLI11_PARSE(app, argc, argv);
  try {
    measure(arguments);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
