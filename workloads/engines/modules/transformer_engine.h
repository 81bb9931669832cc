// impl transformer_engine: the captured modules of each layer are one forward and one backward
// graph for each microbatch of the schedule, captured ahead of time, as Megatron-LM captures
// through Transformer Engine's make_graphed_callables.
//
// Contract:
// - `modules` selects the parts of a layer that are captured; an empty list captures the whole
//   layer. The captured parts of one layer share one graph (part_chain.h). What lies before,
//   between and after them runs eagerly.
// - Steps before number `warmup_steps` are eager training steps. Immediately before that step
//   everything is captured, from the schedule alone: order::chunk_order() gives the order, and
//   order::input_buffers() specifies which slots share static inputs. That step and all later ones
//   replay. The eager steps show the arguments of the layers; without an eager step, one forward
//   and backward is rehearsed and its effects are undone.
// - At pipeline size 1 one microbatch is captured, and its graphs serve every microbatch; otherwise
//   each microbatch has its own graphs. A call of microbatch m replays graph m modulo the number of
//   captured microbatches.
// - The layers of a vision encoder, which the first stage alone has, come in front of the layers of
//   the first chunk and have graphs of their own; those of a frozen one have no backward. Upstream
//   captures them by a helper of their own, with a schedule of one chunk.
// - The layers of multi-token prediction, which the last stage alone has, follow the layers of the
//   last chunk. Their norms, projections and losses are eager, as upstream's.
// - If the step runs layer by layer (ModelConfig::overlap_ep_comm), the order is
//   order::layer_order() and every microbatch has its own graphs at every pipeline size. What lies
//   between the captured parts, the experts and their exchange, runs eagerly, concurrently with the
//   graphs of another microbatch. The delayed weight gradients of a layer's captured parts are a
//   third graph of the layer, which adds to .grad and is launched where the order has its entry.
// - Before the captures, warm_up_passes() passes over the schedule run, with static inputs of ones
//   and with NaN as gradients of outputs, where Transformer Engine passes uninitialised memory.
//   Their effects are undone: losses, gradients, masks, ledgers, counters, random numbers.
// - Static inputs and the gradients of outputs are outside the pool, and slots share them by
//   signature. Every replay copies the inputs into them, except those that are at their address
//   already. Results are in the one pool of all graphs: an output is valid until its own backward
//   was replayed, the gradient of an input until the layer below has run, or for the first layer of
//   a chunk, until the next backward of another entry of the order has run.
// - Gradients of parameters leave the graph as copies, which autograd adds to .grad, so hooks of
//   accumulators run. Fused weight gradients (fused_linear.h) are added in the graph, and their
//   hooks run too. Parameters on which the outputs do not depend get no gradient.
// - With delayed fp8 scaling a graph holds the casts; the scales are updated outside the graphs, on
//   leaving the fp8 context of a microbatch, which therefore has to be entered at replays too.
// - With fp8_weights a graph reads on the device whether its microbatch is the first of a step.
//   Every call writes that flag before its replay, as make_graphed_callables does with
//   is_first_microbatch.
// - A call without gradients, as in evaluation, runs eagerly.
// - The batch is not copied, because embedding and loss are eager. outputs() aliases the static
//   buffers of the step.
// - A call whose inputs differ from the captured ones, a launch in another order than the captures,
//   and parts called out of order are errors, with what, got, want, why and next in their messages.
// - A failed capture throws capture::DeviceError. The graphs that were made so far are dropped, no
//   stream remains marked as capturing, and the next step tries again.
// - Refuses the plain RNG tracker (rule B08), inputs that no graph can take, a model without any of
//   `modules`, more than one pool, and step() after drop_graphs().
#pragma once

#include "workloads/engines/modules/ahead_of_time.h"

namespace graphproof::engines {

/// The number of warm-up passes, as in Megatron-LM: enough for ten eager runs of a layer including
/// those of the training steps, and at least one.
std::int64_t warm_up_passes(std::int64_t warmup_steps, std::int64_t microbatches,
                            std::int64_t captured_microbatches);

/// What AheadOfTime does as transformer_engine.
AheadOfTime::CapturePolicy transformer_engine_policy();

/// See make_engine().
std::unique_ptr<Engine> make_transformer_engine(const EngineConfig& config, capture::Device& device,
                                                c10::Stream stream, workloads::TrainStep& step,
                                                Observer* observer);

}  // namespace graphproof::engines
