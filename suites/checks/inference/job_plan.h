// What an inference job has to do in each step, by the axes of its case.
#pragma once

#include <string>
#include <vector>

#include "suites/checks/attempt/attempt.h"
#include "workloads/requests/batch_plan.h"

namespace graphproof::checks {

/// The settings of the job of a case with schedule decode, or of a rollout.
requests::Settings job_settings(const Axes& axes);

/// An arm of inference.
struct InferenceArm {
  const char* name;
  bool graph;
  bool every_step = true;  // otherwise it has a line of its last step alone
};
/// The arms of a case with schedule decode, or those of the rollouts that are inspected step by
/// step. Without `graphs` those that run eagerly ahead of all others.
std::vector<InferenceArm> inference_arms(const Axes& axes, bool graphs);

/// The eager arm whose results are compared with passes over whole sequences.
const char* arm_of_sequences(const Axes& axes);

/// The steps of every data parallel rank: plan[dp_rank][step].
std::vector<std::vector<requests::Step>> job_plan(const Axes& axes);

/// The data parallel rank of `rank`, which decides what requests it has.
std::size_t replica_of(const Axes& axes, int rank);

/// The requests of a data parallel rank that get all their tokens within the job.
requests::Ended ended_requests(const Axes& axes, std::size_t replica);

/// `work` as lines spell it.
std::string work_word(requests::Work work);

/// How many graphs the job has: one for each size, or one for each size and layer.
std::int64_t graphs_of_job(const Axes& axes);

/// How many graphs a step launches: none, one, or one for each layer.
std::int64_t launches_of(const Axes& axes, const requests::Step& step);

}  // namespace graphproof::checks
