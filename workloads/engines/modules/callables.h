// impl callables: the captured parts of all layers are captured as by one call of PyTorch's
// make_graphed_callables.
//
// Contract:
// - Each of `modules` in each layer is a separate callable; an empty list captures the whole layer.
//   What lies between the callables runs eagerly.
// - Steps before number `warmup_steps` are eager. Immediately before that step all callables are
//   captured into one pool: their forwards in the order of the model, then their backwards in
//   reverse, which is also the order in which they must run. That step and all later ones replay. A
//   callable has one pair of graphs, which serves the microbatches one after another.
// - Before the captures, each callable runs three passes of forward and backward, with NaN as
//   gradients of its outputs, where PyTorch has uninitialised memory. The effects of the passes are
//   undone, which PyTorch leaves to its user.
// - The static inputs are the sample arguments, tensors of ones, which each callable has outside
//   the pool. Every replay copies the inputs into them, except those that are at their address
//   already.
// - Results are the static memory itself: outputs, gradients of inputs and of parameters. The
//   graphs keep that memory, and its values are valid until the callable's next launch. Gradients
//   of parameters reach their accumulators without a copy. An accumulator without a sum keeps the
//   static memory, which the next replay overwrites (pytorch#181723); TrainStep's accumulators
//   always have a sum.
// - Hooks of accumulators run in every backward, also those of fused weight gradients
//   (fused_linear.h), which are added in the graph. Parameters on which the outputs do not depend
//   get no gradient.
// - With delayed fp8 scaling a graph holds the casts; the scales are updated outside the graphs, on
//   leaving the fp8 context of a microbatch, which therefore has to be entered at replays too.
// - With fp8_weights every call writes to device memory whether its microbatch is the first of a
//   step, and the graph reads it. PyTorch has no such argument: without it, graphs that serve all
//   microbatches would repeat in each what was captured.
// - A call without gradients runs eagerly, as in PyTorch for evaluation.
// - Refuses an input that requires a gradient and gets none (allow_unused_input is off), a
//   parameter that was moved or frozen after the capture, and a backward that is to be
//   differentiated again.
// - Sequences have one length; shape_buckets.h keeps such engines for several lengths.
// - A call with different inputs, a second forward before the backward, and a launch in another
//   order than the captures are errors.
// - A failed capture throws capture::DeviceError. The graphs that were made so far are dropped, and
//   the next step tries again.
// - Refuses the plain RNG tracker (rule B08), pipelines, because it does not know their schedules,
//   inputs that no graph can take, a model without any of `modules`, more than one pool, and step()
//   after drop_graphs().
#pragma once

#include "workloads/engines/modules/ahead_of_time.h"

namespace graphproof::engines {

/// What AheadOfTime does as callables.
AheadOfTime::CapturePolicy callables_policy();

/// See make_engine().
std::unique_ptr<Engine> make_callables(const EngineConfig& config, capture::Device& device,
                                       c10::Stream stream, workloads::TrainStep& step,
                                       Observer* observer);

}  // namespace graphproof::engines
