// The mixer of a Mamba-2 layer (Dao and Gu 2024), as Megatron-LM's MambaMixer. One projection makes
// the gate, the values, the directions in which the state is written and read, and the step sizes.
// A short causal convolution runs over all but gate and step sizes. The selective scan follows,
// then a gated norm and the projection back. Heads are split over the T tensor parallel ranks.
//
// The scan is h(t) = exp(a(t)) h(t-1) + d(t) x(t) b(t)', y(t) = h(t) c(t) + D x(t), with
// a(t) = -exp(A) d(t). It is computed in its dual form, for all steps at once: y(t) is the sum over
// s <= t of (c(t) . b(s)) exp(a(s+1) + ... + a(t)) d(s) x(s). Only library operators are used, no
// scan kernel. The sums of a(t) are a product with a triangle of ones, because a cumulative sum has
// no fixed order on a GPU.
//
// G groups that share b and c (kv_groups here, Megatron-LM's --mamba-num-groups); R = heads/G heads
// in a group, D = 2*H/heads elements in a head, W = 16 elements of state each; N = B*S tokens, P
// parts of a sequence (tensor_parallel.h). The rows of the projection are ordered by group: R*D of
// the gate, R*D values, W of b, W of c, R step sizes; so a shard holds whole groups. A, D and the
// bias of the step sizes, which Megatron-LM keeps in fp32, have the type of the model.
//
// Context parallel ranks exchange tokens for groups before convolution and scan, and back after the
// norm (Megatron-LM's MambaContextParallel), with an all-to-all each. In between a rank has all A
// tokens of G' = G/(T*cp) groups and uses the parameters of these groups among those that it holds.
// Without context parallelism S is A and G' is G/T.
//
// Packed sequences (data.h): the state starts anew with each document, and the convolution does not
// reach into the document before.
//
// Inference (cached_tokens.h): the rows are tokens of any requests. The dual form runs over the
// rows of each request in this step, and what they need of earlier ones is the state that its slot
// has.
#pragma once

#include <optional>
#include <string>

#include "fixtures/tensors/torch.h"
#include "workloads/forward/cached_tokens.h"
#include "workloads/forward/forward_pass.h"
#include "workloads/layers/linear.h"

namespace graphproof::workloads {

/// Constants on the device that every mixer uses. Made once, because a capture must not build them
/// from host data.
struct MambaTables {
  /// Larger in size than any sum that it hides: the exponential of the sum of both is 0, and unlike
  /// -inf it cannot lead to NaN.
  static constexpr double kHidden = -1e6;

  MambaTables(const ModelConfig& config, at::Device device);

  /// [A, A] fp32. upto: 1 at (s, t) for s <= t. later: kHidden at (t, s) for s > t. 0 elsewhere.
  at::Tensor upto, later;
};

/// The mixer of one layer.
class Mamba {
 public:
  static constexpr std::int64_t kState = 16;  // Megatron-LM's is 128; these models are small
  static constexpr std::int64_t kWindow = 4;  // tokens of the convolution, as in Megatron-LM
  static constexpr std::int64_t kExpand = 2;  // inner elements per hidden one, as in Megatron-LM
  static constexpr double kNormEpsilon = 1e-5;

  /// `tables` outlives it.
  Mamba(Parameters& parameters, const ModelConfig& config, const Layout& layout,
        const MambaTables& tables, const std::string& name, std::int64_t layer);

  /// The shapes of the state and of the window that a slot has of a layer (CachedStates).
  static std::vector<std::int64_t> state_shape(const ModelConfig& config, const Layout& layout);
  static std::vector<std::int64_t> window_shape(const ModelConfig& config, const Layout& layout);

  /// x [N/P, H] outside the tensor parallel region. Returns the same shape, also outside it. With
  /// ForwardPass::cached the N rows are single tokens of any requests, and the states of their
  /// slots move on. Requires that sequences are not split.
  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass) const;

 private:
  std::int64_t gate_rows() const { return heads_of_group_ * width_; }
  std::int64_t mixed_rows() const { return heads_of_group_ * width_ + 2 * kState; }
  at::Tensor in_use(const at::Tensor& parameter) const;
  at::Tensor of_head(const at::Tensor& parameter) const;
  at::Tensor to_groups(const at::Tensor& x, const ForwardPass& pass) const;
  at::Tensor to_tokens(const at::Tensor& y) const;
  at::Tensor forward_kept(const at::Tensor& x, const CachedStates& cached,
                          const ForwardPass& pass) const;
  at::Tensor convolved_kept(const at::Tensor& x, const CachedStates& cached) const;
  at::Tensor scan_kept(const at::Tensor& mixed, const at::Tensor& steps,
                       const CachedStates& cached) const;
  at::Tensor convolved(const at::Tensor& x, const std::optional<at::Tensor>& apart) const;
  at::Tensor scan(const at::Tensor& mixed, const at::Tensor& steps,
                  const std::optional<at::Tensor>& apart) const;
  at::Tensor normalized(const at::Tensor& x, const ForwardPass& pass) const;

  ModelConfig config_;
  Layout layout_;
  std::size_t layer_;
  const MambaTables& tables_;
  std::int64_t held_groups_, groups_, heads_of_group_, width_;  // G/T, G', R, D
  ColumnParallelLinear in_;
  RowParallelLinear out_;
  at::Tensor window_, window_bias_;             // [G/T * (R*D + 2*W), 4], [G/T * (R*D + 2*W)]
  at::Tensor decay_, step_bias_, skip_, norm_;  // [G/T*R] each, [G/T*R*D]
};

}  // namespace graphproof::workloads
