// The all-reduce test of `graphproof doctor`: whether the ranks find each other, whether a sum is
// correct, and how fast it is.
#pragma once

#include <filesystem>

#include "fixtures/process/rank.h"
#include "suites/rank/batch_run.h"

namespace graphproof::suites {

/// Sums fp32 tensors over all ranks of this start, whose store is the new folder `store`. Rank 0
/// prints a JSON object: ranks, bytes, ms per all-reduce, and bus_gb_s, the bytes that each of n
/// ranks sends per second, 2 (n - 1) / n times `bytes` per all-reduce. Returns the exit code.
/// Throws what RankProcess::start() throws, and record::ReadError for a wrong sum.
int measure_all_reduce(const RankProgram& program, const fixtures::Rank& place,
                       const std::filesystem::path& store);

}  // namespace graphproof::suites
