#include "workloads/layers/fp8_weights.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "fixtures/tensors/torch.h"
#include "workloads/forward/forward_pass.h"

namespace graphproof::workloads {
namespace {

constexpr double kLargestE4m3 = 448;
// Makes the scale of a part of zeros finite, so that it stays zeros.
constexpr double kLeastLargest = 1e-30;

/// The linear layers of a layer, as the ends of their parameters' names.
constexpr std::array<std::string_view, 10> kLinears{
    ".attention.qkv.weight",  ".attention.projection.weight", ".mlp.up.weight",
    ".mlp.down.weight",       ".mlp.shared.up.weight",        ".mlp.shared.down.weight",
    ".mlp.experts.up.weight", ".mlp.experts.down.weight",     ".mamba.in.weight",
    ".mamba.out.weight"};

/// The values of the copy, with the gradient passed to the weight.
struct StraightThrough : torch::autograd::Function<StraightThrough> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& /*weight*/,
                            const at::Tensor& copy) {
    // A fused or delayed product returns an undefined gradient. As a tensor of zeros it would be
    // added to the main gradient.
    context->set_materialize_grads(false);
    return copy;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list& gradients) {
    return {gradients[0], at::Tensor()};
  }
};

}  // namespace

at::Tensor rounded_to_e4m3(const at::Tensor& weight, std::int64_t dimension, std::int64_t parts) {
  const at::NoGradGuard no_grad;
  const at::Tensor cut = weight.to(at::kFloat).unflatten(dimension, {parts, -1});
  std::vector<std::int64_t> of_part;  // all dimensions but those of experts and parts
  for (std::int64_t d = weight.dim() - 2; d < cut.dim(); ++d)
    if (d != dimension) of_part.push_back(d);
  const at::Tensor scale =
      kLargestE4m3 / cut.abs().amax(of_part, /*keepdim=*/true).clamp_min(kLeastLargest);
  const at::Tensor rounded = (cut * scale).to(at::kFloat8_e4m3fn).to(at::kFloat) / scale;
  return rounded.flatten(dimension, dimension + 1).to(weight.scalar_type());
}

Fp8Weights::Fp8Weights(const ModelConfig& config, const Layout& layout,
                       const Parameters& parameters, faults::FaultHooks& faults)
    : faults_(faults) {
  const auto options = parameters.all().front().tensor.options().requires_grad(false);
  first_ = at::zeros({}, options.dtype(at::kBool));
  made_ = at::zeros({layout.stage_layers(config), static_cast<std::int64_t>(kLinears.size())},
                    options.dtype(at::kLong));
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    if (!layout.holds(config, layer) || !config.rounds_weights(layer)) continue;
    const std::string of_layer = "param:layers." + std::to_string(layer);
    for (std::size_t p = 0; p < parameters.all().size(); ++p) {
      const auto& [name, weight] = parameters.all()[p];
      const auto linear = std::find_if(kLinears.begin(), kLinears.end(), [&](std::string_view one) {
        return name == of_layer + std::string(one);
      });
      if (linear == kLinears.end()) continue;
      const Shard& shard = parameters.shards()[p];
      const Rounded& made =
          rounded_
              .emplace(weight.unsafeGetTensorImpl(),
                       Rounded{.copy = at::zeros_like(weight, options),
                               .made = made_.select(0, layout.place(config, layer))
                                           .select(0, linear - kLinears.begin()),
                               .dimension = shard.expert ? shard.inner_dimension : shard.dimension,
                               .parts = shard.expert ? config.fp8_expert_parts : config.fp8_parts})
              .first->second;
      copies_.push_back({"fp8:" + name.substr(name.find(':') + 1), made.copy});
    }
  }
}

void Fp8Weights::begin_step() { made_.zero_(); }

void Fp8Weights::set_first_microbatch(bool first) { first_.fill_(first); }

at::Tensor Fp8Weights::in_place_of(const at::Tensor& weight, const ForwardPass& pass) const {
  const auto found = rounded_.find(weight.unsafeGetTensorImpl());
  if (found == rounded_.end()) return weight;
  const Rounded& rounded = found->second;
  // The graph of a part alone is replayed in other microbatches than the one it was captured in.
  const bool replayed_in_others = pass.recording && pass.runner && pass.runner->captures_parts();
  using faults::FirstMicrobatch;
  const FirstMicrobatch read = faults_.first_microbatch(
      weight, replayed_in_others ? FirstMicrobatch::on_device : FirstMicrobatch::on_host);
  if (read == FirstMicrobatch::none) return weight;
  if (!pass.again) make(rounded, weight, read, pass);
  // variable_data() has its own version counter: the next step makes the copy again in place, and a
  // graph does so in each microbatch with the same values, which autograd would reject.
  return StraightThrough::apply(weight, rounded.copy.variable_data());
}

void Fp8Weights::make(const Rounded& rounded, const at::Tensor& weight,
                      faults::FirstMicrobatch read, const ForwardPass& pass) const {
  const at::NoGradGuard no_grad;
  // Captured parts round in microbatches in which eager steps do not, so a comparison of operators
  // in order (suites/arms/taps.h) must not see the rounding. It sees the copy where it is used.
  const at::RecordFunctionGuard unrecorded(/*is_enabled=*/false);
  at::Tensor copy = rounded.copy, made = rounded.made;
  if (read == faults::FirstMicrobatch::on_device) {
    copy.copy_(at::where(first_, rounded_to_e4m3(weight, rounded.dimension, rounded.parts), copy));
    made.add_(first_);
  } else if (read == faults::FirstMicrobatch::on_host && pass.microbatch == 0) {
    copy.copy_(rounded_to_e4m3(weight, rounded.dimension, rounded.parts));
    made.add_(1);
  }
}

std::vector<fixtures::NamedTensor> Fp8Weights::tensors() const {
  std::vector<fixtures::NamedTensor> tensors{{"fp8:made", made_}};
  tensors.insert(tensors.end(), copies_.begin(), copies_.end());
  return tensors;
}

at::Tensor copies_made(const std::vector<fixtures::NamedTensor>& ledgers) {
  const auto made =
      std::find_if(ledgers.begin(), ledgers.end(),
                   [](const fixtures::NamedTensor& one) { return one.name == "fp8:made"; });
  if (made == ledgers.end()) throw std::logic_error("these ledgers have no fp8:made");
  return made->tensor.sum(1);
}

at::Tensor used_weight(const at::Tensor& weight, const ForwardPass& pass) {
  return pass.fp8_weights ? pass.fp8_weights->in_place_of(weight, pass) : weight;
}

}  // namespace graphproof::workloads
