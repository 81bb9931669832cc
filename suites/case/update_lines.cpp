#include "suites/case/update_lines.h"

#include <cmath>
#include <limits>

#include "fixtures/tensors/torch.h"
#include "suites/case/learning_rate.h"
#include "workloads/training/optimizer.h"

namespace graphproof::suites {
namespace {

constexpr double kHalfUlp = 5.9604644775390625e-8;  // 2^-24, of fp32
// Below this fp32 has no more relative accuracy, so an error may be as large for any value.
constexpr double kSmallest = 1.1754943508222875e-38;

at::Tensor wide(const at::Tensor& x) { return x.detach().to(at::kDouble); }

/// Keeps the worst of what it is given.
class Worst {
 public:
  /// `got` should be `want` with an error of `bound` in each element, all [any] fp64.
  void add(const std::string& name, const at::Tensor& got, const at::Tensor& want,
           const at::Tensor& bound) {
    ++worst_.tensors;
    if (got.numel() == 0) return;
    const at::Tensor error = (got - want).abs().flatten(), allowed = bound.flatten();
    // An element that must be exact has a bound of zero, and the share of a NaN is infinite.
    const at::Tensor share = at::where(error.eq(0), at::zeros_like(error), error / allowed)
                                 .nan_to_num(std::numeric_limits<double>::infinity());
    const auto at = share.argmax().item<std::int64_t>();
    const double largest = share[at].item<double>();
    if (largest <= share_ && !worst_.worst.empty()) return;
    share_ = largest;
    worst_.worst = name;
    worst_.error = error[at].item<double>();
    worst_.bound = allowed[at].item<double>();
  }
  UpdateError take() { return worst_; }

 private:
  UpdateError worst_;
  double share_ = 0;
};

}  // namespace

UpdatesBefore look_before_updates(workloads::TrainStep& step) {
  UpdatesBefore before;
  for (const workloads::Updated& one : step.updated()) {
    before.moved.push_back(one.moved.tensor.detach().clone());
    before.m.push_back(one.m.defined() ? one.m.clone() : at::Tensor());
    before.v.push_back(one.v.defined() ? one.v.clone() : at::Tensor());
  }
  for (const fixtures::NamedTensor& one : step.frozen())
    before.frozen.push_back(one.tensor.clone());
  return before;
}

UpdateError update_error(workloads::TrainStep& step, const UpdatesBefore& before,
                         double learning_rate, std::int64_t count) {
  const at::NoGradGuard no_grad;
  const workloads::ModelConfig& config = step.config();
  const bool adam = config.optimizer == workloads::OptimizerKind::adam;
  const bool skipped = step.skipped().defined() && step.skipped().item<bool>();
  Worst worst;
  const auto exactly = [&](const std::string& name, const at::Tensor& got, const at::Tensor& want) {
    const at::Tensor expected = wide(want);
    worst.add(name, wide(got), expected, at::zeros_like(expected));
  };
  // A moment is a sum of two products, each with a constant: six roundings at most.
  const auto moment = [&](const std::string& name, const at::Tensor& got, const at::Tensor& old,
                          const at::Tensor& added) {
    const at::Tensor bound = 6 * kHalfUlp * (old.abs() + added.abs()) + kSmallest;
    worst.add(name, wide(got), old + added, bound);
  };
  for (std::size_t i = 0; i < step.updated().size(); ++i) {
    const workloads::Updated& one = step.updated()[i];
    const std::string& name = one.moved.name;
    const at::Tensor start = wide(before.moved[i]), gradient = wide(one.gradient);
    if (skipped) {
      exactly(name, one.moved.tensor, before.moved[i]);
      if (adam) {
        exactly("first moment of " + name, one.m, before.m[i]);
        exactly("second moment of " + name, one.v, before.v[i]);
      }
      continue;
    }
    UpdateDirection direction = sgd_direction(one.gradient);
    if (adam) {
      using workloads::kAdam;
      moment("first moment of " + name, one.m, kAdam.beta1 * wide(before.m[i]),
             (1 - kAdam.beta1) * gradient);
      moment("second moment of " + name, one.v, kAdam.beta2 * wide(before.v[i]),
             (1 - kAdam.beta2) * gradient * gradient);
      direction = adam_direction(one.m, one.v, count);
    }
    if (config.weight_decay && one.decays)
      direction = with_decay(direction, before.moved[i], workloads::kWeightDecay);
    const at::Tensor moved = learning_rate * wide(direction.values), end = start - moved;
    // Twice what effective_learning_rate() allows, because here one element counts and no mean.
    const at::Tensor bound = 2 * kHalfUlp *
                                 (direction.roundings * at::maximum(start.abs(), end.abs()) +
                                  (4 + direction.half_ulps) * moved.abs()) +
                             kSmallest;
    worst.add(name, wide(one.moved.tensor), end, bound);
  }
  // With parameters of 16 bits: each is its master copy, rounded.
  for (const fixtures::NamedTensor& parameter : step.parameters())
    for (const workloads::Updated& one : step.updated())
      if (one.moved.name == "state:master." + parameter.name.substr(6) &&
          one.moved.tensor.sizes() == parameter.tensor.sizes())
        exactly(parameter.name, parameter.tensor,
                one.moved.tensor.to(parameter.tensor.scalar_type()));
  for (std::size_t i = 0; i < before.frozen.size(); ++i)
    exactly(step.frozen()[i].name, step.frozen()[i].tensor, before.frozen[i]);
  return worst.take();
}

void write_updates(CaseScope& scope, const std::string& arm, std::int64_t index,
                   double learning_rate, workloads::TrainStep& step, const UpdatesBefore& before) {
  std::int64_t skipped = 0;
  for (const fixtures::NamedTensor& state : step.optimizer_state())
    if (state.name == "state:loss_scale.skipped") skipped = state.tensor.item<std::int64_t>();
  const UpdateError error = update_error(step, before, learning_rate, index + 1 - skipped);
  scope.write(record::UpdatesLine{.arm = arm,
                                  .step = index,
                                  .tensors = error.tensors,
                                  .worst = error.worst,
                                  .error = error.error,
                                  .bound = error.bound});
}

}  // namespace graphproof::suites
