#include "suites/arms/derivative.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fixtures/tensors/torch.h"
#include "suites/arms/router_losses.h"
#include "suites/case/learning_rate.h"
#include "workloads/faults/plant.h"
#include "workloads/training/data.h"

namespace graphproof::suites {
namespace {

// How far a change goes, before it is scaled: along the gradient so far that the loss changes by
// kAlong, and in a random direction by a share of the norm of the tensor. Along the gradient a
// small error shows, in a random direction one that is orthogonal to it, as where a part of a
// gradient is missing.
constexpr double kAlong = 0.01, kAcross = 0.02;
// A biased or new tensor of small norm is moved as if its elements were this large.
constexpr double kSmallElement = 0.02;
// The part of it that is measured. Random models of eight layers have places in which the loss is
// straight in the range of 1/256 only (measured on the simulated device). A change by this part
// changes the loss, which is of the order of 5, by about 1e-7, and it has errors of 1e-14 in fp64.
const double kScale = std::ldexp(1.0, -16);
// How much of the difference between a change and half of it may be left after the extrapolation,
// which removes the term of third order. The higher ones are smaller.
constexpr double kCurvature = 2;
// Added to the logits of the experts that a token gets, far above any other logit. The shares of
// the chosen experts do not depend on it, because it is the same for all of them.
constexpr double kPull = 16;
// The same for the losses of routers. It is above nearly all logits, whose standard deviation is 1,
// and leaves the probabilities of the experts that are not chosen a part in the loss.
constexpr double kSmallPull = 5;
// What the loss, a mean of logarithms of sums, may be off by, in half ulps of fp64 (2^-53). Errors
// of the layers below it have random signs and mostly cancel in the mean over tokens.
constexpr double kLossHalfUlps = 8;
const double kHalfUlp = std::ldexp(1.0, -53);
// The gradient's own rounding, relative to the sum of the absolute values of its products: a
// million half ulps. A backward pass is a chain of some thousand sums, each of which rounds by half
// an ulp. The rest is room: a defect changes a share of a gradient, and not its tenth digit.
constexpr double kGradientRounding = 1e-10;
// A router's loss is a small part of what a gradient is made of, and its own gradient the
// difference of two of them: in half ulps of the sum of the absolute values of the products of the
// whole gradient. The two backwards round some ten sums of a layer differently, with random signs.
constexpr double kDifferenceHalfUlps = 16;
// All groups are changed together in so many directions, or in one for each rank if there are more.
//
// What a gradient is off by is a vector, and a direction shows its product with it: random signs
// and, for each group, a random factor. So errors of groups cancel only where a random number
// happens to meet another one. The part of a group is some forty bounds (measured with models of
// this suite on the simulated device). If two groups are off by such a part with opposite signs,
// their factors hide one in the other in one of twenty draws, and in both directions in one of four
// hundred.
constexpr int kDirections = 2;
constexpr double kLeastFactor = 0.5, kMostFactor = 1.5;
// A direction speaks for the groups in it whose part is so many bounds, or more: if their gradients
// were missing, the bound would be left by as much. The others are changed alone.
constexpr double kPartInBounds = 4;
// Along its gradient, a router's loss changes by this part of itself.
constexpr double kAlongRouterLoss = 0.02;

/// The single-rank model whose loss, a smooth function of its parameters, has the gradients that
/// the backward gives.
StepConfig smooth(const StepConfig& of) {
  StepConfig config = single_rank(of);
  workloads::ModelConfig& model = config.model;
  model.microbatches = std::min<std::int64_t>(2, of.model.microbatches);
  model.precision = workloads::Precision::fp64;
  model.autocast = model.fp8_weights = model.cpu_offload = false;
  model.clip_grad = model.distributed_optimizer = false;
  model.overlap_grad_reduce = model.overlap_param_gather = false;
  model.attention_kernel = workloads::AttentionKernel::math;  // the others have no fp64
  // Without images the gradients of the encoder are zero.
  model.image_counts = workloads::ImageCounts::fixed;
  // These losses reach the gradients and not the loss that a step returns; they are measured apart.
  // Corrected scores are a sigmoid, in which a pull would not cancel.
  model.router_aux_loss = model.router_z_loss = model.router_score_correction = false;
  return config;
}

/// The same with the loss that axis `added` adds, or with none if it is null. Without drops, since
/// a change could send the last token of an expert elsewhere.
StepConfig with_router_loss(const StepConfig& of, bool workloads::ModelConfig::* added) {
  StepConfig config = smooth(of);
  config.model.router_score_correction = of.model.router_score_correction;
  config.model.dropless = true;
  if (added) config.model.*added = true;
  return config;
}

/// The first batch. Each token is sent to experts by its number, so that no change of a parameter
/// sends one to another expert: the loss would have a step there. Token n has the experts n, n + 1
/// and so on in a circle of `circle` numbers: with as many as there are experts, all have as many
/// tokens; with one more, the number beyond the last expert is the first one, which has most.
workloads::Batch smooth_batch(const StepConfig& config, at::Device device, std::int64_t circle,
                              double strength) {
  const workloads::ModelConfig& model = config.model;
  workloads::Batch batch = workloads::make_batch(model, config.layout, config.seed, 0, device);
  if (model.experts == 0) return batch;
  const at::Tensor pull =
      workloads::pull_in_circle(model.microbatch_size * model.seq_length, model.experts, model.topk,
                                /*first=*/0, circle) *
      strength;  // [N, E]
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

/// How large the elements of a tensor are, at least.
double size_of(const at::Tensor& start) {
  return std::max(std::sqrt(start.to(at::kDouble).square().mean().item<double>()), kSmallElement);
}

/// No element goes further than a few times the random part, or a tensor of small gradients would
/// leave the range in which the loss is nearly straight.
at::Tensor clamped(const at::Tensor& change, const at::Tensor& start) {
  const double most = 4 * kAcross * size_of(start);
  return change.clamp(-most, most);
}

/// Chooses the change of each tensor of a group: `along` is how much it changes the loss along the
/// gradient. The signs of the random direction are drawn from a generator of the host.
void choose_changes(std::vector<Moved>& group, at::Generator& generator, double along) {
  double squares = 0;
  for (const Moved& one : group) squares += one.gradient.square().sum().item<double>();
  for (Moved& one : group) {
    const at::Tensor signs =
        at::randint(0, 2, one.start.sizes(), generator, at::TensorOptions(at::kDouble)) * 2 - 1;
    one.change = signs.to(one.start.device()) * (kAcross * size_of(one.start));
    if (squares > 0) one.change += clamped(one.gradient * (along / squares), one.start);
  }
}

/// Adds `times` the changes of a group to its parameters as they were.
void move(const std::vector<Moved>& group, double times) {
  const at::NoGradGuard no_grad;
  for (const Moved& one : group)
    at::Tensor(one.parameter).copy_(one.start.to(at::kDouble) + one.change * times);
}

/// What a change of parameters does to a loss, and how far that may be off.
struct Measured {
  double change = 0, bound = 0;
};
/// The loss with `times` a change.
using LossAt = std::function<double(double times)>;

/// `rounding` is that of one loss; `gradient_rounding` is that of what the gradient predicts.
Measured measured(const LossAt& loss, double rounding, double gradient_rounding) {
  // Half the difference of the losses on both sides, which the curvature does not enter.
  const auto slope = [&](double times) { return (loss(times) - loss(-times)) / 2; };
  const double whole = slope(kScale), half = 2 * slope(kScale / 2);
  // Richardson: the error of third order has a quarter of its size at half the change. The
  // difference of both bounds what remains. Rounding enters both, four times as much the second.
  return {
      .change = (4 * half - whole) / 3 / kScale,
      .bound = (kCurvature * std::abs(whole - half) + 3 * rounding) / kScale + gradient_rounding};
}

bool alone(const CaseParts& parts) {
  return parts.config.layout.stage_ranks() * parts.config.layout.pp == 1;
}

/// The model of `config`, after one step with `batch`.
class Stepped {
 public:
  Stepped(const CaseParts& parts, const StepConfig& config, const workloads::Batch& batch)
      : parts_(parts),
        step_(config.model, config.layout, parts.device, config.seed,
              faults::plant(alone(parts) ? parts.config.fault : fixtures::Fault::none),
              config.rng_backend) {
    step_.learning_rate(learning_rate_schedule(config.model.optimizer).at(0));
    step_.forward_backward(batch);
    // At its end a step corrects the routers. Its gradients are those of the scores before, and a
    // forward with others can send a token to another expert.
    for (const fixtures::NamedTensor& one : step_.optimizer_state())
      if (one.name == "state:router_bias") at::Tensor(one.tensor).zero_();
    parts_.device.synchronize(parts_.stream);
  }

  workloads::TrainStep& step() { return step_; }
  /// The mean loss of a forward.
  double evaluate(const workloads::Batch& batch) {
    step_.evaluate(batch);
    parts_.device.synchronize(parts_.stream);
    return step_.evaluation_losses().to(at::kDouble).mean().item<double>();
  }

 private:
  const CaseParts& parts_;
  workloads::TrainStep step_;
};

/// How the model is asked for a loss of its routers.
struct RouterLossAxis {
  std::string_view name;
  bool workloads::ModelConfig::* added;
  RouterLoss loss;
};
constexpr RouterLossAxis kRouterLosses[] = {
    {"router_aux_loss", &workloads::ModelConfig::router_aux_loss, RouterLoss::router_aux_loss},
    {"router_z_loss", &workloads::ModelConfig::router_z_loss, RouterLoss::router_z_loss}};

class Derivative {
 public:
  explicit Derivative(const CaseParts& parts)
      : parts_(parts),
        config_(smooth(parts.config)),
        batch_(smooth_batch(config_, parts.device.torch_device(), config_.model.experts, kPull)),
        stepped_(parts, config_, batch_) {}

  void run() {
    Groups groups = groups_of(stepped_.step());
    rounding_ = kLossHalfUlps * kHalfUlp * std::abs(stepped_.evaluate(batch_));
    const std::set<std::string> shown = shown_together(groups);
    at::Generator generator = at::detail::createCPUGenerator(config_.seed);
    for (auto& [name, group] : groups) {
      choose_changes(group, generator, kAlong);
      // A rank whose directions disagree looks for the group at fault in all of them.
      if ((is_mine() || shown.empty()) && !shown.contains(name))
        parts_.scope.write(line(name, group));
    }
    for (const RouterLossAxis& axis : kRouterLosses)
      if (parts_.config.model.*axis.added && is_mine()) parts_.scope.write(router_line(axis));
  }

 private:
  int ranks() const { return parts_.config.layout.stage_ranks() * parts_.config.layout.pp; }
  /// Whether this rank writes the next line.
  bool is_mine() { return turn_++ % ranks() == world_rank(parts_.config.layout); }

  /// Changes all groups in this rank's directions, and writes a line for each. Returns the groups
  /// that all of them speak for: none, and no line, if one of them disagrees.
  std::set<std::string> shown_together(Groups& groups) {
    std::set<std::string> shown;
    for (const auto& [name, group] : groups) shown.insert(name);
    std::vector<record::DerivativeLine> lines;
    for (int direction = 0; direction < std::max(kDirections, ranks()); ++direction) {
      if (direction % ranks() != world_rank(parts_.config.layout)) continue;
      at::Generator generator =
          at::detail::createCPUGenerator(config_.seed + 1 + static_cast<std::uint64_t>(direction));
      std::map<std::string, double> of_group;
      std::vector<Moved> all;
      for (auto& [name, group] : groups) {
        choose_changes(group, generator, kAlong);
        // Together they change the loss about as much as one of them alone.
        const double factor = at::empty({}, at::kDouble)
                                  .uniform_(kLeastFactor, kMostFactor, generator)
                                  .item<double>() /
                              std::sqrt(static_cast<double>(groups.size()));
        for (Moved one : group) {
          one.change = one.change * factor;
          of_group[name] += (one.gradient * one.change).sum().item<double>();
          all.push_back(std::move(one));
        }
      }
      lines.push_back(line("all", all));
      const record::DerivativeLine& together = lines.back();
      if (std::abs(together.measured - together.computed) > together.bound) return {};
      for (const auto& [name, part] : of_group)
        if (std::abs(part) < kPartInBounds * together.bound) shown.erase(name);
    }
    if (shown.empty()) return {};
    for (const record::DerivativeLine& together : lines) parts_.scope.write(together);
    return shown;
  }

  record::DerivativeLine line(const std::string& name, const std::vector<Moved>& group) {
    parts_.scope.enter(Phase::eager, "derivative", lines_++);  // tells the launcher of progress
    double computed = 0, products = 0;
    for (const Moved& one : group) {
      const at::Tensor each = one.gradient * one.change;
      computed += each.sum().item<double>();
      products += each.abs().sum().item<double>();
    }
    const LossAt loss = [&](double times) {
      move(group, times);
      return stepped_.evaluate(batch_);
    };
    const Measured found = measured(loss, rounding_, kGradientRounding * products);
    move(group, 0);
    return {.moved = name,
            .tensors = static_cast<std::int64_t>(group.size()),
            .computed = computed,
            .measured = found.change,
            .bound = found.bound};
  }

  record::RouterLossLine router_line(const RouterLossAxis& axis) const {
    const StepConfig with = with_router_loss(parts_.config, axis.added);
    StepConfig without = with_router_loss(parts_.config, nullptr);
    // The same bits, and its routers are parts of their own, which a recomputed layer's are not.
    without.model.recompute = {};
    const workloads::Batch batch =
        smooth_batch(with, parts_.device.torch_device(), with.model.experts + 1, kSmallPull);
    Stepped plain(parts_, without, batch);
    const std::vector<fixtures::NamedTensor> parameters = plain.step().parameters();
    std::vector<Moved> all;
    std::vector<at::Tensor> whole;  // gradients, with that of the tokens' loss
    {
      Stepped added(parts_, with, batch);
      const std::vector<fixtures::NamedTensor> gradients = added.step().gradients(),
                                               others = plain.step().gradients();
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        whole.push_back(gradients[i].tensor.detach().to(at::kDouble));
        const at::Tensor start = parameters[i].tensor.detach();
        all.push_back({start, start.clone(), whole[i] - others[i].tensor.detach().to(at::kDouble),
                       at::zeros_like(whole[i])});
      }
    }
    RouterLosses losses(plain.step(), batch, axis.loss);
    plain.step().module_runner(&losses);
    const LossAt loss = [&](double times) {
      move(all, times);
      losses.begin();
      plain.evaluate(batch);
      return losses.value();
    };
    const double value = loss(0), along = kAlongRouterLoss * value;
    const std::map<std::string, at::Tensor> of_weights = losses.of_weights();
    at::Generator generator = at::detail::createCPUGenerator(with.seed);
    choose_changes(all, generator, along);
    // The routers' weights also go where the loss itself says, in case the gradients lack it.
    double squares = 0;
    for (const auto& [name, gradient] : of_weights)
      squares += gradient.square().sum().item<double>();
    for (std::size_t i = 0; i < all.size() && squares > 0; ++i)
      if (const auto found = of_weights.find(parameters[i].name); found != of_weights.end())
        all[i].change +=
            clamped(found->second.to(all[i].change.device()) * (along / squares), all[i].start);
    double computed = 0, products = 0;
    std::int64_t tensors = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      computed += (all[i].gradient * all[i].change).sum().item<double>();
      products += (whole[i] * all[i].change).abs().sum().item<double>();
      tensors += all[i].gradient.ne(0).any().item<bool>() ? 1 : 0;
    }
    const Measured found =
        measured(loss, kLossHalfUlps * kHalfUlp * value, kDifferenceHalfUlps * kHalfUlp * products);
    return {.loss = std::string(axis.name),
            .tensors = tensors,
            .value = value,
            .computed = computed,
            .measured = found.change,
            .bound = found.bound};
  }

  const CaseParts& parts_;
  const StepConfig config_;
  const workloads::Batch batch_;
  Stepped stepped_;
  double rounding_ = 0;  // of a loss
  int turn_ = 0;
  std::int64_t lines_ = 0;
};

}  // namespace

void run_derivative(const CaseParts& parts) {
  const c10::StreamGuard guard(parts.stream);
  parts.scope.enter(Phase::eager, "derivative", 0);
  Derivative(parts).run();
}

}  // namespace graphproof::suites
