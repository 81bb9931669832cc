// For tests: a watched run in which every check that can pass does. Two ranks train with a graph of
// the whole step and a second graph in the same pool; nothing is wrong with them.
#pragma once

#include "suites/checks/watched/job/watched_job.h"

namespace graphproof::checks::watched {

/// Each rank, 0 and 1, has two executable graphs: 1, with a call of NCCL and the optimizer's step,
/// launched in each of 100 steps, and 2, with a product of cuBLAS, launched after it; six more,
/// small ones, are made and launched once at the start. Graph 2 was updated once.
WatchedJob clean_job();

/// The evidence of a rank, and its lines of a kind, to be changed.
inline JobProcess& process_of(WatchedJob& job, std::size_t rank) { return job.processes.at(rank); }
template <record::LineKind T>
std::vector<T>& lines(WatchedJob& job, std::size_t rank) {
  return job.processes.at(rank).evidence.lines<T>();
}
inline record::WatchedProcessLine& line_of(WatchedJob& job, std::size_t rank) {
  return lines<record::WatchedProcessLine>(job, rank).front();
}

/// Says that a part of every process was not seen.
void hide(WatchedJob& job, const std::string& part);

}  // namespace graphproof::checks::watched
