// impl transformer_engine: a forward and a backward graph of each layer's captured modules for each
// microbatch of the schedule, captured ahead of time, as Megatron-LM captures through Transformer
// Engine's make_graphed_callables.
//
// Contract:
// - `modules` says which parts of a layer are captured; empty is the whole layer. Those of one
// layer are one graph
//   (part_chain.h); what lies between runs eagerly, before and behind it.
// - Steps before number `warmup_steps` are eager training steps. Right before that step everything
// is captured, from the
//   schedule alone: order::chunk_order() says in which order, order::input_buffers() which slots
//   share static inputs. That step and all later ones replay. The eager steps tell the layers'
//   arguments; without any, one forward and backward is rehearsed and put back.
// - At pipeline size 1 one microbatch is captured and its graphs serve every microbatch; otherwise
// each has its own. A call
//   of microbatch m replays graph m modulo the captured ones.
// - Layer by layer (ModelConfig::overlap_ep_comm) the order is order::layer_order(), every
// microbatch has graphs of its own at every
//   pipeline size, and what lies between the captured parts, the experts and their exchange, runs
//   eagerly beside another microbatch's graphs. Delayed weight gradients of a layer's captured
//   parts are one more graph of it, which adds to .grad and is launched where the order says.
// - Before the captures come warm_up_passes() passes over the schedule, on static inputs of ones
// and with NaN for the
//   gradients of outputs: upstream hands in uninitialised memory there. What they change is put
//   back: losses, gradients, masks, ledgers, counters, random numbers.
// - Static inputs and the gradients of outputs lie outside the pool; slots share them by signature.
// Every replay copies
//   into them what does not lie there already. Results lie in the one pool of all graphs: an output
//   until its own backward was replayed, an input's gradient until the layer below or, of a chunk's
//   first layer, the next backward of another entry of the order has run.
// - Gradients of parameters leave the graph as copies, and autograd adds them to .grad, so hooks of
// accumulators run.
//   Fused ones (fused_linear.h) are added in the graph, and their hooks run all the same.
//   Parameters that the outputs don't depend on take no part.
// - With fp8_weights a graph reads on the device whether its microbatch is a step's first, and
// every call writes that flag before
//   its replay, as make_graphed_callables does with is_first_microbatch.
// - A call without gradients, as in evaluation, runs eagerly.
// - The batch is read where it is: embedding and loss are eager. outputs() aliases the step's
// static buffers.
// - A call whose inputs differ from the captured ones, a launch in another order than the captures,
// and parts called out of
//   turn are errors that say what, got, want, why, next.
// - A failed capture throws capture::DeviceError; graphs made so far are dropped, nothing is left
// marked as capturing, and
//   the next step tries again.
// - Refuses the plain RNG tracker (rule B08), inputs that no graph can take, a model without any of
// `modules`, pools other
//   than one, and step() after drop_graphs().
#pragma once

#include "workloads/engines/modules/ahead_of_time.h"

namespace graphproof::engines {

/// Megatron-LM's: as many as bring the eager runs of a layer to ten, steps of training included,
/// and one at least.
std::int64_t warm_up_passes(std::int64_t warmup_steps, std::int64_t microbatches,
                            std::int64_t captured_microbatches);

AheadOfTime::Ways transformer_engine_policy();

std::unique_ptr<Engine> make_transformer_engine(const EngineConfig& config, capture::Device& device,
                                                c10::Stream stream, workloads::TrainStep& step,
                                                Observer* observer);

}  // namespace graphproof::engines
