// The steps of a paged stash (axis dispatch): receive buffers of experts that are too small for
// some steps, a flag on the device, a second run and larger buffers (workloads/engines/step/
// paged_stash.h), compared with an eager copy that has the same buffers. In all other arms the
// buffers hold every row, as after growth.
#pragma once

#include "suites/arms/arm.h"

namespace graphproof::suites {

/// Runs the arms stash_eager and stash_graph in lockstep (comparison stash) and writes a line
/// `stash` for each step of both. After the warm-up two steps are replayed. In the next two all
/// tokens are pulled to the experts of the first rank, which overflows the buffers in a replay, and
/// then fits into the larger ones of a new capture. The last step is an ordinary one. REQUIRES: a
/// case with a paged stash.
void run_paged_stash(const CaseParts& parts);

}  // namespace graphproof::suites
