#include "workloads/layers/fp8_scaling.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "fixtures/comm/collectives.h"
#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {
namespace {

// Makes the scale of a tensor of zeros finite, so that it stays zeros.
constexpr double kLeastAmax = 1e-30;

double largest_of(at::ScalarType type) {
  return type == at::kFloat8_e5m2 ? std::numeric_limits<c10::Float8_e5m2>::max()
                                  : std::numeric_limits<c10::Float8_e4m3fn>::max();
}

at::Tensor of_expert_or_none(const at::Tensor& tensor, std::int64_t expert) {
  return tensor.defined() ? tensor.narrow(0, expert, 1) : tensor;
}

std::string name_of(Fp8Scaling::Direction direction) {
  return direction == Fp8Scaling::Direction::forward ? "forward" : "backward";
}

}  // namespace

Fp8Cast Fp8Cast::of_expert(std::int64_t expert) const {
  return {of_expert_or_none(scale, expert), of_expert_or_none(amax, expert), noted};
}

Fp8Tensor Fp8Tensor::of_expert(std::int64_t expert) const {
  return {values.select(0, expert), inverse.narrow(0, expert, 1)};
}

Fp8Tensor to_fp8(const at::Tensor& x, at::ScalarType type, const Fp8Cast& cast) {
  const at::NoGradGuard no_grad;
  const double largest = largest_of(type);
  const bool experts = x.dim() == 3;
  const at::Tensor wide = x.to(at::kFloat);
  at::Tensor scale = cast.scale;
  if (!scale.defined() || cast.amax.defined()) {
    // An expert without tokens has no largest element.
    at::Tensor amax = x.numel() == 0 ? at::zeros({experts ? x.size(0) : 1}, wide.options())
                      : experts      ? wide.abs().amax({1, 2})
                                     : wide.abs().amax().view({1});
    if (!scale.defined()) scale = largest / amax.clamp_min(kLeastAmax);
    if (cast.amax.defined()) {
      if (cast.noted.defined()) amax = amax * cast.noted;
      at::Tensor noted = cast.amax;
      noted.copy_(at::maximum(noted, amax));
    }
  }
  const at::Tensor factor = experts ? scale.view({-1, 1, 1}) : scale;
  return {(wide * factor).clamp(-largest, largest).to(type), scale.reciprocal()};
}

Fp8Scaling::Fp8Scaling(const ModelConfig& config, const Layout& layout,
                       const std::vector<Weight>& weights, at::Device device,
                       faults::FaultHooks& faults)
    : faults_(faults),
      group_(layout.amax_group),
      delayed_(config.precision == Precision::fp8_delayed) {
  if (!delayed_) return;
  std::array<std::int64_t, 2> casts{};  // by Direction
  for (std::int64_t chunk = 0; chunk < layout.vpp; ++chunk) {
    for (Scales& one : scales_)
      one.first_of_chunk.push_back(casts[static_cast<std::size_t>(&one - scales_.data())]);
    for (const Weight& weight : weights) {
      if (layout.chunk_of(config, weight.layer) != chunk) continue;
      places_[weight.parameter.unsafeGetTensorImpl()] = {.input = casts[0],
                                                         .weight = casts[0] + weight.experts,
                                                         .gradient = casts[1],
                                                         .experts = weight.experts,
                                                         .chunk = chunk};
      casts[0] += 2 * weight.experts;
      casts[1] += weight.experts;
    }
  }
  const auto options = at::TensorOptions().device(device).dtype(at::kFloat);
  for (std::size_t d = 0; d < 2; ++d) {
    scales_[d].first_of_chunk.push_back(casts[d]);
    scales_[d].largest = largest_of(d == 0 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2);
    scales_[d].scale = at::ones({casts[d]}, options);
    scales_[d].history = at::zeros({kHistory, casts[d]}, options);
    scales_[d].amax = at::zeros({casts[d]}, options);
  }
  updates_ = at::zeros({2, layout.vpp}, options.dtype(at::kLong));
  reductions_ = at::zeros_like(updates_);
}

void Fp8Scaling::begin_step() {
  if (!delayed_) return;
  updates_.zero_();
  reductions_.zero_();
}

Fp8Cast Fp8Scaling::cast(const at::Tensor& weight, Operand operand, const at::Tensor& kept,
                         bool again) const {
  if (!delayed_) return {};
  const Places& places = places_.at(weight.unsafeGetTensorImpl());
  const bool backward = operand == Operand::gradient;
  const Scales& scales = scales_[backward ? 1 : 0];
  const std::int64_t first = backward                     ? places.gradient
                             : operand == Operand::weight ? places.weight
                                                          : places.input;
  const bool notes = !evaluating_ && (backward || !again);
  if (notes && operand == Operand::input)
    faults_.before_fp8_input([&] { reduce(Direction::forward, places.chunk); });
  const at::Tensor& from = kept.defined() && !backward ? kept : scales.scale;
  return {.scale = faults_.scalar(faults::Scalar::fp8_scale, from.narrow(0, first, places.experts)),
          .amax = notes ? scales.amax.narrow(0, first, places.experts) : at::Tensor(),
          .noted = {}};
}

at::Tensor Fp8Scaling::keep() const {
  const at::NoGradGuard no_grad;
  return delayed_ ? scales_[0].scale.clone() : at::Tensor();
}

/// Makes what the casts of a chunk noted the largest over the ranks of the stage.
void Fp8Scaling::reduce(Direction direction, std::int64_t chunk) const {
  const at::NoGradGuard no_grad;
  const auto d = static_cast<std::size_t>(direction), c = static_cast<std::size_t>(chunk);
  const Scales& scales = scales_[d];
  const std::int64_t first = scales.first_of_chunk[c], casts = scales.first_of_chunk[c + 1] - first;
  at::Tensor amax = scales.amax.narrow(0, first, casts);
  // The largest of all ranks' numbers. A sum over ranks is the only reduction that every transport
  // has, so they are gathered.
  if (comm::group_size(group_) > 1)
    amax.copy_(comm::all_gather(amax.clone(), group_).view({-1, casts}).amax(0));
  reductions_.select(0, static_cast<std::int64_t>(d)).select(0, chunk).add_(1);
}

void Fp8Scaling::leave(Direction direction, std::int64_t chunk, std::int64_t microbatch) {
  if (!delayed_ || !faults_.leaves_fp8_context(microbatch)) return;
  const at::NoGradGuard no_grad;
  const auto d = static_cast<std::size_t>(direction), c = static_cast<std::size_t>(chunk);
  const Scales& scales = scales_[d];
  const std::int64_t first = scales.first_of_chunk[c], casts = scales.first_of_chunk[c + 1] - first;
  if (casts == 0) return;
  reduce(direction, chunk);
  at::Tensor amax = scales.amax.narrow(0, first, casts),
             history = scales.history.narrow(1, first, casts),
             scale = scales.scale.narrow(0, first, casts);
  history.copy_(at::cat({amax.unsqueeze(0), history.narrow(0, 0, kHistory - 1)}));
  const at::Tensor largest = history.amax(0);
  // As in Transformer Engine, a tensor that was zero for the whole history keeps its scale.
  scale.copy_(at::where(largest.gt(0), scales.largest / largest.clamp_min(kLeastAmax), scale));
  amax.zero_();
  updates_.select(0, static_cast<std::int64_t>(d)).select(0, chunk).add_(1);
}

std::vector<fixtures::NamedTensor> Fp8Scaling::state() const {
  std::vector<fixtures::NamedTensor> state;
  if (!delayed_) return state;
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    const Scales& scales = scales_[static_cast<std::size_t>(direction)];
    if (scales.scale.numel() == 0) continue;
    const std::string name = "state:fp8." + name_of(direction);
    state.push_back({name + ".scale", scales.scale});
    state.push_back({name + ".history", scales.history});
    state.push_back({name + ".amax", scales.amax});
  }
  return state;
}

std::vector<fixtures::NamedTensor> Fp8Scaling::ledgers() const {
  if (!delayed_) return {};
  return {{"fp8:updates", updates_}, {"fp8:reductions", reductions_}};
}

}  // namespace graphproof::workloads
