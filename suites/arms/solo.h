// Solo arms: an arm runs alone, with a new model, to measure time and memory. The other arms of a
// case read every byte, poison outputs and wait for the device, so neither their time nor their
// memory is that of a user's program.
//
// Solo arms are also the second runs of a case, which must repeat the first ones: the results of
// each compared step are copied to the host and compared after the step's time and memory were
// written. Contiguous tensors need no device memory for that.
//
// If the schedule has rollouts, solo arms have some too (rollout.h), fewer than the lockstep arms.
//
// Each arm writes a line `timing` and a line `memory` per step, and lines `memory` at four points:
// before it is built, after it is built, after its graphs and tensors were destroyed, and after
// libraries have released what they held for them. A communicator releases what destroyed graphs
// held in it only at its next use, and the allocator a destroyed pool only by empty_cache(). Both
// are done before the last line, otherwise every case would seem to leak.
#pragma once

#include <vector>

#include "suites/arms/arm.h"
#include "suites/arms/history.h"

namespace graphproof::suites {

/// How many steps follow the warm-up, that of the capture included. They give seven points for a
/// trend (suites/checks/memory/theil_sen.h; its interval leaves out three of the 21 slopes at each
/// end, and fewer points would only make the check stricter). There are no more, because every case
/// runs them twice. An eager arm runs as many although it captures nothing: with dropless experts,
/// shapes depend on the data, and each new shape may need memory permanently (a kernel, a segment
/// of the allocator), which the eager arm must allocate before the graph arm.
inline constexpr std::int64_t kSoloSteadySteps = 9;
/// The least number of steps whose time counts, so that one disturbed step does not change the
/// median. They begin with the second step after the last copy to the host, because the step right
/// after a copy took 2 to 6 % longer on the simulated device.
inline constexpr std::int64_t kSoloTimedSteps = 3;

/// After how many steps a solo arm has its next rollout; the first one follows the first step that
/// graphs replay. There are three at least, over which memory must not grow. The lockstep arms have
/// more, and training must not depend on how many they are.
inline constexpr std::int64_t kSoloRolloutInterval = 3;

/// Runs solo_eager, compares it with eager_a (comparison eager_repeats) and destroys it. REQUIRES:
/// nothing was captured yet, so that the comparison does not depend on graphs.
void run_solo_eager(const CaseParts& parts, const std::vector<StepInput>& inputs,
                    const History& eager_a);

/// Runs solo_graph, compares it with lockstep_graph (comparison graph_repeats), captures its graphs
/// a second time (second_capture.h) and destroys it. The compared steps run without poison.
/// `eager`: outputs of an arm that outlives it, see Arm.
void run_solo_graph(const CaseParts& parts, const std::vector<StepInput>& inputs,
                    const History& lockstep_graph, std::vector<fixtures::NamedTensor> eager);

/// Issues one small collective in every group of the case and waits for it, so that communicators
/// release what destroyed graphs held in them.
void flush_communicators(const CaseParts& parts);

}  // namespace graphproof::suites
