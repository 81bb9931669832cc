// One pass over the whole sequence of each request, which uses neither a cache nor batches of
// single tokens. What was computed token by token must be equal to it up to reordered sums.
#pragma once

#include <vector>

#include "suites/inference/inference_job.h"

namespace graphproof::suites {

/// Of the results of one step, those that write_sequences() reads.
Snapshot sampled_results(Snapshot results);

/// Compares the logits of every sampled token of the requests that ended with those of a pass over
/// their whole sequences, and writes the line `sequences` of the job's arm. `results`: of
/// each step of the job. All ranks call it,
/// because ranks that share experts exchange tokens.
void write_sequences(const CaseParts& parts, const InferenceJob& job,
                     const std::vector<Snapshot>& results);

}  // namespace graphproof::suites
