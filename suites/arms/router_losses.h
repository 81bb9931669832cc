// The losses that routers add to the gradients, by a definition of their own: from what a router
// reads, and not from what it computes. A step does not return these losses.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fixtures/tensors/torch.h"
#include "workloads/config/model_config.h"
#include "workloads/forward/module_runner.h"
#include "workloads/training/data.h"
#include "workloads/training/train_step.h"

namespace graphproof::suites {

enum class RouterLoss { router_aux_loss, router_z_loss };

/// Runs all parts of a model as they are, and adds up a loss of its routers. The model is on a
/// single rank and its dispatch is dropless. `step` and `batch` outlive it.
class RouterLosses final : public workloads::ModuleRunner {
 public:
  RouterLosses(workloads::TrainStep& step, const workloads::Batch& batch, RouterLoss loss);

  /// Sets the sums to zero, before a forward of all microbatches.
  void begin();
  /// Of that forward, the mean over its microbatches. The aux loss is 0.01 * E times the sum over
  /// experts of the mean share of a token's probabilities times the share of all assignments (Fedus
  /// et al., Switch Transformers, 2021), the z loss 0.001 times the mean square of the logsumexp of
  /// the logits (Zoph et al., ST-MoE, 2022). The factors are those of Megatron-LM's documentation
  /// for --moe-aux-loss-coeff and --moe-z-loss-coeff.
  double value() const;
  /// By how much the weights [E, H] of each router change it with all else as it is, by the name of
  /// the parameter.
  std::map<std::string, at::Tensor> of_weights() const;

  std::vector<at::Tensor> run(const workloads::ModuleCall& call,
                              const std::vector<at::Tensor>& inputs,
                              const std::vector<at::Tensor>& parameters,
                              const workloads::ModuleBody& body) override;

 private:
  /// Of logits [N, E], [] fp64. shares [E] fp64: of all assignments, for each expert.
  at::Tensor z(const at::Tensor& logits) const;
  at::Tensor aux(const at::Tensor& logits, const at::Tensor& shares) const;

  const workloads::ModelConfig config_;
  const workloads::Batch& batch_;
  const RouterLoss loss_;
  struct Router {
    std::string name;
    at::Tensor weight, gradient;  // [E, H]; the gradient is fp64, on the host
  };
  std::map<std::int64_t, Router> routers_;  // by layer
  /// The shares of the first forward, by layer and microbatch. They are constants of the loss, as
  /// in its gradients: a change that sends a token to other experts would be a step in it.
  std::map<std::pair<std::int64_t, std::int64_t>, at::Tensor> shares_;
  double sum_ = 0;
};

inline RouterLosses::RouterLosses(workloads::TrainStep& step, const workloads::Batch& batch,
                                  RouterLoss loss)
    : config_(step.config()), batch_(batch), loss_(loss) {
  for (const fixtures::NamedTensor& one : step.parameters())
    for (std::int64_t layer = 0; layer < config_.first_encoder_layer(); ++layer)
      if (one.name == "param:" + config_.layer_name(layer) + ".mlp.router.weight")
        routers_[layer] = {one.name, one.tensor.detach(), {}};
  begin();
}

inline void RouterLosses::begin() {
  sum_ = 0;
  for (auto& [layer, router] : routers_)
    router.gradient = at::zeros(router.weight.sizes(), at::kDouble);
}

inline double RouterLosses::value() const {
  return sum_ / static_cast<double>(config_.microbatches);
}

inline std::map<std::string, at::Tensor> RouterLosses::of_weights() const {
  std::map<std::string, at::Tensor> result;
  for (const auto& [layer, router] : routers_)
    result[router.name] = router.gradient / static_cast<double>(config_.microbatches);
  return result;
}

inline std::vector<at::Tensor> RouterLosses::run(const workloads::ModuleCall& call,
                                                 const std::vector<at::Tensor>& inputs,
                                                 const std::vector<at::Tensor>& /*parameters*/,
                                                 const workloads::ModuleBody& body) {
  std::vector<at::Tensor> outputs = body(inputs);
  if (call.kind != workloads::ModuleKind::moe_router) return outputs;
  // The part returns its residual, then what the router reads [N, H] (Layer::router_part).
  const auto host = [](const at::Tensor& x) { return x.detach().cpu().to(at::kDouble); };
  Router& router = routers_.at(call.layer);
  const at::AutoGradMode of_this_definition(true);
  const at::Tensor weight = host(router.weight).requires_grad_(true);
  at::Tensor logits = at::mm(host(outputs.at(1)), weight.t());  // [N, E]
  if (!batch_.expert_pull.empty())
    logits = logits + host(batch_.expert_pull.at(static_cast<std::size_t>(call.microbatch)));
  at::Tensor& shares = shares_[{call.layer, call.microbatch}];
  if (!shares.defined()) {
    // A sigmoid keeps the order, so the chosen experts are those of the largest logits.
    const at::Tensor chosen = std::get<1>(at::topk(logits.detach(), config_.topk, 1));  // [N, K]
    shares = at::one_hot(chosen, config_.experts).to(at::kDouble).mean(at::IntArrayRef{0, 1});
  }
  const at::Tensor loss = loss_ == RouterLoss::router_z_loss ? z(logits) : aux(logits, shares);
  sum_ += loss.item<double>();
  router.gradient += torch::autograd::grad({loss}, {weight})[0];
  return outputs;
}

inline at::Tensor RouterLosses::z(const at::Tensor& logits) const {
  return 0.001 * at::logsumexp(logits, {1}).square().mean();
}

inline at::Tensor RouterLosses::aux(const at::Tensor& logits, const at::Tensor& shares) const {
  const at::Tensor scores = at::sigmoid(logits);
  const at::Tensor probabilities = config_.router_score_correction
                                       ? scores / scores.sum(1, /*keepdim=*/true)
                                       : at::softmax(logits, 1);
  return 0.01 * static_cast<double>(config_.experts) * (probabilities.mean(0) * shares).sum();
}

}  // namespace graphproof::suites
