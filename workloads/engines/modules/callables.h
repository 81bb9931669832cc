// impl callables: the captured parts of all layers go through PyTorch's make_graphed_callables in
// one call.
//
// Contract:
// - Each of `modules` in each layer is a callable of its own; empty is the whole layer. What lies
// between runs eagerly.
// - Steps before number `warmup_steps` are eager. Right before that step all callables are captured
// into one pool: their
//   forwards in the order of the model, then their backwards in reverse, which is the order in
//   which they must run. That step and all later ones replay. A callable has one pair of graphs for
//   all microbatches, one after another.
// - Before the captures each callable has three passes, forward and backward, with NaN for the
// gradients of its outputs,
//   where PyTorch has uninitialised memory. What they change is put back, which PyTorch leaves to
//   its user.
// - The sample arguments, tensors of ones, are the static inputs, of each callable its own and
// outside the pool. Every replay
//   copies into them what does not lie there already.
// - Results are the static memory itself: outputs, gradients of inputs and of parameters. It is
// kept for good, and holds until
//   the callable's next launch. Gradients of parameters reach their accumulators uncopied: one that
//   has no sum yet keeps the static memory, which the next replay overwrites (pytorch#181723).
//   TrainStep's accumulators always have one.
// - Hooks of accumulators run in every backward, those of fused weight gradients (fused_linear.h),
// which are added in the
//   graph, as well. Parameters that the outputs don't depend on take no part.
// - With fp8_weights every call writes on the device whether its microbatch is a step's first, and
// its graph reads it. PyTorch knows
//   no such argument: without, graphs that serve all microbatches would do in each what the
//   captured one did.
// - A call without gradients runs eagerly, as PyTorch's in evaluation.
// - An input that requires a gradient and gets none is refused (allow_unused_input is off), and so
// are a parameter that was
//   moved or frozen after the capture, and a backward that is to be differentiated again.
// - Sequences have one length; shape_buckets.h keeps such engines for several.
// - A call whose inputs differ, a second forward before the backward, and another order than that
// of the captures are errors.
// - A failed capture throws capture::DeviceError; graphs made so far are dropped, and the next step
// tries again.
// - Refuses the plain RNG tracker (rule B08), pipelines, whose schedules it does not know, inputs
// that no graph can take, a
//   model without any of `modules`, pools other than one, and step() after drop_graphs().
#pragma once

#include "workloads/engines/modules/ahead_of_time.h"

namespace graphproof::engines {

AheadOfTime::Ways callables_policy();

std::unique_ptr<Engine> make_callables(const EngineConfig& config, capture::Device& device,
                                       c10::Stream stream, workloads::TrainStep& step,
                                       Observer* observer);

}  // namespace graphproof::engines
