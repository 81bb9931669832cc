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
constexpr std::array<std::string_view, 14> kLinears{
    ".attention.qkv.weight",     ".attention.projection.weight", ".mlp.up.weight",
    ".mlp.down.weight",          ".mlp.shared.up.weight",        ".mlp.shared.down.weight",
    ".mlp.experts.up.weight",    ".mlp.experts.down.weight",     ".mamba.in.weight",
    ".mamba.out.weight",         ".attention.q_down.weight",     ".attention.q_up.weight",
    ".attention.kv_down.weight", ".attention.kv_up.weight"};

/// Whether a weight is split over tensor parallel ranks, if there are any.
bool is_split(const std::string& parameter) { return !parameter.ends_with("_down.weight"); }

/// The entry of kLinears that a parameter of this layer is; the end if it is none.
auto linear_of(const std::string& parameter, const ModelConfig& config, std::int64_t layer) {
  const std::string of_layer = "param:" + config.layer_name(layer);
  return std::find_if(kLinears.begin(), kLinears.end(), [&](std::string_view one) {
    return parameter == of_layer + std::string(one);
  });
}

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

namespace {

/// A weight of this rank that is used in 8 bits, with the name of its parameter.
struct Used {
  Fp8Scaling::Weight weight;
  std::string name;
  Shard shard;
};

/// Those of all layers of this stage, layer by layer.
std::vector<Used> used_in_8_bits(const ModelConfig& config, const Layout& layout,
                                 const Parameters& parameters, const Parameters& frozen) {
  std::vector<Used> found;
  for (std::int64_t layer = 0; layer < config.first_encoder_layer() + config.encoder_layers;
       ++layer) {
    if (!layout.holds(config, layer) || !config.uses_fp8(layer)) continue;
    for (const Parameters* of : {&parameters, &frozen})
      for (std::size_t p = 0; p < of->all().size(); ++p) {
        const auto& [name, weight] = of->all()[p];
        if (linear_of(name, config, layer) == kLinears.end()) continue;
        const Shard& shard = of->shards()[p];
        const std::int64_t experts = shard.expert ? weight.size(0) : 1;
        found.push_back({{.parameter = weight, .layer = layer, .experts = experts}, name, shard});
      }
  }
  return found;
}

/// The same memory with version counters of its own.
BlockScaled as_variables(const BlockScaled& x) {
  const at::Tensor& of_tensor = x.scales.of_tensor;
  return {x.format,
          x.numbers.variable_data(),
          {x.scales.of_block.variable_data(),
           of_tensor.defined() ? of_tensor.variable_data() : at::Tensor()}};
}
BlockOperand as_variables(const BlockOperand& x) {
  return {.rows = as_variables(x.rows), .columns = as_variables(x.columns)};
}

std::vector<Fp8Scaling::Weight> weights_of(const std::vector<Used>& used) {
  std::vector<Fp8Scaling::Weight> weights;
  for (const Used& one : used) weights.push_back(one.weight);
  return weights;
}

}  // namespace

Fp8Weights::Fp8Weights(const ModelConfig& config, const Layout& layout,
                       const Parameters& parameters, const Parameters& frozen,
                       faults::FaultHooks& faults)
    : faults_(faults),
      products_(is_quantized(config.precision)),
      kept_(config.fp8_weights),
      scaling_(config, layout, weights_of(used_in_8_bits(config, layout, parameters, frozen)),
               parameters.all().front().tensor.device(), faults) {
  const auto options = parameters.all().front().tensor.options().requires_grad(false);
  if (config.precision == Precision::mxfp8) blocks_ = BlockFormat::mxfp8;
  if (config.precision == Precision::nvfp4) {
    blocks_ = BlockFormat::nvfp4;
    hadamard_ = hadamard_with_signs(options.device());
  }
  if (kept_) {
    first_ = at::zeros({}, options.dtype(at::kBool));
    made_ = at::zeros(
        {layout.stage_layers(config) + layout.mtp_layers(config) + layout.encoder_layers(config),
         static_cast<std::int64_t>(kLinears.size())},
        options.dtype(at::kLong));
  }
  for (const auto& [used, name, shard] : used_in_8_bits(config, layout, parameters, frozen)) {
    Rounded rounded{.copy = {},
                    .inverse = {},
                    .made = {},
                    .blocks = {},
                    .dimension = shard.expert ? shard.inner_dimension : shard.dimension,
                    .parts = shard.expert     ? config.fp8_expert_parts
                             : is_split(name) ? config.fp8_parts
                                              : 1};
    if (kept_) {
      const at::Tensor zeros = at::zeros_like(used.parameter, options);
      const std::string copy_name = "fp8:" + name.substr(name.find(':') + 1);
      rounded.made = made_.select(0, layout.place(config, used.layer))
                         .select(0, linear_of(name, config, used.layer) - kLinears.begin());
      if (blocks_) {
        keep_blocks(rounded, copy_name, zeros);
      } else {
        rounded.copy = products_ ? zeros.to(at::kFloat8_e4m3fn) : zeros;
        copies_.push_back({copy_name, rounded.copy});
      }
      if (products_ && !blocks_) {
        rounded.inverse = at::zeros({used.experts}, options.dtype(at::kFloat));
        copies_.push_back({copy_name + ".inverse", rounded.inverse});
      }
    }
    rounded_.emplace(used.parameter.unsafeGetTensorImpl(), std::move(rounded));
  }
}

BlockCasts Fp8Weights::block_casts(const at::Tensor& weight) const {
  return {.format = *blocks_, .hadamard = hadamard_, .parameter = weight, .faults = &faults_};
}

/// Makes the copies of a weight, which hold those of zeros until its first cast.
void Fp8Weights::keep_blocks(Rounded& rounded, const std::string& name, const at::Tensor& zeros) {
  const BlockShape shape = *blocks_ == BlockFormat::nvfp4 ? BlockShape::square : BlockShape::row;
  rounded.blocks = {.rows = block_scaled(zeros, *blocks_, shape),
                    .columns = block_scaled(zeros.transpose(-1, -2), *blocks_, shape)};
  for (const auto& [of, copy] : {std::pair{name, rounded.blocks.rows},
                                 std::pair{name + ".columns", rounded.blocks.columns}}) {
    // Each byte can be a number of e4m3, but no cast makes one of its two bytes that are none.
    copies_.push_back({of, *blocks_ == BlockFormat::mxfp8 ? copy.numbers.view(at::kFloat8_e4m3fn)
                                                          : copy.numbers});
    copies_.push_back({of + ".scales", copy.scales.of_block});
    if (copy.scales.of_tensor.defined())
      copies_.push_back({of + ".tensor_scale", copy.scales.of_tensor});
  }
}

void Fp8Weights::begin_step() {
  if (kept_) made_.zero_();
  scaling_.begin_step();
}

void Fp8Weights::set_first_microbatch(bool first) {
  if (kept_) first_.fill_(first);
}

UsedWeight Fp8Weights::in_place_of(const at::Tensor& weight, const ForwardPass& pass) const {
  const auto found = rounded_.find(weight.unsafeGetTensorImpl());
  if (found == rounded_.end()) return {weight};
  const Rounded& rounded = found->second;
  UsedWeight used{weight};
  if (blocks_) {
    used.block_casts = block_casts(weight);
  } else if (products_) {
    const auto cast = [&](Fp8Scaling::Operand operand) {
      return scaling_.cast(weight, operand, pass.fp8_kept, pass.again);
    };
    used.input = cast(Fp8Scaling::Operand::input);
    used.gradient = cast(Fp8Scaling::Operand::gradient);
  }
  if (!kept_ && blocks_) {
    used.blocks = used.block_casts.cast(weight.detach(), BlockCasts::Operand::weight);
    return used;
  }
  if (!kept_) {
    used.fp8 = fresh(rounded, weight, /*noted=*/{}, pass);
    return used;
  }
  // The graph of a part alone is replayed in other microbatches than the one it was captured in.
  const bool replayed_in_others = pass.recording && pass.runner && pass.runner->captures_parts();
  using faults::FirstMicrobatch;
  const FirstMicrobatch read = faults_.first_microbatch(
      weight, replayed_in_others ? FirstMicrobatch::on_device : FirstMicrobatch::on_host);
  if (read == FirstMicrobatch::none) return {weight};
  if (!pass.again) make(rounded, weight, read, pass);
  // variable_data() has its own version counter: the next step makes the copy again in place, and a
  // graph does so in each microbatch with the same values, which autograd would reject.
  if (blocks_)
    used.blocks = as_variables(rounded.blocks);
  else if (products_)
    used.fp8 = {rounded.copy.variable_data(), rounded.inverse.variable_data()};
  else
    used.tensor = StraightThrough::apply(weight, rounded.copy.variable_data());
  return used;
}

/// The numbers of a copy. `noted`: as in Fp8Cast. `inverse` is undefined without products in fp8.
Fp8Tensor Fp8Weights::fresh(const Rounded& rounded, const at::Tensor& weight,
                            const at::Tensor& noted, const ForwardPass& pass) const {
  if (!products_) return {rounded_to_e4m3(weight, rounded.dimension, rounded.parts), {}};
  Fp8Cast cast = scaling_.cast(weight, Fp8Scaling::Operand::weight, pass.fp8_kept, pass.again);
  cast.noted = noted;
  return to_fp8(weight.detach(), at::kFloat8_e4m3fn, cast);
}

void Fp8Weights::make(const Rounded& rounded, const at::Tensor& weight,
                      faults::FirstMicrobatch read, const ForwardPass& pass) const {
  const at::NoGradGuard no_grad;
  // Captured parts round in microbatches in which eager steps do not, so a comparison of operators
  // in order (suites/arms/taps.h) must not see the rounding. It sees the copy where it is used.
  const at::RecordFunctionGuard unrecorded(/*is_enabled=*/false);
  const bool on_device = read == faults::FirstMicrobatch::on_device;
  if (!on_device && !(read == faults::FirstMicrobatch::on_host && pass.microbatch == 0)) return;
  const auto write = [&](at::Tensor to, const at::Tensor& from) {
    // Through fp32, which holds every number of 8 bits: where() does not take these types.
    to.copy_(on_device ? at::where(first_, from.to(at::kFloat), to.to(at::kFloat)) : from);
  };
  if (blocks_) {
    const std::vector<at::Tensor>
        kept = rounded.blocks.tensors(),
        made = block_casts(weight).cast(weight, BlockCasts::Operand::weight).tensors();
    for (std::size_t i = 0; i < kept.size(); ++i) write(kept[i], made[i]);
  } else {
    const Fp8Tensor made = fresh(rounded, weight, on_device ? first_ : at::Tensor(), pass);
    write(rounded.copy, made.values);
    if (products_) write(rounded.inverse, made.inverse);
  }
  at::Tensor count = rounded.made;
  if (on_device)
    count.add_(first_);
  else
    count.add_(1);
}

std::vector<fixtures::NamedTensor> Fp8Weights::tensors() const {
  std::vector<fixtures::NamedTensor> tensors = scaling_.ledgers();
  if (kept_) tensors.push_back({"fp8:made", made_});
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

ForwardPass with_kept_scales(const ForwardPass& pass) {
  ForwardPass kept = pass;
  // A part inside a part that is recomputed keeps what the outer one has kept.
  if (pass.fp8_weights && !pass.fp8_kept.defined())
    kept.fp8_kept = pass.fp8_weights->scaling().keep();
  return kept;
}

UsedWeight used_weight(const at::Tensor& weight, const ForwardPass& pass) {
  return pass.fp8_weights ? pass.fp8_weights->in_place_of(weight, pass) : UsedWeight{weight};
}

}  // namespace graphproof::workloads
