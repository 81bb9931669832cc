#include "launcher/run/judge_again.h"

#include <chrono>
#include <map>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "launcher/batch/attempt_folder.h"
#include "launcher/host/clocks.h"
#include "launcher/policy/case_policy.h"
#include "launcher/run/judge_pool.h"
#include "reports/record/job/context.h"
#include "reports/record/job/plan.h"
#include "reports/record/run/run.h"
#include "reports/record/run/summary.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

/// The attempts that came to an end, in their order. One that was cut off has no context.
std::vector<int> ended_attempts(const fs::path& run_folder, const std::string& case_id) {
  std::vector<int> numbers = attempt_numbers(run_folder, case_id);
  std::erase_if(numbers, [&](int number) {
    std::error_code absent;
    return !fs::is_regular_file(run_folder / attempt_folder(case_id, number) / "context.json",
                                absent);
  });
  return numbers;
}

void judge_all(const fs::path& folder, const std::vector<record::PlanLine>& plan, JudgePool& pool) {
  for (const record::PlanLine& line : plan)
    for (const int number : ended_attempts(folder, line.id))
      pool.add(folder / attempt_folder(line.id, number));
  while (!pool.idle()) {
    pool.step(steady_ms());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::optional<record::Checks> checks_of(const fs::path& attempt) {
  try {
    return read_checks(attempt);
  } catch (const record::ReadError&) {
    return std::nullopt;  // the outcome rules say what a missing judgement means
  }
}

}  // namespace

JudgedRun::JudgedRun(const fs::path& folder)
    : run_(record::run_from(record::read_json(folder / "run.json"), folder / "run.json")),
      plan_(record::plan_from(record::read_text(folder / "plan.jsonl"), folder / "plan.jsonl")) {
  if (std::error_code absent; fs::exists(folder / "summary.json", absent))
    wall_seconds_ = record::read_summary_head(folder / "summary.json").wall_seconds;
  for (const record::PlanLine& line : plan_)
    for (const int number : ended_attempts(folder, line.id)) {
      const std::string attempt = attempt_folder(line.id, number);
      const fs::path file = folder / attempt / "context.json";
      attempts_[line.id].push_back({attempt, record::context_from(record::read_json(file), file),
                                    checks_of(folder / attempt)});
    }
}

reports::RunResult JudgedRun::decide(const reports::CheckEffects& effects,
                                     const std::set<std::string>& dropped) const {
  std::map<std::string, record::Record> records;
  std::map<std::string, reports::CheckResults> kept;  // by attempt folder
  for (const record::PlanLine& line : plan_) {
    const auto attempts = attempts_.find(line.id);
    if (attempts == attempts_.end()) continue;
    std::optional<reports::Outcome> in_batch;
    for (const Attempt& attempt : attempts->second) {
      std::optional<record::Checks> checks = attempt.checks;
      if (checks)
        std::erase_if(checks->checks, [&](const record::CheckResult& result) {
          return dropped.contains(result.check);
        });
      const reports::OutcomeInput input{
          line, attempt.context, checks, {}, run_.started.substr(0, 10)};
      reports::Outcome outcome = reports::outcome(input, effects);
      if (in_batch && input.context->isolation == "process")
        outcome = reports::fold(*in_batch, outcome);
      const record::Record record =
          reports::make_record(input, outcome, run_.run_id, attempt.folder);
      if (wants_diagnosis(record, line)) in_batch = outcome;
      records.insert_or_assign(line.id, record);
      if (checks)
        for (const record::CheckResult& check : checks->checks)
          kept[attempt.folder][check.check] = check.result;
    }
  }
  return reports::run_result(run_, plan_, records, reports::Ending::finished, wall_seconds_,
                             [&](const record::Record& record) {
                               const auto found = kept.find(record.artefacts);
                               return found == kept.end() ? reports::CheckResults() : found->second;
                             });
}

reports::RunResult judge_again(const fs::path& folder, const fs::path& judge_program,
                               const reports::CheckEffects& effects,
                               const std::vector<std::string>& dropped) {
  JudgePool pool(judge_program, dropped);
  judge_all(folder,
            record::plan_from(record::read_text(folder / "plan.jsonl"), folder / "plan.jsonl"),
            pool);
  return JudgedRun(folder).decide(effects);
}

}  // namespace graphproof::launcher
