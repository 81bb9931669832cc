#include "suites/case/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include "reports/record/text/message.h"

namespace graphproof::suites {

at::Tensor own_shard(const at::Tensor& full, at::IntArrayRef shape, const workloads::Shard& shard) {
  const at::Tensor own = shard.of(full);
  if (own.sizes() == shape) return own;
  std::ostringstream shapes;
  shapes << "part " << shard.index << " of " << shard.count << " of shape " << full.sizes()
         << " has shape " << own.sizes();
  std::ostringstream wanted;
  wanted << shape << ", the parallel model's";
  throw record::Error(
      {.what = "the shard of a full tensor",
       .got = shapes.str(),
       .want = wanted.str(),
       .why = "the single-rank model and the parallel one must hold the same parameters",
       .next = "compare Parameters::create in both layouts"});
}

namespace {

// In standard deviations; random errors exceed it less than once in a thousand sums.
constexpr double kConfidence = 4;
// The difference of two runs that round is sqrt(2) times the error of one of them; this is about
// twice that.
constexpr double kRounding = 3;

std::int64_t longest_sum(const workloads::ModelConfig& model) {
  const std::int64_t tokens = model.microbatches * model.microbatch_size * model.seq_length;
  return std::max({model.hidden, model.ffn, model.vocab, model.seq_length, tokens});
}

// A sum of n products in another order differs by at most n half ulps of the sum of absolute
// values, and by about sqrt(n) of them if errors have no common sign (Higham and Mary 2019,
// doi 10.1137/18M1226312). A bound proportional to n would hide real defects in large models.
double fp32_sum_rounding(const workloads::ModelConfig& model) {
  return kConfidence * std::sqrt(static_cast<double>(longest_sum(model))) * std::ldexp(1.0, -24);
}

// Multiplying by the number of chained sums assumes the worst direction for each.
ReferenceBound fp32_bound(const workloads::ModelConfig& model) {
  const std::int64_t longest = longest_sum(model);
  // In the forward a layer chains nine sums (two norms, four products of attention, its softmax,
  // two products of the MLP), with experts two more (the router, the sum over a token's experts),
  // and the embedding and output layers four. The backward has twice as many. A layer norm has one
  // more sum.
  const std::int64_t means = model.normalization == workloads::Normalization::LayerNorm ? 1 : 0;
  // A vision encoder has layers of its own, and its patch embedding, norm and projection.
  const bool sees = model.encoder_layers > 0;
  const std::int64_t of_encoder =
      sees ? 9 * model.encoder_layers + 3 + means * (2 * model.encoder_layers + 1) : 0;
  // Latents add a product and a norm. A layer of multi-token prediction has a layer's sums, two
  // more norms and a projection, and its loss is one more sum.
  const std::int64_t latents = model.multi_latent_attention ? 1 : 0,
                     predictions = model.mtp_num_layers;
  const std::int64_t of_layer = (model.experts > 0 ? 11 : 9) + 2 * latents;
  const std::int64_t chained =
      3 * (of_layer * model.layers + 4 + means * ((2 + latents) * model.layers + 1) + of_encoder +
           predictions * (of_layer + 4 + means * (4 + latents)));
  std::ostringstream why;
  why << "fp32 sums of up to " << longest << " products in another order: " << kConfidence
      << " * sqrt(" << longest << ") * 2^-24 of the largest element, times " << chained
      << " chained sums";
  return {.relative = fp32_sum_rounding(model) * static_cast<double>(chained), .why = why.str()};
}

bool is_bf16(const workloads::ModelConfig& model) {
  return model.precision == workloads::Precision::bf16 || model.autocast;
}

int half_ulp_exponent(const workloads::ModelConfig& model) { return is_bf16(model) ? -9 : -11; }

// For 16-bit activations. A partial sum is rounded before it is added to the other ranks', and what
// is computed from a value that differs may be rounded differently. Each of r successive roundings
// adds an error of at most half an ulp (2^-9 for bf16, 2^-11 for fp16) with an independent sign, so
// together about sqrt(r) of them. The errors of fp32 sums are negligible in comparison.
ReferenceBound short_bound(const workloads::ModelConfig& model) {
  const bool bf16 = is_bf16(model);
  const int half_ulp = half_ulp_exponent(model);
  // In the forward a layer rounds sixteen times (two norms; projection, three steps of the
  // rotation, scores, softmax, context and output of attention; up, activation, down; the sum over
  // ranks and the residual of each half), and the embedding and output layers four times. The
  // backward rounds twice as often. A gate adds one product. Learned positions add one sum in all
  // and have no rotations.
  const std::int64_t gate = model.activation == workloads::Activation::swiglu ? 1 : 0;
  const bool rotated = model.position_embedding == workloads::PositionEmbedding::rope;
  // A vision encoder has layers without rotations, and rounds after its patch embedding, the sum
  // with positions, its norm and its projection.
  const std::int64_t of_encoder =
      model.encoder_layers > 0 ? (13 + gate) * model.encoder_layers + 4 : 0;
  // Latents add a product, a norm and the product of the other projection. A layer of multi-token
  // prediction rounds as a layer does, and after two norms, its projection and its last norm.
  const std::int64_t of_layer =
      16 + gate - (model.rotates() ? 0 : 3) + (model.multi_latent_attention ? 3 : 0);
  const std::int64_t rounded = 3 * (of_layer * model.layers + 4 + (rotated ? 0 : 1) + of_encoder +
                                    model.mtp_num_layers * (of_layer + 4));
  std::ostringstream why;
  why << (bf16 ? "bf16" : "fp16") << " values rounded " << rounded
      << " times in a row: " << kConfidence << " * sqrt(" << rounded << ") * 2^" << half_ulp
      << " of the largest element";
  return {
      .relative = kConfidence * std::sqrt(static_cast<double>(rounded)) * std::ldexp(1.0, half_ulp),
      .why = why.str()};
}

}  // namespace

ReferencePair::ReferencePair(std::string name, at::Tensor parallel, at::Tensor single,
                             const at::Tensor& whole)
    : name(std::move(name)),
      parallel(std::move(parallel)),
      single(std::move(single)),
      largest((whole.defined() ? whole : this->single).abs().max().item<double>()) {}

bool second_step_compared(const workloads::ModelConfig& model) {
  const bool routes_by_adam =
      model.experts > 0 && model.optimizer == workloads::OptimizerKind::adam;
  return model.distributed_optimizer && !model.fp8_weights && !routes_by_adam;
}

ReferenceBound reference_bound(const StepConfig& single) {
  ReferenceBound bound =
      single.model.rounds_to_16_bits() ? short_bound(single.model) : fp32_bound(single.model);
  if (second_step_compared(single.model)) {
    // The error of the first step enters through its update, which is about a tenth of the
    // gradient.
    bound.relative *= 2;
    bound.why += "; twice, for two steps";
  }
  return bound;
}

double parameter_rounding(const StepConfig& single) {
  return single.model.rounds_to_16_bits() ? std::ldexp(1.0, half_ulp_exponent(single.model))
                                          : fp32_sum_rounding(single.model);
}

ReferenceBound rounding_bound(const StepConfig& config, std::int64_t step) {
  const workloads::ModelConfig model = single_rank(config).model;
  ReferenceBound bound = model.rounds_to_16_bits() ? short_bound(model) : fp32_bound(model);
  bound.relative *= static_cast<double>(step + 1);
  bound.why += "; times " + std::to_string(step + 1) + " steps";
  return bound;
}

ReferenceDistance reference_distance(std::span<const ReferencePair> pairs,
                                     const ReferenceBound& bound) {
  ReferenceDistance worst{.tensors = static_cast<std::int64_t>(pairs.size()),
                          .worst = "",
                          .max_abs = 0,
                          .max_rel = 0,
                          .bound = 0};
  double worst_share = -1;
  for (const ReferencePair& pair : pairs) {
    const at::Tensor single = pair.single.to(at::kDouble),
                     difference = (pair.parallel.to(at::kDouble) - single).abs();
    const double scale = pair.largest, max_abs = difference.max().item<double>();
    const double counted = bound.relative * scale,
                 allowed = std::max(counted, kRounding * pair.rounding);
    // Equal tensors are within any bound. A difference with a bound of zero, or a NaN, exceeds it.
    double share = max_abs == 0 ? 0 : max_abs / allowed;
    if (std::isnan(share) || std::isnan(scale)) share = std::numeric_limits<double>::infinity();
    if (share <= worst_share) continue;
    worst_share = share;
    worst.worst = pair.name;
    worst.max_abs = max_abs;
    worst.max_rel = max_abs == 0 ? 0 : max_abs / scale;
    worst.bound = allowed;
    worst.rounding = allowed > counted ? pair.rounding : 0;
  }
  return worst;
}

record::Distance distance_of(std::span<const ReferencePair> pairs, const ReferenceBound& bound) {
  const ReferenceDistance distance = reference_distance(pairs, bound);
  std::ostringstream why;
  why << bound.why;
  if (distance.rounding > 0)
    why << "; here more, " << kRounding << " times " << distance.rounding
        << ", by which rounding moves this tensor on one rank";
  return {.tensors = distance.tensors,
          .max_abs = distance.max_abs,
          .max_rel = distance.max_rel,
          .bound = distance.bound,
          .worst = distance.worst,
          .why = why.str()};
}

}  // namespace graphproof::suites
