// Evidence of single steps: what a step computed, what it was compared with, and what its parts
// counted.
#pragma once

#include "reports/record/evidence/table/field_table.h"

namespace graphproof::record {

/// Which inputs a step had: those of the step that was captured, or new ones.
inline constexpr FieldLimits kInputs{.one_of = "capture|fresh"};

/// Digests of the results of a step.
struct StepDigests {
  std::string grads, params, losses;
  bool operator==(const StepDigests&) const = default;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("grads", &StepDigests::grads, "of the gradients", "8a1f0c22d3e4b5a6", kDigest);
    field("params", &StepDigests::params, "of the parameters", "0b1c2d3e4f506172", kDigest);
    field("losses", &StepDigests::losses, "of the losses", "3f9ac1d20b7e6655", kDigest);
  }
};

struct StepLine {
  static constexpr std::string_view kKind = "step", kDoc = "What a step of an arm computed.";
  std::string arm;
  std::int64_t step = 0;
  std::string input;
  std::vector<double> loss;
  std::string loss_bits;
  double grad_norm = 0;
  StepDigests digest;
  double learning_rate = 0, ms = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &StepLine::arm, "the arm", "eager_a", kFilled);
    field("step", &StepLine::step, "step of the arm, from 0", 0, kCount);
    field("input", &StepLine::input,
          "inputs of the step: those of the captured step, or fresh ones", "capture", kInputs);
    field("loss", &StepLine::loss, "loss of each microbatch", JsonText{"[4.8521, 4.8611]"});
    field("loss_bits", &StepLine::loss_bits, "digest of the losses", "3f9ac1d20b7e6655", kDigest);
    field("grad_norm", &StepLine::grad_norm, "norm of all gradients", 1.2345);
    field("digest", &StepLine::digest, "digests of the results");
    field("learning_rate", &StepLine::learning_rate, "learning rate on the host", 0.1);
    field("ms", &StepLine::ms, "time of the step, including the wait for the device (ms)", 3.1,
          kCount);
  }
};

/// The first element in which two tensors differ, and how much they differ overall.
struct TensorMismatch {
  std::string tensor;
  std::int64_t element = 0;
  double left = 0, right = 0, max_abs = 0, max_rel = 0;
  std::int64_t max_ulp = 0, elements = 0, differing = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("tensor", &TensorMismatch::tensor, "name of the tensor", "param:layers.0.mlp.up.weight",
          kFilled);
    field("element", &TensorMismatch::element, "index of its first differing element", 17, kCount);
    field("left", &TensorMismatch::left, "that element of the left arm", 0.125);
    field("right", &TensorMismatch::right, "that element of the right arm", 0.25);
    field("max_abs", &TensorMismatch::max_abs, "largest difference of an element", 0.5);
    field("max_rel", &TensorMismatch::max_rel, "largest relative difference of an element", 1.0);
    field("max_ulp", &TensorMismatch::max_ulp, "largest difference in units in the last place",
          8388608, kCount);
    field("elements", &TensorMismatch::elements, "elements of the tensor", 4096, kCount);
    field("differing", &TensorMismatch::differing, "elements that differ", 4000, kCount);
  }
};

struct CompareLine {
  static constexpr std::string_view
      kKind = "compare",
      kDoc = "The results of two arms after the same step, compared byte for byte.";
  std::string left, right, compared;
  std::int64_t step = 0;
  std::string input;
  std::int64_t tensors = 0, bytes = 0;
  bool equal = false;
  std::optional<TensorMismatch> mismatch;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("left", &CompareLine::left, "the arm that is right by definition", "lockstep_eager",
          kFilled);
    field("right", &CompareLine::right, "the arm that must have the same", "lockstep_graph",
          kFilled);
    field("compared", &CompareLine::compared, "which comparison of the case this is", "lockstep",
          kFilled);
    field("step", &CompareLine::step, "step of both arms, from 0", 3, kCount);
    field("input", &CompareLine::input,
          "inputs of the step: those of the captured step, or fresh ones", "fresh", kInputs);
    field("tensors", &CompareLine::tensors, "tensors compared", 33, kCount);
    field("bytes", &CompareLine::bytes, "bytes compared", 262144, kCount);
    field("equal", &CompareLine::equal, "whether all bytes are equal", false);
    field("mismatch", &CompareLine::mismatch, "the first tensor that differs; null if none does",
          {}, {.null_when_empty = true, .null_exactly_if = "equal"});
  }
};

/// How far apart two tensors are. Elements that are not finite in both arms, and differ, have no
/// distance.
struct TensorDistance {
  std::string tensor;
  std::int64_t elements = 1, differing = 0, incomparable = 0, element = 0;
  double left = 0, right = 0, max_abs = 0, largest = 0, beyond_rtol = 0, resolution = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("tensor", &TensorDistance::tensor, "name of the tensor", "grad:embedding.weight",
          kFilled);
    field("elements", &TensorDistance::elements, "its elements", 8192, kPositive);
    field("differing", &TensorDistance::differing, "elements that differ", 311, kPositive);
    field("incomparable", &TensorDistance::incomparable,
          "those of them that are not finite in both arms", 0, kCount);
    field("element", &TensorDistance::element, "index of the element that differs most", 4242,
          kCount);
    field("left", &TensorDistance::left, "that element of the left arm", 0.125);
    field("right", &TensorDistance::right, "that element of the right arm", 0.12500001);
    field("max_abs", &TensorDistance::max_abs, "by how much it differs", 7.5e-9, kCount);
    field("largest", &TensorDistance::largest,
          "largest absolute value of a finite element of the left arm", 0.5, kCount);
    field("beyond_rtol", &TensorDistance::beyond_rtol,
          "the least atol with which every element is within the rtol that the case states for "
          "the tensor",
          0.0, kCount);
    field("resolution", &TensorDistance::resolution,
          "distance of 1 from the next number of the tensor's type; 0 for integers",
          1.1920928955078125e-07, kCount);
  }
};

struct DistancesLine {
  static constexpr std::int64_t kSince = 16;
  static constexpr std::string_view
      kKind = "distances",
      kDoc =
          "How far apart the tensors of a comparison are that differ, in a case that states a "
          "tolerance.";
  std::string left, right, compared;
  std::int64_t step = 0;
  std::vector<TensorDistance> tensors;
  double rounding = 0;
  std::string rounding_why;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("left", &DistancesLine::left, "the arm that is right by definition", "lockstep_eager",
          kFilled);
    field("right", &DistancesLine::right, "the arm that must have the same", "lockstep_graph",
          kFilled);
    field("compared", &DistancesLine::compared, "which comparison of the case this is", "lockstep",
          kFilled);
    field("step", &DistancesLine::step, "step of both arms, from 0", 3, kCount);
    field("tensors", &DistancesLine::tensors, "every tensor that differs");
    field("rounding", &DistancesLine::rounding,
          "how far rounding alone can move an element by the end of this step, relative to the "
          "largest element of its tensor",
          9.4e-4, kCount);
    field("rounding_why", &DistancesLine::rounding_why, "how that was derived",
          "fp32 sums of up to 256 products in another order: 4 * sqrt(256) * 2^-24 of the largest "
          "element, times 66 chained sums; times 4 steps",
          kFilled);
  }
};

struct DivergenceLine {
  static constexpr std::string_view
      kKind = "divergence",
      kDoc =
          "The first operator whose result differs, found in a second run of a case whose arms "
          "differ.";
  std::string left, right;
  std::int64_t step = 0;
  bool found = false;
  std::int64_t microbatch = -1, layer = -1;
  std::string module, direction, op;
  std::int64_t taps = 0;
  std::optional<TensorMismatch> mismatch;
  std::string why;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("left", &DivergenceLine::left, "the eager arm", "divergence_eager", kFilled);
    field("right", &DivergenceLine::right, "the graph arm", "divergence_graph", kFilled);
    field("step", &DivergenceLine::step, "step of both arms, from 0", 3, kCount);
    field("found", &DivergenceLine::found, "whether a result of this rank differs", true);
    field("microbatch", &DivergenceLine::microbatch,
          "microbatch that it belongs to; -1 outside forward and backward", 1, {.at_least = -1});
    field("layer", &DivergenceLine::layer, "layer of this rank; -1 outside the layers", 0,
          {.at_least = -1});
    field("module", &DivergenceLine::module, "module of the layer", "attn");
    field("direction", &DivergenceLine::direction, "forward, backward, or empty outside both",
          "forward", {.one_of = "|forward|backward"});
    field("operator", &DivergenceLine::op, "the operator", "aten::mul");
    field("taps", &DivergenceLine::taps, "results compared up to this one", 412, kCount);
    field("mismatch", &DivergenceLine::mismatch, "how the two results differ", {},
          {.null_when_empty = true});
    field("why", &DivergenceLine::why, "why no result was found, or why one is not comparable", "");
  }
};

/// The distance of tensors from a reference. The figures are of the worst tensor: the one whose
/// distance is the largest share of its bound.
struct Distance {
  std::int64_t tensors = 0;
  double max_abs = 0, max_rel = 0, bound = 0;
  std::string worst, why;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("tensors", &Distance::tensors, "tensors measured", 2, kCount);
    field("max_abs", &Distance::max_abs, "largest difference of an element of the worst tensor",
          1.2e-7);
    field("max_rel", &Distance::max_rel, "the same, relative to the tensor's largest element",
          2.5e-8);
    field("bound", &Distance::bound, "the largest max_abs that is allowed", 3.1e-6);
    field("worst", &Distance::worst, "name of the worst tensor", "losses", kFilled);
    field("why", &Distance::why, "where the bound comes from",
          "sum of 64 fp32 products in another order: 64 * 2^-24, times 8 chained layers", kFilled);
  }
};

struct ReferenceLine {
  static constexpr std::string_view
      kKind = "reference",
      kDoc = "The distance of the parallel eager step from the same step on one rank.";
  std::string compared;
  std::optional<std::string> precision;
  Distance distance;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("compared", &ReferenceLine::compared, "losses or gradients", "losses", kFilled);
    field("precision", &ReferenceLine::precision, "precision in which the two are compared", "fp32",
          {.one_of = "fp32|bf16|fp16"});
    field.part(&ReferenceLine::distance);
  }
};

struct PaddingLine {
  static constexpr std::string_view
      kKind = "padding",
      kDoc = "The distance of losses and gradients of a padded step from those without padding.";
  std::int64_t step = 0, length = 1;
  std::vector<std::int64_t> lengths;
  Distance distance;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("step", &PaddingLine::step, "step of changing lengths, from 0", 5, kCount);
    field("length", &PaddingLine::length, "what the microbatches were padded to (tokens)", 12,
          kPositive);
    field("lengths", &PaddingLine::lengths, "length of each microbatch of this rank (tokens)",
          JsonText{"[12, 7]"}, kPositive);
    field.part(&PaddingLine::distance);
  }
};

struct RngLine {
  static constexpr std::string_view
      kKind = "rng",
      kDoc = "The state of one random generator before and after a step.";
  std::string arm;
  std::int64_t step = 0;
  std::string generator, before, after, mask;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &RngLine::arm, "the arm", "lockstep_eager", kFilled);
    field("step", &RngLine::step, "step of the arm, from 0", 0, kCount);
    field("generator", &RngLine::generator, "name of the generator", "model-parallel", kFilled);
    field("before", &RngLine::before, "its state before the step: seed and offset", "2718:0",
          kFilled);
    field("after", &RngLine::after, "its state after the step", "2718:64", kFilled);
    field("mask", &RngLine::mask, "digest of all dropout masks of the step", "77aa01cc90ef1234",
          kDigestOrEmpty);
  }
};

struct HyperparameterLine {
  static constexpr std::string_view
      kKind = "hyperparameter",
      kDoc =
          "A number of the host and the one that the step used: learning rate, Adam's step number, "
          "loss scale, and counts of the host's work.";
  std::string arm;
  std::int64_t step = 0;
  std::string name;
  double host = 0, effective = 0, bound = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &HyperparameterLine::arm, "the arm", "lockstep_graph", kFilled);
    field("step", &HyperparameterLine::step, "step of the arm, from 0", 2, kCount);
    field("name", &HyperparameterLine::name, "name of the number", "learning_rate", kFilled);
    field("host", &HyperparameterLine::host, "what the host set or expects", 0.09);
    field("effective", &HyperparameterLine::effective, "what the step used, measured", 0.0900001);
    field("bound", &HyperparameterLine::bound, "largest error of the measurement", 0.0005);
  }
};

struct RecomputeLine {
  static constexpr std::string_view
      kKind = "recompute",
      kDoc = "What the backward of a step recomputed, and what the forward had computed.";
  std::string arm;
  std::int64_t step = 0;
  std::optional<std::string> part;
  std::vector<std::int64_t> counter_before, counter_after;
  std::string outputs, outputs_again;
  std::int64_t masks = 0;
  std::string masks_digest, masks_again_digest;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &RecomputeLine::arm, "the arm", "lockstep_graph", kFilled);
    field("step", &RecomputeLine::step, "step of the arm, from 0", 2, kCount);
    field(
        "part", &RecomputeLine::part, "the recomputed part of a layer; core_attn if it is absent",
        "core_attn",
        {.one_of =
             "core_attn|mla_up_proj|mlp|moe|moe_act|attention_norm|mlp_norm|shared_experts|layer"});
    field("counter_before", &RecomputeLine::counter_before,
          "recomputes of each layer before the step", JsonText{"[4, 4]"}, kCount);
    field("counter_after", &RecomputeLine::counter_after, "recomputes of each layer after it",
          JsonText{"[6, 6]"}, kCount);
    field("outputs", &RecomputeLine::outputs, "digest of what the forward computed",
          "55aa01cc90ef1234", kDigestOrEmpty);
    field("outputs_again", &RecomputeLine::outputs_again, "digest of what the backward recomputed",
          "55aa01cc90ef1234", kDigestOrEmpty);
    field("masks", &RecomputeLine::masks, "dropout masks in the recomputed part", 4, kCount);
    field("masks_digest", &RecomputeLine::masks_digest, "digest of those of the forward",
          "77aa01cc90ef1234", kDigestOrEmpty);
    field("masks_again_digest", &RecomputeLine::masks_again_digest,
          "digest of those of the recompute", "77aa01cc90ef1234", kDigestOrEmpty);
  }
};

struct ExpertsLine {
  static constexpr std::string_view kKind = "experts",
                                    kDoc =
                                        "How the tokens of a step were distributed to the experts.";
  std::string arm;
  std::int64_t step = 0, assignments = 1;
  std::vector<std::int64_t> assigned, carried, dropped, overflowed;
  bool operator==(const ExpertsLine&) const = default;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &ExpertsLine::arm, "the arm", "lockstep_graph", kFilled);
    field("step", &ExpertsLine::step, "step of the arm, from 0", 2, kCount);
    field("assignments", &ExpertsLine::assignments,
          "assignments that the router makes in each layer: tokens times topk", 64, kPositive);
    field("assigned", &ExpertsLine::assigned, "assignments by layer and expert, [layers * experts]",
          JsonText{"[13, 19, 16, 16, 16, 16, 16, 16]"}, kCount);
    field("carried", &ExpertsLine::carried, "those that reached the expert, [layers * experts]",
          JsonText{"[13, 16, 16, 16, 16, 16, 16, 16]"}, kCount);
    field("dropped", &ExpertsLine::dropped, "those over capacity, by layer", JsonText{"[3, 0]"},
          kCount);
    field("overflowed", &ExpertsLine::overflowed, "overflow flag of each layer", JsonText{"[1, 0]"},
          kCount);
  }
};

struct ScheduleLine {
  static constexpr std::string_view
      kKind = "schedule",
      kDoc =
          "What a pipeline stage ran in a step, in order: chunk * microbatches + microbatch + 1, "
          "a backward with a minus. With overlap_ep_comm layer by layer: 2 * layer * "
          "microbatches + microbatch + 1, and for delayed weight gradients -((2 * layer + 1) * "
          "microbatches + microbatch + 1).";
  std::string arm;
  std::int64_t step = 0;
  std::vector<std::int64_t> ran;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &ScheduleLine::arm, "the arm", "lockstep_graph", kFilled);
    field("step", &ScheduleLine::step, "step of the arm, from 0", 2, kCount);
    field("ran", &ScheduleLine::ran, "the order in which they ran", JsonText{"[1, 2, -1, -2]"},
          {.min_items = 2});
  }
};

struct Fp8WeightsLine {
  static constexpr std::string_view kKind = "fp8_weights",
                                    kDoc = "How often weights were rounded to fp8 in a step.";
  std::string arm;
  std::int64_t step = 0;
  std::vector<std::int64_t> copies;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &Fp8WeightsLine::arm, "the arm", "lockstep_graph", kFilled);
    field("step", &Fp8WeightsLine::step, "step of the arm, from 0", 2, kCount);
    field("copies", &Fp8WeightsLine::copies, "rounded copies made by each layer of this rank",
          JsonText{"[0, 4]"}, kCount);
  }
};

struct Fp8ScalingLine {
  static constexpr std::int64_t kSince = 12;
  static constexpr std::string_view
      kKind = "fp8_scaling",
      kDoc = "How often the scales of fp8 were updated in a step with delayed scaling.";
  std::string arm;
  std::int64_t step = 0;
  std::vector<std::int64_t> updates, reductions;
  std::string scales;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &Fp8ScalingLine::arm, "the arm", "lockstep_graph", kFilled);
    field("step", &Fp8ScalingLine::step, "step of the arm, from 0", 2, kCount);
    field(
        "updates", &Fp8ScalingLine::updates,
        "updates of the scales of each chunk of this rank's stage, of its forward passes and then "
        "of its backward passes",
        JsonText{"[2, 2]"}, kCount);
    field("reductions", &Fp8ScalingLine::reductions,
          "the same for reductions of the largest elements over the ranks of the stage",
          JsonText{"[2, 2]"}, kCount);
    field("scales", &Fp8ScalingLine::scales, "digest of scales and histories after the step",
          "9f86d081884c7d65", kFilled);
  }
};

struct BatchLine {
  static constexpr std::int64_t kSince = 13;
  static constexpr std::string_view kKind = "batch",
                                    kDoc = "What an arm of an inference job computed in a step.";
  std::string arm;
  std::int64_t step = 0;
  std::string work;
  std::int64_t rows = 0, size = 0, launches = 0, captures = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &BatchLine::arm, "the arm", "lockstep_graph", kFilled);
    field("step", &BatchLine::step, "step of the arm, from 0", 2, kCount);
    field("work", &BatchLine::work, "a chunk of a prompt, one token of every request, or nothing",
          "decode", {.one_of = "prefill|decode|idle"});
    field("rows", &BatchLine::rows, "tokens of requests of this rank", 3, kCount);
    field("size", &BatchLine::size, "rows that were computed, with padding", 4, kCount);
    field("launches", &BatchLine::launches, "graph launches of the arm so far", 3, kCount);
    field("captures", &BatchLine::captures, "captures that the arm has begun so far", 3, kCount);
  }
};

struct SequencesLine {
  static constexpr std::int64_t kSince = 13;
  static constexpr std::string_view
      kKind = "sequences",
      kDoc =
          "The distance of what an inference job computed token by token from one pass over the "
          "whole sequences of its requests.";
  std::string arm;
  std::int64_t requests = 0, tokens = 0;
  Distance distance;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &SequencesLine::arm, "the arm", "eager_a", kFilled);
    field("requests", &SequencesLine::requests, "requests that ended on this rank", 12, kCount);
    field("tokens", &SequencesLine::tokens, "their sampled tokens, each with compared logits", 61,
          kCount);
    field.part(&SequencesLine::distance);
  }
};

struct HeldLine {
  static constexpr std::int64_t kSince = 14;
  static constexpr std::string_view
      kKind = "held",
      kDoc =
          "What an eager step left of one part of the model or of the optimizer's state, for "
          "comparison with the ranks that hold the same.";
  std::string arm;
  std::int64_t step = 0;
  std::string what, part;
  std::int64_t tensors = 1;
  std::string digest;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &HeldLine::arm, "the arm", "eager_a", kFilled);
    field("step", &HeldLine::step, "step of the arm, from 0", 2, kCount);
    field("what", &HeldLine::what, "parameters, or the optimizer's state of them", "parameters",
          {.one_of = "parameters|state"});
    field("part", &HeldLine::part,
          "which of them: what every rank of a stage holds whole, what is split over tensor "
          "parallel ranks, experts, the embedding that two stages share, the corrections of "
          "routers, or what the optimizer has once for the whole model",
          "whole", {.one_of = "whole|split|experts|tied|routers|model"});
    field("tensors", &HeldLine::tensors, "tensors in the digest", 9, kPositive);
    field("digest", &HeldLine::digest, "digest of their names and bytes", "0b1c2d3e4f506172",
          kDigest);
  }
};

struct MasksLine {
  static constexpr std::int64_t kSince = 14;
  static constexpr std::string_view
      kKind = "masks",
      kDoc = "The dropout masks of an eager step, for comparison with other ranks.";
  std::string arm;
  std::int64_t step = 0;
  std::string region;
  std::int64_t masks = 1;
  std::string digest;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &MasksLine::arm, "the arm", "eager_a", kFilled);
    field("step", &MasksLine::step, "step of the arm, from 0", 2, kCount);
    field("region", &MasksLine::region,
          "whether they are drawn inside or outside tensor parallel regions", "inside",
          {.one_of = "inside|outside"});
    field("masks", &MasksLine::masks, "how many masks", 4, kPositive);
    field("digest", &MasksLine::digest, "digest of their bytes, without their names",
          "77aa01cc90ef1234", kDigest);
  }
};

struct UpdatesLine {
  static constexpr std::int64_t kSince = 14;
  static constexpr std::string_view
      kKind = "updates",
      kDoc =
          "How far the optimizer's update of every tensor is from the one computed again in fp64 "
          "from the values before the step and the gradients.";
  std::string arm;
  std::int64_t step = 0, tensors = 1;
  std::string worst;
  double error = 0, bound = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &UpdatesLine::arm, "the arm", "eager_a", kFilled);
    field("step", &UpdatesLine::step, "step of the arm, from 0", 2, kCount);
    field("tensors", &UpdatesLine::tensors,
          "tensors computed again: what the optimizer moves, its moments, and the parameters that "
          "are rounded from it",
          50, kPositive);
    field("worst", &UpdatesLine::worst, "the tensor whose error is the largest share of its bound",
          "param:layers.0.norm.weight", kFilled);
    field("error", &UpdatesLine::error, "error of its worst element", 1.1e-9);
    field("bound", &UpdatesLine::bound, "largest error of that element by fp32 arithmetic", 6.2e-9);
  }
};

struct InfinityLine {
  static constexpr std::int64_t kSince = 14;
  static constexpr std::string_view
      kKind = "infinity",
      kDoc =
          "What the optimizer did on this rank in a step in which the gradients of one part of the "
          "model alone were infinite.";
  std::string part;
  std::int64_t victim = 0;
  bool infinite = false, skipped = false, moved = false;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("part", &InfinityLine::part,
          "where a gradient is infinite: nowhere, in what is not an expert, or in an expert",
          "dense", {.one_of = "none|dense|experts"});
    field("victim", &InfinityLine::victim,
          "the lowest rank that holds that gradient; 0 if there is none", 1, kCount);
    field("infinite", &InfinityLine::infinite, "whether this rank holds it", false);
    field("skipped", &InfinityLine::skipped, "whether this rank skipped the step", true);
    field("moved", &InfinityLine::moved, "whether a parameter of this rank changed", false);
  }
};

struct DerivativeLine {
  static constexpr std::int64_t kSince = 20;
  static constexpr std::string_view
      kKind = "derivative",
      kDoc =
          "How a change of some parameters changes the loss of the model on a single rank in fp32, "
          "measured, and computed from the gradients of its backward.";
  std::string moved;
  std::int64_t tensors = 1;
  double computed = 0, measured = 0, bound = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("moved", &DerivativeLine::moved,
          "the parameters that are changed: one, those of the same name in all layers, or `all` in "
          "a direction in which measured and computed agree",
          "layers.*.attention.qkv.weight", kFilled);
    field("tensors", &DerivativeLine::tensors, "how many they are", 2, kPositive);
    field("computed", &DerivativeLine::computed,
          "the sum over their elements of gradient times change", 0.0312);
    field("measured", &DerivativeLine::measured,
          "half the difference of the losses with the change added and subtracted, extrapolated to "
          "small changes",
          0.03121);
    field("bound", &DerivativeLine::bound,
          "how far they may be apart by the curvature of the loss and by rounding", 0.0002);
  }
};

struct RouterLossLine {
  static constexpr std::int64_t kSince = 21;
  static constexpr std::string_view
      kKind = "router_loss",
      kDoc =
          "How a change of all parameters changes a loss that routers add to the gradients alone, "
          "in the model on a single rank in fp32: computed from the gradients that the loss adds, "
          "and measured by a definition of the loss that reads the routers' inputs and weights.";
  std::string loss;
  std::int64_t tensors = 1;
  double value = 0, computed = 0, measured = 0, bound = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("loss", &RouterLossLine::loss, "the axis that adds it", "router_z_loss",
          {.one_of = "router_aux_loss|router_z_loss"});
    field("tensors", &RouterLossLine::tensors, "how many parameters it has gradients for", 9,
          kCount);
    field("value", &RouterLossLine::value, "the loss of the step, by that definition", 0.0571);
    field("computed", &RouterLossLine::computed,
          "the sum over their elements of gradient times change; the gradient is that of a step "
          "with the loss less that of one without",
          0.00114);
    field("measured", &RouterLossLine::measured,
          "half the difference of the loss with the change added and subtracted, extrapolated to "
          "small changes",
          0.00114);
    field("bound", &RouterLossLine::bound,
          "how far they may be apart by the curvature of the loss and by rounding", 0.00001);
  }
};

struct StashLine {
  static constexpr std::int64_t kSince = 17;
  static constexpr std::string_view
      kKind = "stash",
      kDoc =
          "A step whose receive buffers of experts hold a share of the rows that could arrive, on "
          "this rank.";
  std::string arm;
  std::int64_t step = 0;
  bool pulled = false;
  std::int64_t capacity = 1, needed = 0, reruns = 0, grown = 1, captures = 0, replays = 0;
  std::int64_t assigned = 0, carried = 0, dropped = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &StashLine::arm, "the arm", "stash_graph", kFilled);
    field("step", &StashLine::step, "step of the arm, from 0", 4, kCount);
    field("pulled", &StashLine::pulled,
          "whether all tokens were pulled to the experts of the first rank", true);
    field("capacity", &StashLine::capacity, "rows of a buffer when the step began", 80, kPositive);
    field("needed", &StashLine::needed,
          "most rows that were sent to this rank in one dispatch, in the last run of the step", 128,
          kCount);
    field("reruns", &StashLine::reruns, "how often the step ran again", 1, kCount);
    field("grown", &StashLine::grown, "rows of a buffer after the step", 128, kPositive);
    field("captures", &StashLine::captures, "captures of the arm so far", 1, kCount);
    field("replays", &StashLine::replays, "graph launches of the arm so far", 3, kCount);
    field("assigned", &StashLine::assigned,
          "assignments of this rank's tokens in the last run, in all its layers", 256, kCount);
    field("carried", &StashLine::carried, "those of them that reached their expert", 256, kCount);
    field("dropped", &StashLine::dropped, "those that were counted as dropped", 0, kCount);
  }
};

struct OffloadLine {
  static constexpr std::int64_t kSince = 19;
  static constexpr std::string_view kKind = "offload",
                                    kDoc =
                                        "What a step with offloaded activations copied to the host "
                                        "and back. The host marks the buffers before the step.";
  std::string arm;
  std::int64_t step = 0;
  std::int64_t buffers = 0, pinned = 0, written = 0, fetched = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &OffloadLine::arm, "the arm", "lockstep_graph", kFilled);
    field("step", &OffloadLine::step, "step of the arm, from 0", 2, kCount);
    field("buffers", &OffloadLine::buffers, "host buffers of this rank", 8, kCount);
    field("pinned", &OffloadLine::pinned, "those of them in pinned memory", 8, kCount);
    field("written", &OffloadLine::written,
          "those of them that lost their mark, because the device wrote them in this step", 8,
          kCount);
    field("fetched", &OffloadLine::fetched,
          "activations that were copied back, counted on the device", 16, kCount);
  }
};

struct ProductsLine {
  static constexpr std::int64_t kSince = 19;
  static constexpr std::string_view
      kKind = "products",
      kDoc =
          "The matrix products that the host called in a step with autocast, eagerly or in a "
          "capture, and the casts of parameters for them.";
  std::string arm;
  std::int64_t step = 0;
  std::int64_t in_16_bits = 0, in_32_bits = 0, parameters = 0, casts = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &ProductsLine::arm, "the arm", "lockstep_graph", kFilled);
    field("step", &ProductsLine::step, "step of the arm, from 0", 2, kCount);
    field("in_16_bits", &ProductsLine::in_16_bits, "products of numbers of 16 bits", 72, kCount);
    field("in_32_bits", &ProductsLine::in_32_bits, "products of numbers of 32 bits", 0, kCount);
    field("parameters", &ProductsLine::parameters, "parameters that were cast to 16 bits", 9,
          kCount);
    field("casts", &ProductsLine::casts, "how often a parameter was cast to 16 bits", 18, kCount);
  }
};

/// A place in a program at which the host waited for the device.
struct HostWait {
  std::string place;
  std::int64_t times = 1;
  bool captured = false;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("place", &HostWait::place, "the innermost line of code that is not PyTorch's",
          "train.py:41 step", kFilled);
    field("times", &HostWait::times, "how often it waited in all steps that were watched", 4,
          kPositive);
    field("captured", &HostWait::captured, "whether the graphs of the case are captured from there",
          true);
  }
};

struct HostWaitsLine {
  static constexpr std::int64_t kSince = 12;
  static constexpr std::string_view
      kKind = "host_waits",
      kDoc =
          "Where eager steps of an arm waited for the device: what PyTorch warns of in the mode "
          "`warn` of torch.cuda.set_sync_debug_mode.";
  std::string arm;
  std::int64_t steps = 0;
  std::vector<HostWait> waits;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &HostWaitsLine::arm, "the arm", "eager_a", kFilled);
    field("steps", &HostWaitsLine::steps, "steps in which the mode was on", 4, kCount);
    field("waits", &HostWaitsLine::waits, "the places, the first ones of them");
  }
};

struct RecomputesLine {
  static constexpr std::int64_t kSince = 13;
  static constexpr std::string_view
      kKind = "recomputes",
      kDoc =
          "How many parts of the model an arm ran under a checkpoint, in all of its steps, and how "
          "many of them a backward pass ran again. Passes that only warm up are left out.";
  std::string arm;
  std::int64_t eager_steps = 0;
  std::int64_t parts = 0, parts_again = 0, captured = 0, captured_again = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("arm", &RecomputesLine::arm, "the arm", "lockstep_graph", kFilled);
    field("eager_steps", &RecomputesLine::eager_steps, "steps that ran without graphs", 2, kCount);
    field("parts", &RecomputesLine::parts, "parts that ran outside of captures", 8, kCount);
    field("parts_again", &RecomputesLine::parts_again,
          "those of them that a backward pass ran again", 8, kCount);
    field("captured", &RecomputesLine::captured, "parts that ran while a graph was captured", 4,
          kCount);
    field("captured_again", &RecomputesLine::captured_again,
          "those of them that a captured backward pass ran again", 4, kCount);
  }
};

/// The kinds of this file, in the order of the reference page.
using StepKinds =
    Kinds<StepLine, CompareLine, DistancesLine, DivergenceLine, ReferenceLine, PaddingLine, RngLine,
          HyperparameterLine, RecomputeLine, ExpertsLine, ScheduleLine, Fp8WeightsLine,
          Fp8ScalingLine, BatchLine, SequencesLine, HeldLine, MasksLine, UpdatesLine, InfinityLine,
          DerivativeLine, RouterLossLine, StashLine, OffloadLine, ProductsLine, HostWaitsLine,
          RecomputesLine>;

}  // namespace graphproof::record
