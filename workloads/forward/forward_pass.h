// What one forward of one microbatch carries past its activations: dropout, the layers' execution
// counters, who runs its parts, and the hooks of planted faults. Cheap to copy, and a
// copy outlives the forward: module bodies keep one.
#pragma once

#include <cstdint>
#include <vector>

#include "fixtures/tensors/torch.h"
#include "workloads/faults/hooks/fault_hooks.h"
#include "workloads/forward/dropout.h"
#include "workloads/forward/expert_ledger.h"
#include "workloads/forward/module_runner.h"
#include "workloads/forward/module_runs.h"
#include "workloads/forward/recompute_ledger.h"
#include "workloads/forward/router_bias.h"
#include "workloads/forward/shared_expert_stream.h"
#include "workloads/parameters/parameter_gather.h"

namespace graphproof::workloads {

class Fp8Weights;

struct ForwardPass {
  std::int64_t microbatch;
  Dropout& dropout;
  /// One [] int64 view of the layer counter per layer of this stage: each forward adds one on the
  /// device, so that a kernel which is not in the graph can be told from one that is.
  const std::vector<at::Tensor>& counters;
  faults::FaultHooks& faults;
  const bool& recording;  // see TrainStep::recording
  ModuleRunner* runner;   // null: every part runs itself
  ModuleRuns& module_runs;
  const RecomputeLedger& recomputes;
  const ExpertLedger& experts;
  const RouterBias& router_bias;
  const at::Tensor& root_gradient;  // [] fp32, static: of the microbatch's loss, and of what its
                                    // routers add to it
  at::Tensor documents =
      {};  // [B, A] int64, of packed sequences: data.h; of a captured part an input of its own
  ParameterGather* gather = nullptr;        // null: all parameters are there
  const Fp8Weights* fp8_weights = nullptr;  // null: products take the weights themselves
  SharedExpertStream* beside = nullptr;     // null: the shared expert runs with its router
  bool again = false;  // run by recompute in backward: masks are drawn again, and what the first
                       // run counted is not
};

/// Through the runner of `pass`, or the body itself where there is none.
template <class Body>
std::vector<at::Tensor> run_module(const ForwardPass& pass, const ModuleCall& call,
                                   const std::vector<at::Tensor>& inputs,
                                   const std::vector<at::Tensor>& parameters, const Body& body) {
  if (!pass.runner) return body(inputs);
  return pass.runner->run(
      call, inputs, parameters,
      [body, &runs = pass.module_runs.of(call)](const std::vector<at::Tensor>& given) {
        const std::vector<at::Tensor> outputs = body(given);
        count_run(runs, outputs);
        return outputs;
      });
}

}  // namespace graphproof::workloads
