// What a run of ten thousand cases costs to compare, to report and to remember. The run is made of
// the cases of a recorded run, each many times with an id of its own and links to its evidence.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>

#include "bench/cost.h"
#include "launcher/run/run_reports.h"
#include "reports/analysis/compare.h"
#include "reports/history/history.h"
#include "reports/print/compare_report.h"
#include "reports/print/formats/formats.h"
#include "reports/print/markdown.h"
#include "reports/record/run/journal.h"
#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"

namespace {

using namespace graphproof;
namespace fs = std::filesystem;

struct Arguments {
  std::string like;
  int cases = 10'000, runs = 1'000;
};

/// Writes a run of `cases` cases like those of the run in `source`; figures are scaled by `factor`.
void write_run(const fs::path& source, const fs::path& folder, int cases, double factor) {
  fs::create_directories(folder);
  fs::copy(source / "run.json", folder / "run.json");
  const auto plan = record::plan_from(record::read_text(source / "plan.jsonl"), "plan.jsonl");
  const auto records = record::last_records(record::read_journal(source / "journal.jsonl").records);
  std::ofstream plan_out(folder / "plan.jsonl"), journal_out(folder / "journal.jsonl");
  for (int i = 0; i < cases; ++i) {
    record::PlanLine line = plan[static_cast<std::size_t>(i) % plan.size()];
    const auto found = records.find(line.id);
    line.id = fmt::format("{:016x}", i);
    line.name += fmt::format(",seq_length={}", i);
    plan_out << record::to_line(line);
    if (found == records.end()) continue;
    record::Record record = found->second;
    const fs::path attempt = source / record.artefacts;
    record.case_id = line.id;
    record.name = line.name;
    record.artefacts = "cases/" + line.id + "/attempt-1";
    for (auto& [figure, value] : record.figures) value *= factor;
    journal_out << record::to_line(record);
    fs::create_directories(folder / record.artefacts);
    for (const auto& entry : fs::directory_iterator(attempt))
      fs::create_hard_link(entry.path(), folder / record.artefacts / entry.path().filename());
  }
}

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
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

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("What a large run costs to compare, to report and to remember");
  app.add_option("--like", arguments.like, "the run folder whose cases are repeated")->required();
  app.add_option("--cases", arguments.cases, "cases of the run");
  app.add_option("--runs", arguments.runs, "runs that the history has already");
  CLI11_PARSE(app, argc, argv);

  // Next to the recorded run, so that evidence can be linked.
  const record::ScratchFolder scratch(fs::absolute(arguments.like).parent_path());
  const fs::path left = scratch.path() / "left", right = scratch.path() / "right";
  write_run(arguments.like, left, arguments.cases, 1);
  write_run(arguments.like, right, arguments.cases, 1.04);

  std::cout << "| work | seconds | goal | peak memory so far, MB |\n| --- | ---: | ---: | ---: |\n";
  const auto row = [](const std::string& work, double took, const char* goal) {
    std::cout << fmt::format("| {} | {:.2f} | {} | {:.0f} |\n", work, took, goal, bench::peak_mb())
              << std::flush;
  };
  reports::RunResult result;
  row("read a run with the checks of its cases",
      seconds([&] { result = launcher::read_run(right); }), "");
  row("all of its reports in the run folder",
      seconds([&] { launcher::write_reports(result, right); }), "5");
  row("its machine formats", seconds([&] {
        for (const reports::Format& format : reports::formats())
          record::write_atomically(right / "format", format.text(result, right));
      }),
      "");
  result = {};

  reports::RunResult before, now;
  row("compare two runs, with their evidence", seconds([&] {
        before = launcher::read_verdicts(left);
        now = launcher::read_verdicts(right);
        const auto comparison =
            reports::compare(before, now, reports::drifts(before, left, now, right));
        record::write_atomically(
            scratch.path() / "compare",
            reports::compare_report(comparison, {}, reports::CompareFormat::text));
      }),
      "3");
  reports::History history(scratch.path() / "history.db", reports::Database::Mode::write);
  fill(history, before, arguments.runs);
  now.run.run_id = "new";
  row(fmt::format("add it to a history of {} runs", arguments.runs),
      seconds([&] { history.add(now); }), "1");
  row("the history of one case", seconds([&] { history.show(now.cases.front().plan.id); }), "");
  row("flaky cases of the latest 50 runs", seconds([&] { history.flaky(50); }), "");
  return 0;
}
