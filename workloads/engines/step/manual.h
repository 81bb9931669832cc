// impl manual: one hand-made graph of a whole training step, as PyTorch's notes on whole-network
// capture describe it (torch.cuda.graph around zero_grad, forward, backward and optimizer step).
//
// Contract:
// - The first `warmup_steps` steps run eagerly on the engine's stream, which is also the capture
//   stream.
// - The next step captures zeroing, forward, backward, data parallel mean and optimizer into one
//   graph, which runs nothing, and then replays it for that same step. Later steps only replay.
// - Each batch is copied on the engine's stream into static inputs, which are clones of the first
//   batch. The caller's tensors are not kept.
// - The learning rate is written to device memory before each replay, which reads it there.
// - outputs() aliases the static buffers of the step: values that are read later are those of the
//   latest replay.
// - If the step runs layer by layer (ModelConfig::overlap_ep_comm), the stream of the exchanges
//   forks and joins inside the graph, and a step that would end with weight gradients pending is
//   refused.
// - With delayed fp8 scaling the graphs hold the reductions and updates of the scales too.
// - With fp8_weights the graph holds the rounding in its first microbatch only, so a replay needs
//   no flag.
// - Every generator of the step is registered with the graph.
// - A failed capture throws capture::DeviceError; the engine never falls back to eager by itself.
// - Refuses a batch of another shape, and step() after drop_graphs().
#pragma once

#include "workloads/engines/capture/engine.h"

namespace graphproof::engines {

/// See make_engine().
std::unique_ptr<Engine> make_manual(const EngineConfig& config, capture::Device& device,
                                    c10::Stream stream, workloads::TrainStep& step,
                                    Observer* observer);

}  // namespace graphproof::engines
