// The axis shape_buckets: training steps with changing sequence lengths from a bounded cache of
// graphs, one per length (workloads/engines/shape_buckets.h), compared with an eager copy. The two
// have different tokens in the padding, so work that reads the padding has different results.
#pragma once

#include "suites/arms/arm.h"

namespace graphproof::suites {

/// Runs the arms buckets_eager and buckets_graph in lockstep (comparison buckets), then new ones
/// without a wait between their steps (comparison buckets_free_run). Writes a line `bucket` for
/// each step of buckets_graph, and a line `padding` for each bucket: the difference between a
/// padded eager step and the same step without padding. REQUIRES: a case with shape_buckets.
void run_shape_buckets(const CaseParts& parts);

}  // namespace graphproof::suites
