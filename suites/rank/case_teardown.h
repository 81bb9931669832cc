// The end of a case, in the order that its axis `teardown` asks for: each step timed, bounded and
// left as evidence.
#pragma once

#include <memory>
#include <vector>

#include "suites/arms/arms.h"
#include "suites/arms/collective.h"
#include "suites/rank/rank_process.h"

namespace graphproof::suites {

/// The arms and what they leave alive. Destroyed by teardown in order; leaked where a device error
/// may stick.
struct CaseState {
  std::vector<StepInput> inputs;
  std::unique_ptr<Arm> eager;
  KeptArms kept;
  std::unique_ptr<CollectiveArms> collective;  // of model collective, in place of the others
};

struct CaseEnd {
  bool comm_first =
      false;           // the communicators go before the graphs that captured their collectives
  bool abort = false;  // they are aborted instead of destroyed
  bool last = false;   // no case of the batch follows, so the communicators need not be kept
};

/// A step that outlives its limit leaves its line and is left to the watcher, which sees all ranks
/// and names the hang; without one the process ends a grace later, because whoever waits for it
/// waits for ever.
void tear_down(const CaseParts& parts, RankProcess& process, CaseState& state, const CaseEnd& end);

}  // namespace graphproof::suites
