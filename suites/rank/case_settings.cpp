#include "suites/rank/case_settings.h"

#include "fixtures/tensors/torch.h"
#include "workloads/faults/plant.h"

namespace graphproof::suites {
namespace {

/// What the case asks for, changed by its planted fault if that changes how a case runs.
faults::RunPlan run_plan(const StepConfig& config, bool communicators_first) {
  faults::RunPlan plan{.autograd_threads = config.autograd_threads,
                       .blocking_stream = config.blocking_stream,
                       .communicators_first = communicators_first,
                       .abort_communicators = false,
                       .buffers_per_rank = config.collective && config.collective->per_rank,
                       .groups_made_again = false,
                       .communicators_kept = false,
                       .stall = {},
                       .new_process = config.resumes_in_new_process,
                       .before_loading = {}};
  const auto faults = faults::plant(config.fault);
  faults->plan_run(plan);
  return plan;
}

}  // namespace

CaseSettings case_settings(const matrix::AxisTable& axes, const matrix::Case& test_case,
                           const fixtures::Rank& place, std::uint64_t seed) {
  CaseSettings settings{.config = step_config(axes, test_case, place, seed), .plan = {}};
  settings.plan =
      run_plan(settings.config, matrix::text_of(axes, test_case, "teardown") == "comm_first");
  if (settings.config.collective)
    settings.config.collective->per_rank = settings.plan.buffers_per_rank;
  return settings;
}

c10::Stream apply(const CaseSettings& settings, capture::Device& device) {
  device.autograd_threads(settings.plan.autograd_threads);
  at::globalContext().setDeterministicAlgorithms(settings.config.deterministic_algorithms, false);
  return settings.plan.blocking_stream ? device.blocking_stream() : device.stream_from_pool();
}

}  // namespace graphproof::suites
