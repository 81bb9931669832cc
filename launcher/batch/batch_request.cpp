#include "launcher/batch/batch_request.h"

#include <algorithm>

#include "launcher/batch/attempt_folder.h"
#include "reports/analysis/divergence.h"

namespace graphproof::launcher {
namespace {

record::Limits limits_of(const record::Run& run, const record::PlanLine& line) {
  record::Limits limits = run.options.limits_ms;
  for (const auto& [phase, limit_ms] : line.limits_ms) limits[phase] = limit_ms;
  return limits;
}

}  // namespace

BatchRequest batch_request(const record::Run& run, const std::filesystem::path& run_folder,
                           const CaseGroup& group, const std::string& name) {
  const record::PlanLine& first = group.attempts.front().line;
  BatchRequest request;
  request.run_folder = run_folder;
  request.launcher = run.engine;
  request.attempts = group.attempts;
  record::Batch& batch = request.batch;
  batch.run_id = run.run_id;
  batch.batch = name;
  batch.device = run.device;
  batch.world_size = group.ranks();
  batch.seed = run.seed;
  batch.isolation = first.isolation;
  for (const Attempt& attempt : group.attempts) {
    request.limits_ms.push_back(limits_of(run, attempt.line));
    for (const auto& [phase, limit_ms] : request.limits_ms.back())
      batch.limits_ms[phase] = std::max(batch.limits_ms[phase], limit_ms);
    const std::filesystem::path folder =
        run_folder / attempt_folder(attempt.line.id, attempt.number);
    batch.cases.push_back({attempt.line.id, attempt.line.name, attempt.number, attempt.line.axes,
                           group.divergence ? reports::divergence_folder(folder) : folder});
  }
  request.job.world_size = group.ranks();
  request.job.device = run.device;
  if (group.divergence) request.job.switches = {"--divergence"};
  // Such a case has processes of its own, so the log is that of this case. Plans from before this
  // axis do not name it.
  if (const std::string sanitizer = first.axes.value("sanitizer", "none"); sanitizer != "none") {
    request.job.sanitizer = sanitizer;
    request.job.sanitizer_log =
        std::filesystem::path(batch.cases.front().evidence_folder) / record::kSanitizerLog;
  }
  request.job.environment = {first.environment.begin(), first.environment.end()};
  return request;
}

}  // namespace graphproof::launcher
