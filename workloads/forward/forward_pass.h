// The context of one microbatch's forward: dropout, the counters of the layers, the runner of its
// parts, and the hooks of planted faults.
#pragma once

#include <cstdint>
#include <vector>

#include "fixtures/tensors/torch.h"
#include "workloads/faults/hooks/fault_hooks.h"
#include "workloads/forward/activation_offload.h"
#include "workloads/forward/autocast.h"
#include "workloads/forward/dropout.h"
#include "workloads/forward/expert_buffers.h"
#include "workloads/forward/expert_ledger.h"
#include "workloads/forward/module_runner.h"
#include "workloads/forward/module_runs.h"
#include "workloads/forward/recompute_ledger.h"
#include "workloads/forward/router_bias.h"
#include "workloads/forward/shared_expert_stream.h"
#include "workloads/parameters/parameter_gather.h"

namespace graphproof::workloads {

class Fp8Weights;
struct CachedTokens;
struct ExpertChoices;

/// Cheap to copy. What it refers to lives as long as the TrainStep, so module bodies may keep
/// copies beyond the forward.
struct ForwardPass {
  std::int64_t microbatch;
  Dropout& dropout;
  /// One [] int64 view of the layer counter for each layer of this stage. Each forward of a layer
  /// adds one on the device, which shows whether its kernels are in a replayed graph.
  const std::vector<at::Tensor>& counters;
  faults::FaultHooks& faults;
  const bool& recording;  // TrainStep::recording
  ModuleRunner* runner;   // null: every part runs eagerly
  ModuleRuns& module_runs;
  const RecomputeLedger& recomputes;
  const ExpertLedger& experts;
  const ExpertBuffers& expert_buffers;
  const RouterBias& router_bias;
  /// [] fp32, static: the gradient with which the backward of the microbatch's loss starts. Also
  /// scales the gradients of the losses that routers add.
  const at::Tensor& root_gradient;
  /// [B, A] int64: the documents of packed sequences (data.h). An extra input of captured parts.
  at::Tensor documents = {};
  /// [E] or [N, E] fp32: added to the logits of routers (data.h); undefined without paged_stash.
  at::Tensor expert_pull = {};
  /// The region that the whole forward runs in. A part that an engine runs outside of the forward
  /// opens it again.
  AutocastState autocast = {};
  ActivationOffload* offload = nullptr;     // null: activations stay on the device
  ParameterGather* gather = nullptr;        // null: all parameters are complete
  const Fp8Weights* fp8_weights = nullptr;  // null: products use the weights themselves
  at::Tensor fp8_kept = {};                 // with_kept_scales(); else undefined
  /// Inference over kept keys and values; null: whole sequences.
  const CachedTokens* cached = nullptr;
  /// Inference: experts take every token that is routed, and routers note their choices. Null in
  /// training and evaluation, where experts have a capacity.
  ExpertChoices* choices = nullptr;
  SharedExpertStream* shared_expert_stream = nullptr;  // null: shared experts run with the router
  /// The second run of a recomputed part, in backward. It draws the masks of the first run again
  /// and does not count what the first run has counted.
  bool again = false;
};

/// Runs `body` through the runner of `pass`, or directly if there is no runner.
template <class Body>
std::vector<at::Tensor> run_module(const ForwardPass& pass, const ModuleCall& call,
                                   const std::vector<at::Tensor>& inputs,
                                   const std::vector<at::Tensor>& parameters, const Body& body) {
  if (!pass.runner) return body(inputs);
  return pass.runner->run(call, inputs, parameters,
                          [body, autocast = pass.autocast, &runs = pass.module_runs.of(call)](
                              const std::vector<at::Tensor>& given) {
                            const AutocastRegion region(given.at(0).device().type(), autocast);
                            const std::vector<at::Tensor> outputs = body(given);
                            count_run(runs, outputs);
                            return outputs;
                          });
}

}  // namespace graphproof::workloads
