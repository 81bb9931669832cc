// What an inference job has to do in each step, by the axes of its case.
#pragma once

#include <string>
#include <vector>

#include "suites/checks/attempt/attempt.h"
#include "workloads/requests/batch_plan.h"

namespace graphproof::checks {

/// The settings of the job of a case with schedule decode.
requests::Settings job_settings(const Axes& axes);

/// The steps of every data parallel rank: plan[dp_rank][step].
std::vector<std::vector<requests::Step>> job_plan(const Axes& axes);

/// The data parallel rank of `rank`, which decides what requests it has.
std::size_t replica_of(const Axes& axes, int rank);

/// The requests of a data parallel rank that get all their tokens within the job.
requests::Ended ended_requests(const Axes& axes, std::size_t replica);

/// `work` as lines spell it.
std::string work_word(requests::Work work);

/// How many graphs a step launches: none, one, or one for each layer.
std::int64_t launches_of(const Axes& axes, const requests::Step& step);

}  // namespace graphproof::checks
