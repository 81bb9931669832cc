// What a case's axes say must have happened. Checks compare evidence with this and never with
// evidence alone: a rank that ran one step instead of five must not look complete.
//
// Layout of a case (suites): steps 0..steps-1 in every arm; the first warmup_steps of a graph arm
// are eager, its capture happens in step warmup_steps, which is replayed too; of local only step 0
// is eager, which it records, and from step 1 on a forward and a backward graph of each captured
// module run for each microbatch; of transformer_engine one pair for each layer does. The lockstep
// arm has one step more, index `steps`, with the inputs of the capture again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "suites/checks/attempt/attempt.h"

namespace graphproof::checks {

struct Expected {
  bool graph = false;  // the case has graph arms
  bool trains =
      true;  // model collective has no losses, parameters, learning rate, layers or solo arms
  std::int64_t steps = 0;  // compared steps of an arm
  std::int64_t warmup_steps = 0;
  std::int64_t microbatches = 1;
  std::int64_t layers = 0;            // on this rank: those of its pipeline stage
  std::int64_t expert_layers = 0;     // of those, with a router if the model has any
  std::int64_t first_replay = 0;      // step index
  std::int64_t capture_step = 0;      // whose inputs the graphs captured
  std::int64_t last_inputs_step = 0;  // the step that repeats the capture inputs
  bool replays_leave_time = false;  // at least one replay with fresh inputs fits after the capture
  std::int64_t evaluations = 0;     // batches, of the schedule train-eval-train
  std::int64_t forwards_per_step = 0;  // of one layer; what recompute runs again is counted apart

  std::int64_t launches_per_step = 1;  // graphs launched in a replayed step

  /// Launches of the lockstep graph arm when step `step` has ended.
  std::int64_t replays_until(std::int64_t step) const {
    return step < first_replay ? 0 : launches_per_step * (step - first_replay + 1);
  }
  /// Steps that the lockstep graph arm replays, the last inputs included.
  std::vector<std::int64_t> replayed_steps() const;
};

Expected expected(const Axes& axes);

/// A stretch of the model that backward runs again, as the evidence line `recompute` names it.
struct RecomputedPart {
  std::string name;
  std::int64_t layers = 0;  // of a pipeline stage in which it is, at the front of each chunk
  bool draws = false;       // random numbers, with dropout
};
/// By the axis recompute; the module layernorm is two parts, one for each norm of a layer.
std::vector<RecomputedPart> recomputed_parts(const Axes& axes);

/// How many rounded copies each layer of pipeline stage `stage` makes in a step with fp8_weights:
/// one of each of its linear layers' weights, none of the first and the last layer of the model
/// with first_last_layers_bf16.
std::vector<std::int64_t> rounded_weights(const Axes& axes, std::int64_t stage);

/// Groups of ranks of one role: tensor, context and data parallel ranks of one pipeline stage run
/// the same program.
std::vector<std::vector<int>> roles(const Axes& axes, int world_size);

/// The kinds of groups whose ranks all issue the same collectives: those of tp, cp, dp, ep and etp
/// that are above 1, but dp_cp in place of dp where cp is, because gradients are then reduced over
/// both together.
std::vector<std::string> alike_groups(const Axes& axes);

/// The groups of `kind` ("tp", "cp", "dp", "dp_cp", "ep" or "etp"), tensor parallel ranks next to
/// each other, then context parallel ones; of the experts expert tensor parallel ones, then expert
/// parallel ones.
std::vector<std::vector<int>> groups(const Axes& axes, int world_size, std::string_view kind);

/// Whether the optimizer asks all stages of a pipeline: for the norm of the gradients, or whether
/// one is infinite. Then the ranks that stand at the same place in each stage are a group "pp".
bool asks_all_stages(const Axes& axes);
std::vector<std::vector<int>> stage_groups(const Axes& axes, int world_size);

/// The ranks of two pipeline stages that stand at the same place in them, in pairs.
std::vector<std::vector<int>> pairs(const Axes& axes, int world_size, std::int64_t from,
                                    std::int64_t to);

}  // namespace graphproof::checks
