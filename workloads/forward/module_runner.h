// The seam at which an engine takes over parts of the model. Every part that a graph may hold alone
// passes its inputs, its parameters and its work through here; without a runner the work runs as it
// stands.
//
// The cuts are those of the Megatron-LM guide: attn is norm, attention, dropout and residual; mlp
// the same around the feed-forward part of a dense layer; moe that of an expert layer, of which
// moe_router and moe_preprocess are parts; mamba is norm, mixer, dropout and residual of a mamba
// layer; layer is a whole layer, around the others. So calls nest, and a runner runs the bodies of
// kinds it has no part in.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {

/// Spelled as the values of the axis modules; layer is its empty set.
enum class ModuleKind { layer, attn, mlp, moe, moe_router, moe_preprocess, mamba };
inline constexpr std::array<std::string_view, 7> kModuleKinds{
    "layer", "attn", "mlp", "moe", "moe_router", "moe_preprocess", "mamba"};
inline std::string_view name(ModuleKind kind) {
  return kModuleKinds[static_cast<std::size_t>(kind)];
}

/// Which part is called. The microbatch is that of this call; a body must not depend on it, because
/// a graph that was captured in one microbatch is replayed in others.
struct ModuleCall {
  ModuleKind kind;
  std::int64_t layer, microbatch;
};

/// A part's work: inputs to outputs, enqueued on the current stream. A runner keeps it and calls it
/// again after the call in which it came, so it captures by value, and refers to nothing that lives
/// shorter than the TrainStep. Differentiable in those inputs that require a gradient and in the
/// part's parameters, which it reads by itself.
using ModuleBody = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs)>;

class ModuleRunner {
 public:
  virtual ~ModuleRunner() = default;
  /// Returns what `body` would, differentiable in the same way. `inputs` are defined tensors;
  /// `parameters` are all that the body may use, in an order that never changes; the list outlives
  /// the TrainStep's last step.
  virtual std::vector<at::Tensor> run(const ModuleCall& call, const std::vector<at::Tensor>& inputs,
                                      const std::vector<at::Tensor>& parameters,
                                      const ModuleBody& body) = 0;
  /// Whether it captures parts alone, and replays such a graph in other microbatches than that of
  /// its capture.
  virtual bool captures_parts() const { return false; }
  /// The weight gradients that the backward of the same call left for later (delayed_gradients.h):
  /// runs `body`, or what stands for it in the part's graphs. The body captures as ModuleBody does.
  virtual void run_weight_gradients(const ModuleCall& /*call*/, const std::function<void()>& body) {
    body();
  }
};

}  // namespace graphproof::workloads
