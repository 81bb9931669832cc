// The axis shape_buckets: training steps of changing lengths, from a bounded cache of graphs, one
// for each length (workloads/engines/shape_buckets.h), beside an eager copy. What lies in the
// padding is another token in each of the two, so whatever looks at it shows.
#pragma once

#include "suites/arms/arm.h"

namespace graphproof::suites {

/// Arms buckets_eager and buckets_graph, in lockstep (subject buckets), then fresh ones without a
/// wait between their steps (subject buckets_free_run). Writes a `bucket` line for each step of
/// buckets_graph, and a `padding` line for each bucket: how far a padded eager step lies from the
/// same one without padding. REQUIRES: a case with shape_buckets.
void run_shape_buckets(const CaseParts& parts);

}  // namespace graphproof::suites
