// Solo arms: one arm runs and nobody else does, with a fresh model, for speed and for memory. The other arms of a case
// look at every byte, poison outputs and wait for the device, so neither their time nor their memory is a user's.
//
// Each arm leaves a `timing` and a `memory` line per step, and `memory` lines at four marks: before it was built, after,
// when its graphs and tensors were dropped, and when what the libraries held for them had been asked back. A
// communicator gives back what dead graphs held in it only when it is used again, and the allocator what a dead pool
// held only with empty_cache, so both are done before the last look: without them every case would seem to leak.
#pragma once

#include <vector>

#include "suites/arm.h"

namespace graphproof::suites {

/// Steps after the warm-up, the capture's among them: seven points for a trend (suites/checks/theil_sen.h; its interval
/// leaves out three of the 21 slopes at each end, and fewer points would only make the check stricter) and for a median
/// that one disturbed step cannot move; few, because every case pays for them twice.
inline constexpr std::int64_t kSoloSteadySteps = 9;

/// solo_eager, then solo_graph where the case has graphs. Each is gone when this returns.
void run_solo(const CaseParts& parts, const std::vector<StepInput>& inputs);

/// One small collective in every group of the case, and a wait for it.
void flush_communicators(const CaseParts& parts);

}  // namespace graphproof::suites
