#include "workloads/training/optimizer.h"

#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {
namespace {

/// Calls visit(part, mine) for each bucket: the elements of the parameters that this rank owns, and
/// their range among all elements that it owns. By bucket and not by parameter, so that all ranks
/// issue the same operators on the same shapes, because their graphs are compared.
template <class Visit>
void for_each_own(const ParameterShards& shards, Visit visit) {
  std::int64_t place = 0;
  for (const Bucket& bucket : shards.buckets()) {
    const FlatRange own = bucket.own();
    visit(own.of(shards.flat()), FlatRange{.begin = place, .elements = own.elements});
    place += own.elements;
  }
}

void append(std::vector<fixtures::NamedTensor>& to,
            const std::vector<fixtures::NamedTensor>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// The name without the prefix before the colon.
std::string bare(const std::string& name) { return name.substr(name.find(':') + 1); }

}  // namespace

bool decays(const fixtures::NamedTensor& parameter) {
  return parameter.tensor.dim() > 1 && !parameter.name.ends_with(".bias");
}

Optimizer::Optimizer(const ModelConfig& config, const Layout& layout, const Parameters& parameters,
                     const GradientBuffer& gradients, faults::FaultHooks& faults,
                     const ParameterShards* shards)
    : kind_(config.optimizer),
      parameters_(parameters),
      gradients_(gradients),
      faults_(faults),
      shards_(shards),
      decay_(config.weight_decay),
      gather_(shards && !config.overlap_param_gather),
      rate_(at::zeros({}, gradients.flat().options())) {
  const at::NoGradGuard no_grad;
  // The group of the ranks whose gradients this rank does not hold, and which may be the only ones
  // with an infinite gradient.
  const std::string others = shards ? layout.replica_group() : layout.ep > 1 ? layout.ep_group : "";
  if (config.precision == Precision::fp16)
    scale_.emplace(config, rate_.device(),
                   std::vector{layout.tp_group, others, layout.etp > 1 ? layout.etp_group : "",
                               layout.pp_group},
                   faults_);
  if (config.clip_grad) clip_.emplace(parameters, gradients, layout, shards != nullptr, faults_);
  if (at::elementSize(parameters.all().front().tensor.scalar_type()) < 4) begin_masters();
  if (scale_) append(state_, scale_->state());
  if (clip_) state_.push_back({"state:clip.norm", clip_->norm()});
  if (kind_ == OptimizerKind::adam) {
    first_ = make_state("state:adam.m.");
    second_ = make_state("state:adam.v.");
    direction_ = make_state("");
    step_ = at::zeros({}, rate_.options().dtype(at::kDouble));
    append(state_, first_->views);
    append(state_, second_->views);
    state_.push_back({"state:adam.step", step_});
  }
  describe();
  if (shards && decay_) {
    decayed_ = at::zeros({shards->own_elements()}, rate_.options());
    for (const ParameterShards::Piece& piece : shards->pieces())
      if (decays(parameters.all()[piece.parameter])) piece.own.of(decayed_).fill_(1);
  }
}

Optimizer::State Optimizer::make_state(const std::string& prefix) const {
  if (!shards_) {
    const ParameterBuffer buffer(parameters_, prefix);
    return {.flat = buffer.flat(), .views = buffer.views()};
  }
  State state{.flat = at::zeros({shards_->own_elements()}, rate_.options()), .views = {}};
  for (const ParameterShards::Piece& piece : shards_->pieces())
    state.views.push_back(
        {prefix + bare(parameters_.all()[piece.parameter].name), piece.own.of(state.flat)});
  return state;
}

void Optimizer::begin_masters() {
  masters_ = make_state("state:master.");
  if (shards_)
    masters_->flat.copy_(shards_->own(shards_->flat()));
  else
    for (std::size_t i = 0; i < parameters_.all().size(); ++i)
      masters_->views[i].tensor.copy_(parameters_.all()[i].tensor);
  append(state_, masters_->views);
}

void Optimizer::describe() {
  const std::size_t count = shards_ ? shards_->pieces().size() : parameters_.all().size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t parameter = shards_ ? shards_->pieces()[i].parameter : i;
    const fixtures::NamedTensor& whole = parameters_.all()[parameter];
    const auto part = [&](const at::Tensor& flat) { return shards_->pieces()[i].flat.of(flat); };
    updated_.push_back(
        {.moved = masters_  ? masters_->views[i]
                  : shards_ ? fixtures::NamedTensor{whole.name, part(shards_->flat())}
                            : whole,
         .gradient = shards_ ? part(gradients_.flat()) : gradients_.views()[i].tensor,
         .m = first_ ? first_->views[i].tensor : at::Tensor(),
         .v = second_ ? second_->views[i].tensor : at::Tensor(),
         .decays = decays(whole),
         .expert = parameters_.shards()[parameter].expert});
  }
}

void Optimizer::learning_rate(double rate) { rate_.fill_(rate); }

at::Tensor Optimizer::current_rate() const {
  const at::Tensor rate = used(faults::Scalar::learning_rate, rate_);
  return scale_ ? rate.masked_fill(scale_->found(), 0) : rate;
}

void Optimizer::step() {
  const at::NoGradGuard no_grad;
  if (scale_) scale_->unscale(gradients_.flat());
  if (clip_) clip_->clip();
  if (decay_) decay();
  if (kind_ == OptimizerKind::adam)
    move_by_adam();
  else
    move_by_gradient();
  if (masters_) round_parameters();
  if (gather_) gather_parameters();
}

void Optimizer::move_by_gradient() {
  const at::Tensor rate = current_rate(), g = own(gradients_.flat());
  if (!masters_ && shards_)
    return for_each_own(*shards_, [&](const at::Tensor& part, FlatRange mine) {
      part.addcmul_(mine.of(g), rate, -1);
    });
  if (!masters_) {
    for (const Updated& updated : updated_)
      at::Tensor(updated.moved.tensor).addcmul_(updated.gradient, rate, -1);
    return;
  }
  // A rate of zero would not suffice, because zero times an infinite gradient is NaN.
  masters_->flat.addcmul_(scale_ ? g.masked_fill(scale_->found(), 0) : g, rate, -1);
}

void Optimizer::move_by_adam() {
  const at::Tensor g = own(gradients_.flat());
  at::Tensor m = first_->flat, v = second_->flat, direction = direction_->flat;
  const at::Tensor skip = skipped();
  at::Tensor m_before, v_before;
  if (skip.defined()) {
    m_before = m.clone();
    v_before = v.clone();
  }
  if (skip.defined())
    step_.add_(skip.logical_not());
  else
    step_.add_(1);
  const at::Tensor step = used(faults::Scalar::adam_step, step_);
  m.mul_(kAdam.beta1).add_(g, 1 - kAdam.beta1);
  v.mul_(kAdam.beta2).addcmul_(g, g, 1 - kAdam.beta2);
  // In fp64, because 1 - b2^step loses half of its digits in fp32 in the first steps.
  const at::Tensor first_correction = 1 - at::pow(kAdam.beta1, step),
                   second_correction = 1 - at::pow(kAdam.beta2, step);
  const at::Tensor denominator =
      (v.sqrt() / second_correction.sqrt().to(at::kFloat)).add_(kAdam.epsilon);
  at::div_out(direction, m, denominator);
  at::Tensor rate = (current_rate() / first_correction).to(at::kFloat);
  if (skip.defined()) {
    m.copy_(at::where(skip, m_before, m));
    v.copy_(at::where(skip, v_before, v));
    direction.masked_fill_(skip, 0);
    rate = rate.masked_fill(skip, 0);  // until the first step is taken the quotient is 0 / 0
  }
  if (masters_) {
    masters_->flat.addcmul_(direction, rate, -1);
    return;
  }
  if (shards_)
    return for_each_own(*shards_, [&](const at::Tensor& part, FlatRange mine) {
      part.addcmul_(mine.of(direction), rate, -1);
    });
  for (std::size_t i = 0; i < updated_.size(); ++i)
    at::Tensor(updated_[i].moved.tensor).addcmul_(direction_->views[i].tensor, rate, -1);
}

void Optimizer::decay() {
  const at::Tensor rate = current_rate();
  if (masters_ && shards_) {
    masters_->flat.addcmul_(masters_->flat * decayed_, rate, -kWeightDecay);
    return;
  }
  if (shards_)
    return for_each_own(*shards_, [&](const at::Tensor& part, FlatRange mine) {
      part.addcmul_(part * mine.of(decayed_), rate, -kWeightDecay);
    });
  for (const Updated& updated : updated_) {
    const at::Tensor moved = updated.moved.tensor;
    if (updated.decays) moved.addcmul_(moved, rate, -kWeightDecay);
  }
}

void Optimizer::round_parameters() {
  if (shards_)
    return for_each_own(*shards_, [&](const at::Tensor& part, FlatRange mine) {
      part.copy_(mine.of(masters_->flat));
    });
  for (std::size_t i = 0; i < updated_.size(); ++i) {
    at::Tensor parameter = parameters_.all()[i].tensor;
    parameter.copy_(masters_->views[i].tensor);
  }
}

void Optimizer::gather_parameters() {
  for (const Bucket& bucket : shards_->buckets()) shards_->gather(bucket);
}

}  // namespace graphproof::workloads
