// The end of a case, in the order of its axis `teardown`. Each step is timed, has a limit and is
// written to the evidence (fixtures/process/teardown.h).
#pragma once

#include <memory>
#include <vector>

#include "suites/arms/arms.h"
#include "suites/arms/collective.h"
#include "suites/inference/decoding.h"
#include "suites/rank/rank_process.h"

namespace graphproof::suites {

/// The arms of a case. Destroyed by the teardown in order; leaked if a device error may be sticky.
struct CaseState {
  std::vector<StepInput> inputs;
  std::unique_ptr<Arm> eager;
  KeptArms kept;
  std::unique_ptr<CollectiveArms> collective;  // of model collective, instead of the others
  std::unique_ptr<DecodingArms> decoding;      // of schedule decode, instead of the others
};

/// How a case ends.
struct CaseEnd {
  bool comm_first =
      false;           // destroy communicators before the graphs that captured their collectives
  bool abort = false;  // abort communicators instead of destroying them
  bool last = false;   // the last case of the batch, after which communicators are not needed
};

/// Tears a case down. A step that exceeds its limit writes its line. Then the launcher's hang
/// detector, which sees all ranks, reports the hang. If that does not happen within a grace period,
/// the process ends itself, because nothing else would end it.
void tear_down(const CaseParts& parts, RankProcess& process, CaseState& state, const CaseEnd& end);

}  // namespace graphproof::suites
