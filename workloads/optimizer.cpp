#include "workloads/optimizer.h"

#include "fixtures/torch.h"

namespace graphproof::workloads {
namespace {

void append(std::vector<fixtures::NamedTensor>& to, const std::vector<fixtures::NamedTensor>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

bool decays(const fixtures::NamedTensor& parameter) {
  return parameter.tensor.dim() > 1 && !parameter.name.ends_with(".bias");
}

Optimizer::Optimizer(const ModelConfig& config, const Layout& layout, const Parameters& parameters,
                     const GradientBuffer& gradients, fixtures::Fault fault)
    : kind_(config.optimizer),
      parameters_(parameters),
      gradients_(gradients),
      fault_(std::move(fault)),
      decay_(config.weight_decay),
      rate_(at::zeros({}, gradients.flat().options())),
      updated_(parameters.all()) {
  const at::NoGradGuard no_grad;
  if (config.precision == Precision::fp16)
    scale_.emplace(config, rate_.device(), std::vector{layout.tp_group, layout.ep > 1 ? layout.ep_group : ""}, fault_);
  if (config.clip_grad) clip_.emplace(parameters, gradients, layout, fault_);
  if (parameters.all().front().tensor.scalar_type() != at::kFloat) {
    masters_.emplace(parameters, "state:master.");
    for (std::size_t i = 0; i < parameters.all().size(); ++i) {
      at::Tensor master = masters_->views()[i].tensor;
      master.copy_(parameters.all()[i].tensor);
    }
    updated_ = masters_->views();
    append(state_, masters_->views());
  }
  if (scale_) append(state_, scale_->state());
  if (clip_) state_.push_back({"state:clip.norm", clip_->norm()});
  if (kind_ != OptimizerKind::adam) return;
  first_.emplace(parameters, "state:adam.m.");
  second_.emplace(parameters, "state:adam.v.");
  direction_.emplace(parameters, "");
  step_ = at::zeros({}, rate_.options().dtype(at::kDouble));
  append(state_, first_->views());
  append(state_, second_->views());
  state_.push_back({"state:adam.step", step_});
}

void Optimizer::learning_rate(double rate) {
  host_rate_ = rate;
  rate_.fill_(rate);
}

at::Tensor Optimizer::current_rate() const {
  // M23 stands for an optimizer that takes the rate as a kernel argument: a capture freezes it. The arithmetic is the
  // same, so that only the value can differ.
  const at::Tensor rate = fault_.is("M23") ? at::full({}, host_rate_, rate_.options()) : rate_;
  return scale_ ? rate.masked_fill(scale_->found(), 0) : rate;
}

void Optimizer::step() {
  const at::NoGradGuard no_grad;
  if (scale_) scale_->unscale(gradients_.flat());
  if (clip_) clip_->clip();
  if (decay_) decay();
  if (kind_ == OptimizerKind::adam) return move_by_adam();
  if (!scale_) return subtract(current_rate(), gradients_);
  // A rate of zero alone would not do: what was found is not finite.
  masters_->flat().addcmul_(gradients_.flat().masked_fill(scale_->found(), 0), current_rate(), -1);
  round_parameters();
}

void Optimizer::move_by_adam() {
  at::Tensor g = gradients_.flat(), m = first_->flat(), v = second_->flat(), direction = direction_->flat();
  const at::Tensor skip = skipped();
  at::Tensor m_before, v_before;
  if (skip.defined()) {
    m_before = m.clone();
    v_before = v.clone();
  }
  // M24 stands for an optimizer that counts its steps on the host, as torch::optim::Adam does: a capture freezes the
  // number, and with it the bias correction.
  if (fault_.is("M24")) {
    step_.fill_(static_cast<double>(++host_step_));
  } else if (skip.defined()) {
    step_.add_(skip.logical_not());
  } else {
    step_.add_(1);
  }
  m.mul_(kAdam.beta1).add_(g, 1 - kAdam.beta1);
  v.mul_(kAdam.beta2).addcmul_(g, g, 1 - kAdam.beta2);
  // 1 - b2^step loses half its digits in fp32 in the first steps.
  const at::Tensor first_correction = 1 - at::pow(kAdam.beta1, step_), second_correction = 1 - at::pow(kAdam.beta2, step_);
  const at::Tensor denominator = (v.sqrt() / second_correction.sqrt().to(at::kFloat)).add_(kAdam.epsilon);
  at::div_out(direction, m, denominator);
  at::Tensor rate = (current_rate() / first_correction).to(at::kFloat);
  if (skip.defined()) {
    m.copy_(at::where(skip, m_before, m));
    v.copy_(at::where(skip, v_before, v));
    direction.masked_fill_(skip, 0);
    rate = rate.masked_fill(skip, 0);  // before the first step that is taken, 0 / 0
  }
  subtract(rate, *direction_);
}

void Optimizer::decay() {
  const at::Tensor rate = current_rate();
  for (const fixtures::NamedTensor& moved : updated_) {
    const at::Tensor parameter = moved.tensor;
    if (decays(moved)) parameter.addcmul_(parameter, rate, -kWeightDecay);
  }
}

void Optimizer::subtract(const at::Tensor& rate, const ParameterBuffer& direction) {
  if (!masters_) {
    for (std::size_t i = 0; i < parameters_.all().size(); ++i) {
      at::Tensor parameter = parameters_.all()[i].tensor;
      parameter.addcmul_(direction.views()[i].tensor, rate, -1);
    }
    return;
  }
  masters_->flat().addcmul_(direction.flat(), rate, -1);
  round_parameters();
}

void Optimizer::round_parameters() {
  for (std::size_t i = 0; i < parameters_.all().size(); ++i) {
    at::Tensor parameter = parameters_.all()[i].tensor;
    parameter.copy_(masters_->views()[i].tensor);
  }
}

}  // namespace graphproof::workloads
