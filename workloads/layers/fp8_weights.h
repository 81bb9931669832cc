// Weights of linear layers rounded to 8 bits (axis fp8_weights): once a step, in its first
// microbatch, and kept for the others, as Transformer Engine keeps quantised weights between
// microbatches (is_first_microbatch). Products take the rounded copies, gradients go to the weights
// themselves (straight through).
//
// No product of 8-bit numbers runs: a copy has the model's type, so what differs from a case
// without is its values alone. A part that is captured alone has the rounding in its graph and
// selects by a flag on the device, so every replay pays for it, where Transformer Engine's kernels
// end at once. Copies are no state of training: a checkpoint leaves them out, and the first
// microbatch behind it makes them again.
//
// The embedding, the output layer, routers and norms are not rounded; with first_last_layers_bf16
// neither are the first and the last layer of the model.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <vector>

#include "fixtures/tensors/named_tensor.h"
#include "workloads/config/model_config.h"
#include "workloads/faults/hooks/fault_hooks.h"
#include "workloads/parameters/parameters.h"

namespace graphproof::workloads {

struct ForwardPass;

/// `weight` [.., O, I] rounded to e4m3 (4 bits of exponent, 3 of mantissa, largest value 448) and
/// back, in its own type: with one scale for each of `parts` equal parts of `dimension`, which
/// brings the part's largest element to 448 (Transformer Engine's current scaling). Leading
/// dimensions, those of experts, have scales of their own.
at::Tensor rounded_to_e4m3(const at::Tensor& weight, std::int64_t dimension, std::int64_t parts);

class Fp8Weights {
 public:
  /// A shard has a scale of its own, as Transformer Engine's: nothing is reduced over tensor
  /// parallel ranks. A single rank that stands for several has the scales of theirs
  /// (ModelConfig::fp8_parts). `faults` outlives it.
  Fp8Weights(const ModelConfig& config, const Layout& layout, const Parameters& parameters,
             faults::FaultHooks& faults);

  /// Enqueues zeros for what counts. At the start of a step.
  void begin_step();
  /// Enqueues what captured parts read on the device from now on: whether the microbatch is a
  /// step's first.
  void tell_first_microbatch(bool first);
  /// What is to be computed with in place of `weight`, differentiable in it: its copy, which the
  /// first microbatch makes here, or `weight` itself where it is not rounded. A part that is
  /// captured alone asks the device which microbatch it runs in; what recompute runs again makes
  /// nothing.
  at::Tensor in_place_of(const at::Tensor& weight, const ForwardPass& pass) const;

  /// "fp8:made" [L/pp, W] int64 out, how often the copy of each of a layer's W weights was made in
  /// the last step: an element each, because an overlapped shared expert's are made on a stream of
  /// its own; and "fp8:NAME", the copies.
  std::vector<fixtures::NamedTensor> probes() const;
  const at::Tensor& first() const {
    return first_;
  }  // [] bool, static: what tell_first_microbatch() told

 private:
  struct Rounded {
    at::Tensor copy, made;  // made [] int64
    std::int64_t dimension, parts;
  };
  void make(const Rounded& rounded, const at::Tensor& weight, faults::FirstMicrobatch read,
            const ForwardPass& pass) const;

  faults::FaultHooks& faults_;
  at::Tensor first_, made_;
  std::map<const c10::TensorImpl*, Rounded> rounded_;  // by weight
  std::vector<fixtures::NamedTensor> copies_;
};

/// [L/pp] int64 out: of a step's ledgers, how many copies each layer of this stage made.
at::Tensor copies_made(const std::vector<fixtures::NamedTensor>& ledgers);

/// In place of `weight` in this pass: itself without the axis.
at::Tensor used_weight(const at::Tensor& weight, const ForwardPass& pass);

}  // namespace graphproof::workloads
