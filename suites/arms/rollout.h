// The schedule train-rollout-train: in one process a job trains, generates with the weights that it
// has by then, and trains on, as reinforcement learning does (Megatron-LM, megatron/rl). The graphs
// of training and those of inference, captured at the first rollout, live to the end of the arm.
//
// Both lockstep arms have a rollout after every step that graphs replay, with the requests of one
// wave (workloads/requests), and both solo arms after every third one. eager_a and free_graph have
// none: what they compute must not depend on whether a job generates between its steps.
#pragma once

#include <cstdint>

#include "suites/arms/arm.h"

namespace graphproof::suites {

/// One rollout of the lockstep arms.
struct Rollout {
  std::int64_t round = 0;  // from 0
  bool last = false;       // after the last step
};

/// Generates in both arms and compares them after each step of inference (comparison rollout, whose
/// steps are numbered through all rollouts). The last rollout of the eager arm is compared with one
/// pass over whole sequences too (whole_sequences.h). All ranks call it.
void run_rollout(const CaseParts& parts, Arm& eager, Arm& graph, const Rollout& rollout);

}  // namespace graphproof::suites
