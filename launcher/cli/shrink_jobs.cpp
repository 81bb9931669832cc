#include "launcher/cli/shrink_jobs.h"

#include <fmt/format.h>

#include <algorithm>

#include "launcher/cli/device_option.h"
#include "launcher/cli/run_options.h"
#include "launcher/run/run.h"
#include "matrix/input/input_error.h"
#include "matrix/plan/plan.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {

namespace fs = std::filesystem;
using shrink::Outcome;

Outcome outcome_of(const reports::CaseResult& result, const reports::Signature& signature) {
  const record::Record& record = result.record;
  const record::Verdict observed = record.observed;
  if (record.verdict.in("infra") || record.verdict.in("not_run") || record.verdict.in("skipped") ||
      observed.in("pass.rejected"))
    return Outcome::invalid;
  if (observed.exit_code() == record::ExitCode::product)
    return reports::signature(record) == signature ? Outcome::fail : Outcome::invalid;
  if (observed != record::Verdict::from("pass") && !observed.in("unexercised"))
    return Outcome::invalid;
  if (signature.check.empty()) return Outcome::pass;
  // A case in which the check was unexercised says nothing about the failure. A case to which the
  // check does not apply cannot have the failure.
  const auto check = result.checks.find(signature.check);
  const bool shown = check != result.checks.end() && check->second != record::Result::unexercised;
  return shown ? Outcome::pass : Outcome::invalid;
}

ShrinkJobs::ShrinkJobs(Surroundings& surroundings, const reports::RunResult& run,
                       const launcher::Device& device, reports::Signature signature,
                       fs::path run_folder, fs::path folder)
    : surroundings_(surroundings),
      run_(run),
      device_(device),
      machine_(machine_of(device)),
      signature_(std::move(signature)),
      run_folder_(std::move(run_folder)),
      folder_(std::move(folder)) {}

record::PlanLine ShrinkJobs::line_of(const matrix::Case& test_case) const {
  record::PlanLine line = matrix::plan_case(surroundings_.catalogue, test_case, machine_, "shrink");
  line.isolation = "process";
  return line;
}

bool ShrinkJobs::allowed(const matrix::Case& test_case) const {
  const record::PlanLine line = line_of(test_case);
  return !line.skip && line.expect.kind != "rejected";
}

std::vector<JobResult> ShrinkJobs::run(const std::vector<matrix::Case>& cases) {
  std::vector<JobResult> results;
  std::vector<record::PlanLine> plan;
  for (const matrix::Case& one : cases) {
    const record::PlanLine line = line_of(one);
    results.push_back({.case_id = line.id, .name = line.name, .verdict = "not_run", .folder = ""});
    const bool runs = !line.skip && line.expect.kind != "rejected";
    const bool twice = std::any_of(plan.begin(), plan.end(), [&](const record::PlanLine& other) {
      return other.id == line.id;
    });
    if (runs && !twice) plan.push_back(line);
  }
  if (plan.empty()) return results;
  const reports::RunResult round = run_round(std::move(plan));
  for (const reports::CaseResult& done : round.cases)
    for (JobResult& result : results) {
      if (result.case_id != done.plan.id) continue;
      result.outcome = outcome_of(done, signature_);
      result.verdict = std::string(done.record.observed.text());
      result.infrastructure = done.record.verdict.in("infra");
      if (!done.record.artefacts.empty())
        result.folder =
            fs::relative(folder_ / fmt::format("round-{:03}", round_) / done.record.artefacts,
                         run_folder_)
                .string();
    }
  return results;
}

reports::RunResult ShrinkJobs::run_round(std::vector<record::PlanLine> plan) {
  const fs::path folder = folder_ / fmt::format("round-{:03}", ++round_);
  launcher::RunListener listener;
  listener.notice = [this](const std::string& text) { surroundings_.err << text << "\n"; };
  reports::RunResult result;
  if (fs::exists(folder / "run.json")) {
    launcher::RunSetup setup = recorded_run(folder, surroundings_);
    if (setup.run.plan_sha256 != launcher::plan_sha256(plan))
      throw matrix::InputError({"a round of an earlier shrink has other cases", folder.string(),
                                "the cases that this one asks for",
                                "another version made it, or its files were changed",
                                "remove " + folder_.string() + " and start again"});
    result = launcher::read_run(folder);
    if (result.ending != reports::Ending::finished) result = launcher::resume(setup, listener);
  } else {
    launcher::RunSetup setup = run_setup(device_, {}, surroundings_);
    fs::create_directories(folder);
    setup.folder = folder;
    setup.run_name = folder.string();
    setup.run.profile = "shrink";
    setup.run.matrix = run_.run.matrix;
    setup.run.seed = run_.run.seed;
    setup.run.parent = run_.run.run_id;
    setup.plan = std::move(plan);
    result = launcher::run(setup, listener);
  }
  if (result.ending == reports::Ending::interrupted) throw Interrupted{};
  return result;
}

}  // namespace graphproof::cli
