#include "reports/outcome/run_result.h"

#include <array>

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

RunResult run_result(
    record::Run run, const std::vector<record::PlanLine>& plan,
    const std::map<std::string, record::Record>& last_records, Ending ending, double wall_seconds,
    const std::function<std::optional<record::Checks>(const record::Record&)>& checks_of) {
  RunResult result{.run = std::move(run),
                   .run_name = "",
                   .ending = ending,
                   .wall_seconds = wall_seconds,
                   .cases = {}};
  result.run_name = result.run.run_id;
  for (const record::PlanLine& line : plan) {
    const auto found = last_records.find(line.id);
    if (found == last_records.end()) {
      const OutcomeInput input{
          .plan = line, .context = {}, .checks = {}, .not_run = not_run(ending)};
      result.cases.push_back(
          {line, make_record(input, outcome(input, {}), result.run.run_id, ""), {}});
      continue;
    }
    CaseResult one{line, found->second, {}};
    if (const auto checks = checks_of(one.record))
      for (const record::CheckResult& check : checks->checks)
        one.checks[check.check] = check.result;
    result.cases.push_back(std::move(one));
  }
  return result;
}

RunResult read_run_result(const std::filesystem::path& run_folder, Ending ending,
                          double wall_seconds) {
  const auto run_file = run_folder / "run.json", plan_file = run_folder / "plan.jsonl";
  record::Run run = record::run_from(record::read_json(run_file), run_file.string());
  const auto plan = record::plan_from(record::read_text(plan_file), plan_file.string());
  const auto records =
      record::last_records(record::read_journal(run_folder / "journal.jsonl").records);
  const auto checks_of =
      [&run_folder](const record::Record& record) -> std::optional<record::Checks> {
    const auto file = run_folder / record.artefacts / "checks.json";
    if (record.artefacts.empty() || !std::filesystem::exists(file)) return std::nullopt;
    return record::checks_from(record::read_json(file), file.string());
  };
  return run_result(std::move(run), plan, records, ending, wall_seconds, checks_of);
}

}  // namespace graphproof::reports
