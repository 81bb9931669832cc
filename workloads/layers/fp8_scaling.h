// The scales by which numbers are multiplied before they are rounded to fp8, as Transformer
// Engine's recipes choose them: one scale a tensor.
//
// Delayed scaling: the scale of a cast is known before it. Each cast only notes the largest element
// (amax) that it meets. On leaving the fp8 context of a forward, and after all backward graphs of a
// microbatch, the noted numbers of a chunk are reduced once over the ranks of the stage, enter a
// history, and the next scales follow from the largest numbers in it. A captured part therefore
// holds the casts, and the update runs outside it: whoever replays the part has to be in the
// context, or its scales stay as they were. Current scaling: each cast finds its own scale, and
// nothing is kept.
//
// A forward that recompute runs again uses the scales of the first run, which the update has
// replaced since, and notes nothing. Neither does an evaluation.
//
// Letters: C chunks of this stage, Q casts of the forward (the inputs and the weight of each linear
// layer, for each expert), B casts of the backward, R entries of a history.
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fixtures/tensors/named_tensor.h"
#include "workloads/config/model_config.h"
#include "workloads/faults/hooks/fault_hooks.h"

namespace graphproof::workloads {

/// What a cast to fp8 reads and notes, for one tensor or for each of E experts: `scale` [E] fp32,
/// by which it multiplies; undefined if the cast finds its own. `amax` [E] fp32, raised to the
/// largest element; undefined if nothing is noted. If `noted` [] bool is defined and false, nothing
/// is.
struct Fp8Cast {
  at::Tensor scale, amax, noted;

  Fp8Cast of_expert(std::int64_t expert) const;
};

/// Numbers of 8 bits, and by what to multiply them.
struct Fp8Tensor {
  at::Tensor values;   // [.., R, C] e4m3 or e5m2
  at::Tensor inverse;  // [E] fp32: one for the tensor, or one for each of E experts

  Fp8Tensor of_expert(std::int64_t expert) const;
};

/// Returns x [R, C] or [E, R, C] as numbers of `type` (kFloat8_e4m3fn or kFloat8_e5m2). A number
/// beyond the largest of the type becomes the largest. Not differentiable; may be captured.
Fp8Tensor to_fp8(const at::Tensor& x, at::ScalarType type, const Fp8Cast& cast);

/// The scales of one stage. Used by the thread of the step; during a backward also by autograd's.
/// Enqueues on the current stream and may be captured.
class Fp8Scaling {
 public:
  /// R. Transformer Engine's default is 1024; with few entries a run sees numbers leave.
  static constexpr std::int64_t kHistory = 4;

  enum class Direction { forward, backward };
  enum class Operand { input, weight, gradient };

  /// A weight that is multiplied in fp8: its layer, and how many experts share the parameter.
  struct Weight {
    at::Tensor parameter;
    std::int64_t layer, experts;
  };
  /// `weights` in order of their layers; there may be none on this stage. `faults` outlives it.
  Fp8Scaling(const ModelConfig& config, const Layout& layout, const std::vector<Weight>& weights,
             at::Device device, faults::FaultHooks& faults);

  /// Sets the counts to zero, at the start of a step.
  void begin_step();
  /// While set, casts note nothing.
  void evaluating(bool on) { evaluating_ = on; }

  /// The cast of an operand of the product with `weight`. `kept`: as of keep(), or undefined.
  /// `again`: the second run of recompute, which notes nothing in the forward.
  Fp8Cast cast(const at::Tensor& weight, Operand operand, const at::Tensor& kept, bool again) const;
  /// [Q] fp32: a copy of the scales of the forward; undefined with current scaling.
  at::Tensor keep() const;

  /// Ends the forward, or the backward, of a microbatch in a chunk: reduces what was noted over the
  /// ranks of the stage, and updates history and scales. Does nothing with current scaling.
  void leave(Direction direction, std::int64_t chunk, std::int64_t microbatch);

  /// "state:fp8.forward.scale" [Q], ".history" [R, Q] and ".amax" [Q], and the same with "backward"
  /// [B]: fp32, static, part of the training state. Empty with current scaling.
  std::vector<fixtures::NamedTensor> state() const;
  /// "fp8:updates" and "fp8:reductions" [2, C] int64, static: how often the scales of each
  /// direction and chunk were updated and their amax reduced in the last step. Empty with current
  /// scaling.
  std::vector<fixtures::NamedTensor> ledgers() const;

 private:
  struct Scales {
    double largest = 0;  // of the number type
    at::Tensor scale, history, amax;
    std::vector<std::int64_t> first_of_chunk;  // C + 1 numbers
  };
  struct Places {
    std::int64_t input, weight, gradient, experts, chunk;
  };
  void reduce(Direction direction, std::int64_t chunk) const;

  faults::FaultHooks& faults_;
  std::string group_;
  bool delayed_, evaluating_ = false;
  std::array<Scales, 2> scales_;  // by Direction
  at::Tensor updates_, reductions_;
  std::map<const c10::TensorImpl*, Places> places_;  // by weight
};

}  // namespace graphproof::workloads
