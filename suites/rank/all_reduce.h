// What the doctor asks of ranks: do they find each other, is a sum right, and how fast is it.
#pragma once

#include <filesystem>

#include "fixtures/process/rank.h"
#include "suites/rank/batch_run.h"

namespace graphproof::suites {

/// Sums fp32 over all ranks of this start, whose store is the fresh folder `store`. Rank 0 prints
/// one JSON object: ranks, bytes, ms of one, bus_gb_s (bytes that each rank sends a second: 2 (n -
/// 1) / n of them). Returns the exit code; throws what RankProcess::start() throws, and
/// record::ReadError for a sum that is wrong.
int measure_all_reduce(const RankProgram& program, const fixtures::Rank& place,
                       const std::filesystem::path& store);

}  // namespace graphproof::suites
