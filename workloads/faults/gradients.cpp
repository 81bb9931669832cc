// Faults of the backward that all arms and all layouts share: losses are right, and their gradients
// are those of another function.
#include <memory>

#include "workloads/faults/planted.h"

namespace graphproof::faults {
namespace {

/// Biases of linear layers are added outside of autograd.
class BiasWithoutGradient final : public FaultHooks {
 public:
  bool adds_bias(const at::Tensor& y, const at::Tensor& bias) override {
    at::Tensor(y).add_(bias.detach());
    return false;
  }
};

/// The mean square of a norm is taken for a constant.
class NormAsConstant final : public FaultHooks {
 public:
  at::Tensor mean_square(const at::Tensor& mean, const at::Tensor&) override {
    return mean.detach();
  }
};

/// A loss of the routers is left out. A step returns the losses of its tokens alone, so nothing
/// else changes.
class RouterLossLeftOut final : public FaultHooks {
 public:
  explicit RouterLossLeftOut(bool workloads::ModelConfig::* loss) : loss_(loss) {}
  void plan_step(const StepPlan& plan) override { plan.config.*loss_ = false; }

 private:
  bool workloads::ModelConfig::* loss_;
};

}  // namespace

std::shared_ptr<FaultHooks> bias_without_gradient() {
  return std::make_shared<BiasWithoutGradient>();
}
std::shared_ptr<FaultHooks> norm_as_constant() { return std::make_shared<NormAsConstant>(); }
std::shared_ptr<FaultHooks> router_z_loss_left_out() {
  return std::make_shared<RouterLossLeftOut>(&workloads::ModelConfig::router_z_loss);
}
std::shared_ptr<FaultHooks> router_aux_loss_left_out() {
  return std::make_shared<RouterLossLeftOut>(&workloads::ModelConfig::router_aux_loss);
}

}  // namespace graphproof::faults
