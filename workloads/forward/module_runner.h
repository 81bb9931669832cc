// The interface at which an engine takes over parts of the model. Every part that a graph may hold
// alone passes its inputs, its parameters and its work to the runner; without a runner the work
// runs eagerly.
//
// The parts are those of the Megatron-LM guide. attn, mlp and moe are the branches of a layer, each
// with its norm, dropout and residual, where mlp belongs to a dense layer and moe to an expert
// layer; moe_router and moe_preprocess are pieces of moe. mamba is norm, mixer, dropout and
// residual of a mamba layer. layer is a whole layer. Calls nest accordingly, and a runner runs the
// bodies of the kinds that it does not capture.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {

/// The values of axis modules; `layer` is its empty set.
enum class ModuleKind { layer, attn, mlp, moe, moe_router, moe_preprocess, mamba };
inline constexpr std::array<std::string_view, 7> kModuleKinds{
    "layer", "attn", "mlp", "moe", "moe_router", "moe_preprocess", "mamba"};
inline std::string_view name(ModuleKind kind) {
  return kModuleKinds[static_cast<std::size_t>(kind)];
}

/// The part that is called, and in which microbatch. A body must not depend on the microbatch,
/// because a graph that is captured in one microbatch is replayed in others.
struct ModuleCall {
  ModuleKind kind;
  std::int64_t layer, microbatch;
};

/// The work of a part: computes outputs from inputs, enqueued on the current stream. A runner keeps
/// it and may call it after run() has returned, so it captures by value, and what it refers to
/// lives as long as the TrainStep. Differentiable in the inputs that require a gradient and in the
/// parameters of the part, which are not among the inputs.
using ModuleBody = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs)>;

/// Implemented by engines that capture modules. Used by the thread that runs the step.
class ModuleRunner {
 public:
  virtual ~ModuleRunner() = default;
  /// Returns what `body` would return, differentiable in the same way. `inputs` are defined
  /// tensors. `parameters` are all that the body may use, in an order that never changes; the list
  /// outlives the last step of the TrainStep.
  virtual std::vector<at::Tensor> run(const ModuleCall& call, const std::vector<at::Tensor>& inputs,
                                      const std::vector<at::Tensor>& parameters,
                                      const ModuleBody& body) = 0;
  /// Whether it captures single parts and replays the graph of a part in other microbatches than
  /// the one it was captured in.
  virtual bool captures_parts() const { return false; }
  /// Adds the weight gradients that the backward of the same call deferred (delayed_gradients.h):
  /// runs `body`, or replays the graph that holds it. The body captures as a ModuleBody does.
  virtual void run_weight_gradients(const ModuleCall& /*call*/, const std::function<void()>& body) {
    body();
  }
};

}  // namespace graphproof::workloads
