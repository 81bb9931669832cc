#include "workloads/optimizer.h"

#include "fixtures/torch.h"

namespace graphproof::workloads {
namespace {

void append(std::vector<fixtures::NamedTensor>& to, const std::vector<fixtures::NamedTensor>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

Optimizer::Optimizer(OptimizerKind kind, const Parameters& parameters, const GradientBuffer& gradients,
                     fixtures::Fault fault)
    : kind_(kind),
      parameters_(parameters),
      gradients_(gradients),
      fault_(std::move(fault)),
      rate_(at::zeros({}, gradients.flat().options())),
      updated_(parameters.all()) {
  const at::NoGradGuard no_grad;
  if (parameters.all().front().tensor.scalar_type() != at::kFloat) {
    masters_.emplace(parameters, "state:master.");
    for (std::size_t i = 0; i < parameters.all().size(); ++i) {
      at::Tensor master = masters_->views()[i].tensor;
      master.copy_(parameters.all()[i].tensor);
    }
    updated_ = masters_->views();
    append(state_, masters_->views());
  }
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
  return fault_.is("M23") ? at::full({}, host_rate_, rate_.options()) : rate_;
}

void Optimizer::step() {
  const at::NoGradGuard no_grad;
  if (kind_ == OptimizerKind::sgd) return subtract(current_rate(), gradients_);

  // M24 stands for an optimizer that counts its steps on the host, as torch::optim::Adam does: a capture freezes the
  // number, and with it the bias correction.
  if (fault_.is("M24")) {
    step_.fill_(static_cast<double>(++host_step_));
  } else {
    step_.add_(1);
  }
  const at::Tensor g = gradients_.flat();
  at::Tensor m = first_->flat(), v = second_->flat(), direction = direction_->flat();
  m.mul_(kAdam.beta1).add_(g, 1 - kAdam.beta1);
  v.mul_(kAdam.beta2).addcmul_(g, g, 1 - kAdam.beta2);
  // 1 - b2^step loses half its digits in fp32 in the first steps.
  const at::Tensor first_correction = 1 - at::pow(kAdam.beta1, step_), second_correction = 1 - at::pow(kAdam.beta2, step_);
  const at::Tensor denominator = (v.sqrt() / second_correction.sqrt().to(at::kFloat)).add_(kAdam.epsilon);
  at::div_out(direction, m, denominator);
  subtract((current_rate() / first_correction).to(at::kFloat), *direction_);
}

void Optimizer::subtract(const at::Tensor& rate, const ParameterBuffer& direction) {
  if (!masters_) {
    for (std::size_t i = 0; i < parameters_.all().size(); ++i) {
      at::Tensor parameter = parameters_.all()[i].tensor;
      parameter.addcmul_(direction.views()[i].tensor, rate, -1);
    }
    return;
  }
  at::Tensor masters = masters_->flat();
  masters.addcmul_(direction.flat(), rate, -1);
  for (std::size_t i = 0; i < parameters_.all().size(); ++i) {
    at::Tensor parameter = parameters_.all()[i].tensor;
    parameter.copy_(masters_->views()[i].tensor);
  }
}

}  // namespace graphproof::workloads
