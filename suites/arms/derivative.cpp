#include "suites/arms/derivative.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "fixtures/tensors/torch.h"
#include "suites/case/learning_rate.h"
#include "workloads/faults/plant.h"
#include "workloads/training/data.h"

namespace graphproof::suites {
namespace {

// How far a change goes: along the gradient so far that the loss changes by kAlong, and in a random
// direction by a share of the norm of the tensor. Along the gradient a small error shows, in a
// random direction one that is orthogonal to it, as where a part of a gradient is missing. The loss
// is of the order of 5 and has errors of 1e-6.
constexpr double kAlong = 0.01, kAcross = 0.02;
// A biased or new tensor of small norm is moved as if its elements were this large.
constexpr double kSmallElement = 0.02;
// Where the bound is more than a share of what is computed, or both disagree, a part of the change
// is measured too.
constexpr double kClear = 0.1, kSmallScale = 0.25;
// How much of the difference between a change and half of it may be left after the extrapolation,
// which removes the term of third order. The higher ones are smaller.
constexpr double kCurvature = 2;
// Added to the logits of the experts that a token gets, far above any other logit. The shares of
// the chosen experts do not depend on it, because it is the same for all of them.
constexpr double kPull = 16;
// What the loss, a mean of logarithms of sums, may be off by, in half ulps of fp32 (2^-24). Errors
// of the layers below it have random signs and mostly cancel in the mean over tokens.
constexpr double kLossHalfUlps = 8;
const double kHalfUlp = std::ldexp(1.0, -24);
// The gradient's own rounding, relative to the sum of the absolute values of its products.
constexpr double kGradientRounding = 1e-4;

/// The single-rank model whose loss, a smooth function of its parameters, has the gradients that
/// the backward gives.
StepConfig smooth(const StepConfig& of) {
  StepConfig config = single_rank(of);
  workloads::ModelConfig& model = config.model;
  model.microbatches = std::min<std::int64_t>(2, of.model.microbatches);
  model.precision = workloads::Precision::fp32;
  model.autocast = model.fp8_weights = model.cpu_offload = false;
  model.clip_grad = model.distributed_optimizer = false;
  model.overlap_grad_reduce = model.overlap_param_gather = false;
  if (model.attention_kernel == workloads::AttentionKernel::flash)  // of 16 bits only on GPUs
    model.attention_kernel = workloads::AttentionKernel::math;
  // Without images the gradients of the encoder are zero.
  model.image_counts = workloads::ImageCounts::fixed;
  // These losses reach the gradients and not the loss that a step returns. Corrected scores are a
  // sigmoid, in which a pull would not cancel.
  model.router_aux_loss = model.router_z_loss = model.router_score_correction = false;
  return config;
}

/// The first batch. Each token is sent to experts by its number, as many tokens to every expert, so
/// that no change of a parameter sends one to another expert: the loss would have a step there.
workloads::Batch smooth_batch(const StepConfig& config, at::Device device) {
  const workloads::ModelConfig& model = config.model;
  workloads::Batch batch = workloads::make_batch(model, config.layout, config.seed, 0, device);
  if (model.experts == 0) return batch;
  const at::Tensor tokens =
      at::arange(model.microbatch_size * model.seq_length, at::kLong).unsqueeze(1);
  const at::Tensor distance =
      (at::arange(model.experts, at::kLong).unsqueeze(0) - tokens).remainder(model.experts);
  const at::Tensor pull = distance.lt(model.topk).to(at::kFloat) * kPull;  // [N, E]
  batch.expert_pull.assign(static_cast<std::size_t>(model.microbatches), pull.to(device));
  return batch;
}

/// A parameter, its gradient, and the change by which it is moved.
struct Moved {
  at::Tensor parameter, start, gradient, change;
};
using Groups = std::map<std::string, std::vector<Moved>>;

/// By the name, without its prefix and with all layers as one. A tensor without a gradient is a
/// group of its own.
Groups groups_of(workloads::TrainStep& step) {
  static const std::regex number(R"(\.\d+\.)");
  const std::vector<fixtures::NamedTensor> parameters = step.parameters(),
                                           gradients = step.gradients();
  Groups groups;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    std::string name = parameters[i].name.substr(std::string("param:").size());
    const at::Tensor gradient = gradients[i].tensor.detach().to(at::kDouble);
    if (gradient.ne(0).any().item<bool>()) name = std::regex_replace(name, number, ".*.");
    groups[name].push_back(
        {parameters[i].tensor.detach(), parameters[i].tensor.detach().clone(), gradient, {}});
  }
  return groups;
}

/// Chooses the change of each tensor of a group. The signs of the random direction are drawn from a
/// generator of the host.
void choose_changes(std::vector<Moved>& group, at::Generator& generator) {
  double squares = 0;
  for (const Moved& one : group) squares += one.gradient.square().sum().item<double>();
  for (Moved& one : group) {
    const at::Tensor signs =
        at::randint(0, 2, one.start.sizes(), generator, at::TensorOptions(at::kDouble)) * 2 - 1;
    const double rms = std::sqrt(one.start.to(at::kDouble).square().mean().item<double>());
    one.change = signs.to(one.start.device()) * (kAcross * std::max(rms, kSmallElement));
    if (squares == 0) continue;
    // No element goes further than a few times the random part, or a tensor of small gradients
    // would leave the range in which the loss is nearly straight.
    const double most = 4 * kAcross * std::max(rms, kSmallElement);
    one.change += (one.gradient * (kAlong / squares)).clamp(-most, most);
  }
}

class Derivative {
 public:
  explicit Derivative(const CaseParts& parts)
      : parts_(parts),
        config_(smooth(parts.config)),
        step_(config_.model, config_.layout, parts.device, config_.seed,
              faults::plant(alone() ? parts.config.fault : fixtures::Fault::none),
              config_.rng_backend),
        batch_(smooth_batch(config_, parts.device.torch_device())) {}

  void run() {
    step_.learning_rate(learning_rate_schedule(config_.model.optimizer).at(0));
    step_.forward_backward(batch_);
    parts_.device.synchronize(parts_.stream);
    Groups groups = groups_of(step_);
    std::vector<Moved> none;
    loss_ = std::abs(loss(none, 0));
    at::Generator generator = at::detail::createCPUGenerator(config_.seed);
    const workloads::Layout& layout = parts_.config.layout;
    const int ranks = layout.stage_ranks() * layout.pp;
    int turn = 0;
    for (auto& [name, group] : groups) {
      choose_changes(group, generator);
      if (turn++ % ranks == world_rank(layout)) parts_.scope.write(measure(name, group));
    }
  }

 private:
  bool alone() const { return parts_.config.layout.stage_ranks() * parts_.config.layout.pp == 1; }

  /// Adds `times` the changes of a group to its parameters as they were.
  static void move(std::vector<Moved>& group, double times) {
    const at::NoGradGuard no_grad;
    for (Moved& one : group) one.parameter.copy_(one.start.to(at::kDouble) + one.change * times);
  }

  /// The mean loss with `times` the changes of a group.
  double loss(std::vector<Moved>& group, double times) {
    move(group, times);
    step_.evaluate(batch_);
    parts_.device.synchronize(parts_.stream);
    return step_.evaluation_losses().to(at::kDouble).mean().item<double>();
  }

  /// Half the difference of the losses on both sides, which the curvature does not enter.
  double slope(std::vector<Moved>& group, double times) {
    return (loss(group, times) - loss(group, -times)) / 2;
  }

  /// The changes of a group at one scale: what they do to the loss, for changes of full size.
  struct Measured {
    double change = 0, bound = 0;
  };
  Measured measured(std::vector<Moved>& group, double scale) {
    const double whole = slope(group, scale), half = 2 * slope(group, scale / 2);
    // Richardson: the error of third order has a quarter of its size at half the change. The
    // difference of both bounds what remains. Rounding enters both, four times as much the second.
    const double rounding = 3 * kLossHalfUlps * kHalfUlp * loss_;
    return {.change = (4 * half - whole) / 3 / scale,
            .bound = (kCurvature * std::abs(whole - half) + rounding) / scale};
  }

  record::DerivativeLine measure(const std::string& name, std::vector<Moved>& group) {
    double computed = 0, products = 0;
    for (const Moved& one : group) {
      const at::Tensor each = one.gradient * one.change;
      computed += each.sum().item<double>();
      products += each.abs().sum().item<double>();
    }
    const double rounding = kGradientRounding * products;
    Measured best = measured(group, 1);
    const bool clear = best.bound <= kClear * std::abs(computed) &&
                       std::abs(best.change - computed) <= best.bound + rounding;
    if (!clear) {
      const Measured large = best, small = measured(group, kSmallScale);
      if (small.bound < best.bound) best = small;
      // Both have to agree, so that no bound is small by chance.
      best.bound = std::max(best.bound, 2 * std::abs(large.change - small.change));
    }
    move(group, 0);
    return {.moved = name,
            .tensors = static_cast<std::int64_t>(group.size()),
            .computed = computed,
            .measured = best.change,
            .bound = best.bound + rounding};
  }

  const CaseParts& parts_;
  const StepConfig config_;
  workloads::TrainStep step_;
  const workloads::Batch batch_;
  double loss_ = 0;  // without a change
};

}  // namespace

void run_derivative(const CaseParts& parts) {
  const c10::StreamGuard guard(parts.stream);
  parts.scope.enter(Phase::eager, "derivative", 0);
  Derivative(parts).run();
}

}  // namespace graphproof::suites
