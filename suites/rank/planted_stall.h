// The planted stall of a device inside a replay (faults::RunPlan::stall).
#pragma once

#include "fixtures/device/device.h"
#include "reports/record/job/collective_progress.h"
#include "suites/case/case_scope.h"
#include "workloads/faults/hooks/fault_hooks.h"

namespace graphproof::suites {

/// Makes one rank stall ahead of a collective in the first replay of arm lockstep_graph. On CUDA
/// the stall is a node that is captured ahead of the collective; on the simulated device, which
/// runs a replay on the host, it is a sleep. Both are longer than any limit of a replay and end by
/// themselves.
class PlantedStall {
 public:
  /// Without `plan`, or on another rank, nothing stalls. Launches the kernel that stalls once,
  /// because a kernel is loaded at its first launch, which must not be in a capture.
  PlantedStall(const std::optional<faults::RunPlan::Stall>& plan, int rank,
               capture::Device& device);
  /// Before the host issues `collective`, on the issuing thread.
  void before(const record::Collective& collective, const CaseScope& scope);

 private:
  const std::optional<faults::RunPlan::Stall> plan_;
  capture::Device& device_;
  const bool captured_;
  std::int64_t met_ = 0;  // collectives of the group inside the graph
};

}  // namespace graphproof::suites
