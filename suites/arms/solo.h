// Solo arms: one arm runs and nobody else does, with a fresh model, for speed and for memory. The
// other arms of a case look at every byte, poison outputs and wait for the device, so neither their
// time nor their memory is a user's.
//
// They are also the second runs of a case, which have to repeat the first ones: what each compared
// step left is copied to the host and compared once the step's time and memory are written.
// Contiguous tensors need no device memory for that.
//
// Each arm leaves a `timing` and a `memory` line per step, and `memory` lines at four marks: before
// it was built, after, when its graphs and tensors were dropped, and when what the libraries held
// for them had been asked back. A communicator gives back what dead graphs held in it only when it
// is used again, and the allocator what a dead pool held only with empty_cache, so both are done
// before the last look: without them every case would seem to leak.
#pragma once

#include <vector>

#include "suites/arms/arm.h"
#include "suites/arms/history.h"

namespace graphproof::suites {

/// Steps after the warm-up, the capture's among them: seven points for a trend
/// (suites/checks/memory/theil_sen.h; its interval leaves out three of the 21 slopes at each end,
/// and fewer points would only make the check stricter); few, because every case pays for them
/// twice. An eager arm runs as many although it captures nothing: where experts drop no token,
/// shapes depend on the data, and each new one may cost memory for good (a kernel, a segment of the
/// allocator), which eager has to meet before the graph arm.
inline constexpr std::int64_t kSoloSteadySteps = 9;
/// Steps whose time counts, at least: a median that one disturbed step cannot move. They begin with
/// the second step after the copies: right after one a step took 2 to 6 % longer on the simulated
/// device.
inline constexpr std::int64_t kSoloTimedSteps = 3;

/// solo_eager, against what eager_a left (subject eager_repeats). Is gone when this returns.
/// REQUIRES: nothing was captured yet, so that what eager repeats says nothing of graphs.
void run_solo_eager(const CaseParts& parts, const std::vector<StepInput>& inputs,
                    const History& eager_a);

/// solo_graph, against what lockstep_graph left (subject graph_repeats): as many compared steps
/// without poison. Is gone when this returns. `eager`: outputs of an arm that outlives it, see Arm.
void run_solo_graph(const CaseParts& parts, const std::vector<StepInput>& inputs,
                    const History& lockstep_graph, std::vector<fixtures::NamedTensor> eager);

/// One small collective in every group of the case, and a wait for it.
void flush_communicators(const CaseParts& parts);

}  // namespace graphproof::suites
