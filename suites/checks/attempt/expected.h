// What must have happened in a case by its axes. Checks compare evidence with this and never with
// other evidence alone, so that a rank which ran one step instead of five does not look complete.
//
// The steps of a case (suites/case): every arm runs steps 0 to steps - 1. The first warmup_steps
// steps of a graph arm are eager; it captures in step warmup_steps and replays that step too. With
// impl local only step 0 is eager, during which the order of the modules is recorded; from step 1
// on, a forward and a backward graph of each captured module run for each microbatch. With impl
// transformer_engine it is one pair of graphs for each layer. Arm lockstep_graph has one more step,
// index `steps`, which repeats the inputs of the capture.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "suites/checks/attempt/attempt.h"

namespace graphproof::checks {

/// The numbers that follow from a case's axes.
struct Expected {
  bool graph = false;  // the case has graph arms
  /// Whether arms train. Those of model collective, and of schedule decode if our own workloads run
  /// it, have no losses, gradients, learning rate and solo arms.
  bool trains = true;
  std::int64_t steps = 0;  // compared steps of an arm
  std::int64_t warmup_steps = 0;
  std::int64_t microbatches = 1;
  std::int64_t layers = 0;             // of the decoder on a rank's pipeline stage
  std::int64_t counted_layers = 0;     // and those in front of it and after it, with a counter
  std::int64_t expert_layers = 0;      // those of them that have a router
  std::int64_t first_replay = 0;       // step index
  std::int64_t capture_step = 0;       // the graphs captured the inputs of this step
  std::int64_t last_inputs_step = 0;   // the step that repeats the inputs of the capture
  bool replays_fresh_inputs = false;   // at least one replay has other inputs than the capture
  std::int64_t evaluations = 0;        // batches, of the schedule train-eval-train
  std::int64_t rollouts = 0;           // of each lockstep arm, of the schedule train-rollout-train
  std::int64_t forwards_per_step = 0;  // of one layer, without those that recompute runs again

  std::int64_t launches_per_step = 1;  // graphs launched in a replayed step

  /// Graph launches of arm lockstep_graph from its start until step `step` has ended.
  std::int64_t replays_until(std::int64_t step) const {
    return step < first_replay ? 0 : launches_per_step * (step - first_replay + 1);
  }
  /// Steps that arm lockstep_graph replays, including the one that repeats the capture's inputs.
  std::vector<std::int64_t> replayed_steps() const;
};

/// Whether a case has training steps, see Expected::trains.
bool trains(const Axes& axes);

/// Which ends of a pipeline a stage is. The first stage alone has a vision encoder, the last one
/// alone the layers of multi-token prediction.
struct StageEnds {
  bool first = true, last = true;
};
StageEnds ends_of(const Axes& axes, int rank);

/// What is expected of a rank on such a stage. Throws as Axes does.
Expected expected(const Axes& axes, StageEnds ends = {});

/// Whether the last of several stages has the token embedding too.
bool shares_embedding(const Axes& axes);

/// A part of the model whose forward the backward pass runs again, named as in `recompute` lines.
struct RecomputedPart {
  std::string name;
  std::int64_t layers = 0;  // how many layers of a pipeline stage, the first ones of each chunk
  bool draws = false;       // whether it draws random numbers, with dropout
};
/// The parts that follow from axis recompute. The module layernorm is two parts, one for each norm
/// of a layer. `last_stage`: whether the stage is the last one.
std::vector<RecomputedPart> recomputed_parts(const Axes& axes, bool last_stage = true);

/// How many rounded weight copies each layer of pipeline stage `stage` makes in a step with axis
/// fp8_weights, those of multi-token prediction after the decoder's and those of a vision encoder
/// last: one for each linear layer; none in the first and the last layer of the decoder and of the
/// encoder with axis first_last_layers_bf16.
std::vector<std::int64_t> rounded_weights(const Axes& axes, std::int64_t stage);

/// The linear layers of a stage without those of a vision encoder and without routers: how many
/// weights they have, and how often a forward of a microbatch multiplies by one. Predictions use
/// the output layer again.
struct LinearLayers {
  std::int64_t weights = 0, uses = 0;
};
LinearLayers linear_layers(const Axes& axes, std::int64_t stage);

/// With axis cpu_offload: the activations that each microbatch copies to the host, one for each use
/// of a linear layer. An output layer that shares the embedding is none.
std::int64_t offloaded_activations(const Axes& axes);

/// How often each chunk of a stage updates its scales of fp8 in a step, in its forward passes and
/// then in its backward passes: once a microbatch, if one of its layers multiplies in fp8.
std::vector<std::int64_t> fp8_updates(const Axes& axes, std::int64_t stage);

/// Whether the ranks of a stage reduce the largest elements of what becomes fp8, as the group
/// "amax".
bool reduces_amax(const Axes& axes, std::int64_t stage);

/// The ranks of each pipeline stage. They run the same program, because tensor, context and data
/// parallel ranks differ in their data alone.
std::vector<std::vector<int>> ranks_by_stage(const Axes& axes, int world_size);

/// The kinds of groups whose ranks all issue the same collectives: those of tp, cp, dp, ep and etp
/// with more than one rank. With cp above 1 it is dp_cp in place of dp, because gradients are then
/// reduced over both together.
std::vector<std::string> symmetric_groups(const Axes& axes);

/// The groups of `kind` ("tp", "cp", "dp", "dp_cp", "ep" or "etp"). Ranks are numbered with tensor
/// parallel ones fastest, then context parallel ones; within the experts with expert tensor
/// parallel ones fastest, then expert parallel ones.
std::vector<std::vector<int>> groups(const Axes& axes, int world_size, std::string_view kind);

/// Whether the optimizer reduces over all stages of a pipeline, for the norm of the gradients or to
/// learn whether one is infinite. The ranks at the same place of each stage are then a group "pp".
bool reduces_over_stages(const Axes& axes);
std::vector<std::vector<int>> stage_groups(const Axes& axes, int world_size);

/// Pairs of ranks at the same place of two pipeline stages.
std::vector<std::vector<int>> pairs(const Axes& axes, int world_size, std::int64_t from,
                                    std::int64_t to);

}  // namespace graphproof::checks
