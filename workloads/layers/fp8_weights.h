// Weights of linear layers in 8 bits. With axis fp8_weights the rounded copies are made in the
// first microbatch of a step and kept for the others, as Transformer Engine keeps quantised weights
// between microbatches (is_first_microbatch). Gradients go to the weights themselves
// (straight-through).
//
// With precision fp8_delayed or fp8_current a copy has 8 bits, and products multiply such numbers
// (fp8_product.h). With mxfp8 or nvfp4 there are two copies with a scale for each block, of the
// weight and of its transpose (block_product.h), made together. Without the axis each microbatch
// makes the numbers again. With another precision a copy has the type of the model, and only its
// values are rounded. A part that is captured alone has the rounding in its graph and selects by a
// flag on the device. Every replay therefore computes it, whereas the kernels of Transformer Engine
// return at once. The copies are not part of the training state: a checkpoint does not hold them,
// and the first microbatch after a load makes them again.
//
// The embedding, the output layer, routers, norms and the projections in front of the layers of
// multi-token prediction are not rounded, and with first_last_layers_bf16 neither are the first and
// the last layer of the decoder and those of a vision encoder. The encoder's patch embedding and
// projection are not rounded either. A frozen encoder rounds its weights as a trained one does,
// because a job may load others between two steps.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fixtures/tensors/named_tensor.h"
#include "workloads/config/model_config.h"
#include "workloads/faults/hooks/fault_hooks.h"
#include "workloads/layers/fp8_product.h"
#include "workloads/layers/fp8_scaling.h"
#include "workloads/parameters/parameters.h"

namespace graphproof::workloads {

struct ForwardPass;

/// Returns `weight` [.., O, I] rounded to e4m3 (4 bits of exponent, 3 of mantissa, largest value
/// 448) and converted back to its own type. Each of `parts` equal parts of `dimension` has one
/// scale, which maps its largest element to 448 (Transformer Engine's current scaling). With a
/// leading dimension for experts, each expert has its own scales.
at::Tensor rounded_to_e4m3(const at::Tensor& weight, std::int64_t dimension, std::int64_t parts);

/// The weights of this rank that are used in 8 bits, and the scales of their products. Used by the
/// thread that runs the step; enqueues on the current stream and may be captured.
class Fp8Weights {
 public:
  /// Each shard of a weight has its own scale, as in Transformer Engine, and nothing is reduced
  /// over tensor parallel ranks. A single rank that is compared with several uses the scales of
  /// their shards (ModelConfig::fp8_parts). `frozen` are the parameters that are not trained.
  /// `faults` outlives it.
  Fp8Weights(const ModelConfig& config, const Layout& layout, const Parameters& parameters,
             const Parameters& frozen, faults::FaultHooks& faults);

  /// Sets the counts to zero, at the start of a step.
  void begin_step();
  /// Sets the flag that captured parts read on the device: whether the microbatch is the first of a
  /// step.
  void set_first_microbatch(bool first);
  /// What to multiply by instead of `weight`: its copy, which this call makes in the first
  /// microbatch, or `weight` itself if it is not used in 8 bits. A part that is captured alone
  /// reads on the device which microbatch it runs in. The second run of recompute makes no copy.
  UsedWeight in_place_of(const at::Tensor& weight, const ForwardPass& pass) const;

  /// The scales of products in fp8; without such products its calls have no effect.
  Fp8Scaling& scaling() { return scaling_; }
  const Fp8Scaling& scaling() const { return scaling_; }

  /// "fp8:made" [L, W] int64: how often the copy of each of a layer's W weights was made in the
  /// last step. Each weight has its own element, because the copies of an overlapped shared expert
  /// are made on another stream. "fp8:NAME" for each copy, and if it has 8 bits, "fp8:NAME.inverse"
  /// (Fp8Tensor). With a scale for each block there are "fp8:NAME", "fp8:NAME.scales" and, for
  /// nvfp4, "fp8:NAME.tensor_scale" [E] fp32, and the same of "fp8:NAME.columns". These are there
  /// only with the axis. And Fp8Scaling::ledgers().
  std::vector<fixtures::NamedTensor> tensors() const;
  /// [] bool, static: the flag of set_first_microbatch(); undefined without the axis.
  const at::Tensor& first() const { return first_; }

 private:
  struct Rounded {
    at::Tensor copy, inverse, made;  // undefined without the axis; made [] int64
    BlockOperand blocks;             // the same, in place of copy and inverse
    std::int64_t dimension, parts;
  };
  Fp8Tensor fresh(const Rounded& rounded, const at::Tensor& weight, const at::Tensor& noted,
                  const ForwardPass& pass) const;
  BlockCasts block_casts(const at::Tensor& weight) const;
  void keep_blocks(Rounded& rounded, const std::string& name, const at::Tensor& zeros);
  void make(const Rounded& rounded, const at::Tensor& weight, faults::FirstMicrobatch read,
            const ForwardPass& pass) const;

  faults::FaultHooks& faults_;
  bool products_, kept_;               // whether products have 8 or 4 bits; whether copies are kept
  std::optional<BlockFormat> blocks_;  // of numbers with a scale for each block
  at::Tensor hadamard_;                // BlockCasts
  Fp8Scaling scaling_;
  at::Tensor first_, made_;
  std::map<const c10::TensorImpl*, Rounded> rounded_;  // by weight
  std::vector<fixtures::NamedTensor> copies_;
};

/// [L/pp] int64: how many copies each layer of this stage made, from the ledgers of a step.
at::Tensor copies_made(const std::vector<fixtures::NamedTensor>& ledgers);

/// `pass` with the scales of now, for a part that recompute runs twice: both runs use these.
ForwardPass with_kept_scales(const ForwardPass& pass);

/// What to multiply by instead of `weight` in this pass: `weight` itself without fp8.
UsedWeight used_weight(const at::Tensor& weight, const ForwardPass& pass);

}  // namespace graphproof::workloads
