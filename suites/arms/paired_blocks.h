// Eager and graph steps that alternate in blocks, for a case that states a limit on times. Solo
// arms run one after the other, so a machine that becomes slower in between would pass for a slow
// graph. Here each block has some steps of both arms next to each other, and every other block
// begins with the other arm.
#pragma once

#include <vector>

#include "suites/arms/arm.h"

namespace graphproof::suites {

/// How many blocks, and how many steps of each arm a block has. 16 ratios give a narrow interval of
/// their mean (at least reports::kFewestPairs are needed); one step in four waits for the device at
/// its end, as the steps of a program do that seldom look at their loss. On the simulated device
/// every block takes the same modelled time, so the fewest will do.
inline constexpr std::int64_t kTimedBlocks = 16, kBlockSteps = 4;
inline constexpr std::int64_t kModelledBlocks = 8, kModelledBlockSteps = 1;

/// Runs the arms paired_eager and paired_graph, writes a line `paired_block` for each block, and
/// destroys them. `eager`: outputs of an arm that outlives them, see Arm.
void run_paired_blocks(const CaseParts& parts, const std::vector<StepInput>& inputs,
                       const std::vector<fixtures::NamedTensor>& eager);

}  // namespace graphproof::suites
