#include "reports/outcome/run_result.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "reports/outcome/outcome.h"
#include "reports/record/run/journal.h"
#include "reports/record/text/file.h"

namespace graphproof::reports {
namespace {

constexpr std::array<std::string_view, 6> kEndings = {"finished",        "interrupted", "budget",
                                                      "circuit_breaker", "max_fail",    "disk"};

NotRun not_run(Ending ending) {
  switch (ending) {
    case Ending::budget:
      return NotRun::budget;
    case Ending::circuit_breaker:
      return NotRun::circuit_breaker;
    case Ending::max_fail:
      return NotRun::max_fail;
    case Ending::disk:
      return NotRun::disk;
    // A finished run should have no such case. If it has one, the case counts as interrupted.
    case Ending::finished:
    case Ending::interrupted:
      break;
  }
  return NotRun::interrupted;
}

using ResultsOf = std::function<CheckResults(const record::Record&)>;

/// Reads the checks of the cases. Of a large run this takes most of the time, so threads share it.
/// Returns how many could not be read, and the message about the first of them.
std::pair<std::size_t, std::string> add_checks(const std::vector<CaseResult*>& cases,
                                               const ResultsOf& results_of) {
  std::atomic<std::size_t> next = 0;
  std::mutex several;
  std::map<std::size_t, std::string> unreadable;  // by index, so that the first is always the same
  const auto work = [&] {
    for (std::size_t i = next++; i < cases.size(); i = next++) {
      try {
        cases[i]->checks = results_of(cases[i]->record);
      } catch (const record::ReadError& error) {
        const std::lock_guard lock(several);
        unreadable.emplace(i, error.message().what + ": " + error.message().got);
      }
    }
  };
  const std::size_t threads =
      std::min<std::size_t>({cases.size(), std::max(1u, std::thread::hardware_concurrency()), 8});
  std::vector<std::future<void>> workers;
  for (std::size_t i = 0; i < threads; ++i) workers.push_back(std::async(std::launch::async, work));
  for (std::future<void>& worker : workers) worker.get();
  return {unreadable.size(), unreadable.empty() ? "" : unreadable.begin()->second};
}

std::string counted(std::size_t count, const std::string& one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

}  // namespace

std::string_view name(Ending ending) { return kEndings[static_cast<std::size_t>(ending)]; }

Ending ending_from(std::string_view text) {
  for (std::size_t i = 0; i < kEndings.size(); ++i)
    if (kEndings[i] == text) return static_cast<Ending>(i);
  return Ending::interrupted;
}

std::string RunResult::repro(const std::string& case_id) const {
  return "./graphproof repro " + (run_name.empty() ? run.run_id : run_name) + "/" + case_id;
}

RunResult run_result(record::Run run, std::vector<record::PlanLine> plan,
                     std::map<std::string, record::Record> last_records, Ending ending,
                     double wall_seconds, const ResultsOf& results_of) {
  RunResult result{.run = std::move(run),
                   .run_name = "",
                   .ending = ending,
                   .wall_seconds = wall_seconds,
                   .cases = {}};
  result.run_name = result.run.run_id;
  result.cases.reserve(plan.size());
  std::vector<CaseResult*> judged;
  for (record::PlanLine& line : plan) {
    const auto found = last_records.find(line.id);
    if (found != last_records.end()) {
      result.cases.push_back({std::move(line), std::move(found->second), {}});
      judged.push_back(&result.cases.back());
      continue;
    }
    const OutcomeInput input{.plan = line, .context = {}, .checks = {}, .not_run = not_run(ending)};
    record::Record record = make_record(input, outcome(input, {}), result.run.run_id, "");
    result.cases.push_back({std::move(line), std::move(record), {}});
  }
  // Records of cases that the plan has were moved away, but their keys are still there.
  if (last_records.size() > judged.size())
    result.notes.push_back("The journal has " +
                           counted(last_records.size() - judged.size(), "case") +
                           " that the plan does not have; they are left out.");
  if (const auto [count, first] = add_checks(judged, results_of); count > 0)
    result.notes.push_back(counted(count, "file") + " with the results of checks can't be read (" +
                           first + ").");
  return result;
}

RunResult read_run_result(const std::filesystem::path& run_folder, Ending ending,
                          double wall_seconds) {
  const auto run_file = run_folder / "run.json", plan_file = run_folder / "plan.jsonl";
  record::Run run = record::run_from(record::read_json(run_file), run_file.string());
  auto plan = record::plan_from(record::read_text(plan_file), plan_file.string());
  record::JournalContent journal = record::read_journal(run_folder / "journal.jsonl");
  const auto results_of = [&run_folder](const record::Record& record) -> CheckResults {
    const auto file = run_folder / record.artefacts / "checks.json";
    if (record.artefacts.empty() || !std::filesystem::exists(file)) return {};
    return record::check_results_from(record::read_text(file), file.string());
  };
  RunResult result =
      run_result(std::move(run), std::move(plan), record::last_records(std::move(journal.records)),
                 ending, wall_seconds, results_of);
  if (!journal.dropped.empty()) result.notes.push_back("The journal: " + journal.dropped + ".");
  return result;
}

}  // namespace graphproof::reports
