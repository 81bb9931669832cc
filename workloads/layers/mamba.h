// The mixer of a Mamba-2 layer (Dao and Gu 2024) as Megatron-LM's MambaMixer: one projection makes
// gate, values, the directions in which the state is written and read, and step sizes; a short
// causal convolution runs over all but gate and step sizes; the selective scan follows, then a norm
// under the gate and the projection back. Heads are split over the T tensor parallel ranks.
//
// The scan h(t) = exp(a(t)) h(t-1) + d(t) x(t) b(t)', y(t) = h(t) c(t) + D x(t), with a(t) =
// -exp(A) d(t), is computed in its dual form, all steps at once: y(t) is the sum over s <= t of
// (c(t) . b(s)) exp(a(s+1) + ... + a(t)) d(s) x(s). Library operators alone, no scan kernel: sums
// of a(t) are a product with a triangle of ones, because a cumulative sum has no fixed order on a
// GPU.
//
// G groups that share b and c, as Megatron-LM's --mamba-num-groups, here kv_groups; R = heads/G
// heads of a group, D = 2*H/heads elements of a head, W = 16 elements of state each; N = B*S
// tokens, P parts of a sequence (tensor_parallel.h). Rows of the projection lie group by group: R*D
// of the gate, R*D values, W of b, W of c, R step sizes; so a shard holds whole groups. A, D and
// the step sizes' bias, which upstream keeps in fp32, have the model's type.
//
// Context parallel ranks exchange tokens for groups in front of convolution and scan, and back
// behind the norm, as Megatron-LM's MambaContextParallel: an all-to-all each, so that every rank
// has all A tokens of G/(T*cp) groups, and uses those groups' parameters of all that it holds. G'
// groups below are those; without context parallelism S is A and G' is G/T.
//
// Packed sequences (data.h): the state begins anew with each document, and the convolution reaches
// no farther back.
#pragma once

#include <optional>
#include <string>

#include "fixtures/comm/collectives.h"
#include "fixtures/tensors/torch.h"
#include "workloads/config/precision.h"
#include "workloads/forward/forward_pass.h"
#include "workloads/layers/linear.h"

namespace graphproof::workloads {

/// Constants of every mixer, on the device, made once: a capture must not build them from host
/// data.
struct MambaTables {
  /// Beyond the largest sum that it hides: exp of the two together is 0, and unlike -inf it has no
  /// NaN behind it.
  static constexpr double kHidden = -1e6;

  MambaTables(const ModelConfig& config, at::Device device) {
    if (!config.hybrid) return;
    upto = at::ones({config.seq_length, config.seq_length}, at::kFloat).triu().to(device);
    later = at::zeros({config.seq_length, config.seq_length}, at::kFloat)
                .masked_fill(at::ones({config.seq_length, config.seq_length}, at::kBool).triu(1),
                             kHidden)
                .to(device);
  }

  at::Tensor upto,
      later;  // [S, S] fp32: 1 at (s, t) for s <= t; a large negative number at (t, s) for s > t
};

class Mamba {
 public:
  static constexpr std::int64_t kState = 16;  // small beside Megatron-LM's 128, as the models are
  static constexpr std::int64_t kWindow = 4;  // of the convolution, upstream's
  static constexpr std::int64_t kExpand = 2;  // inner elements of a hidden one, upstream's
  static constexpr double kNormEpsilon = 1e-5;

  Mamba(Parameters& parameters, const ModelConfig& config, const Layout& layout,
        const MambaTables& tables, const std::string& name)
      : config_(config),
        layout_(layout),
        tables_(tables),
        held_groups_(config.kv_groups / layout.tp),
        groups_(held_groups_ / layout.cp),
        heads_of_group_(config.heads / config.kv_groups),
        width_(kExpand * config.hidden / config.heads),
        in_(parameters, layout, name + ".in", config.hidden,
            config.kv_groups * (gate_rows() + mixed_rows() + heads_of_group_), config.linear_bias,
            config.grad_accumulation_fusion),
        out_(parameters, layout, name + ".out", kExpand * config.hidden, config.hidden,
             config.linear_bias, 1.0 / std::sqrt(2.0 * static_cast<double>(config.layers)),
             config.grad_accumulation_fusion) {
    const Shard mine{0, layout.tp_rank, layout.tp};
    const auto of_groups = [&](const char* what, std::int64_t rows, Distribution distribution) {
      return parameters.create(name + what, {config.kv_groups * rows}, mine, distribution);
    };
    window_ = parameters.create(name + ".conv.weight", {config.kv_groups * mixed_rows(), kWindow},
                                mine, weight_distribution(kWindow, 1.0));
    window_bias_ = of_groups(".conv.bias", mixed_rows(), kBiasDistribution);
    // Half-lives from less than one token to about ten: in short sequences both ends of upstream's
    // range would be all or nothing.
    decay_ = of_groups(".A_log", heads_of_group_, {0.7, 0.7});
    step_bias_ = of_groups(".dt_bias", heads_of_group_, {-1.0, 1.0});
    skip_ = of_groups(".D", heads_of_group_, {1.0, 0.5});
    norm_ = of_groups(".norm.weight", gate_rows(), {1.0, 0.1});
  }

  /// x [N/P, H] outside the region; so is what is returned, of the same shape.
  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass) const {
    const std::int64_t columns = gate_rows() + mixed_rows() + heads_of_group_;
    const at::Tensor rows =
        to_groups(sequences_of(in_.forward(x, pass), config_.microbatch_size, layout_)
                      .unflatten(2, {held_groups_, columns}),
                  pass);  // [B, A, G', *]
    const at::Tensor gate = rows.narrow(3, 0, gate_rows());
    std::optional<at::Tensor> apart;
    if (config_.packed) apart = pass.documents.unsqueeze(2).ne(pass.documents.unsqueeze(1));
    const at::Tensor mixed =
        at::silu(convolved(rows.narrow(3, gate_rows(), mixed_rows()), apart)).to(at::kFloat);
    const at::Tensor steps =
        at::softplus(rows.narrow(3, gate_rows() + mixed_rows(), heads_of_group_).to(at::kFloat) +
                     of_head(step_bias_));
    const at::Tensor scanned = scan(mixed, steps, apart).to(x.scalar_type());  // [B, A, G', R*D]
    return out_.forward(
        rows_of(to_tokens(normalized(scanned * at::silu(gate), pass)).flatten(2), layout_), pass);
  }

 private:
  std::int64_t gate_rows() const { return heads_of_group_ * width_; }
  std::int64_t mixed_rows() const { return heads_of_group_ * width_ + 2 * kState; }
  /// A parameter [G/T*n, ...]: of the groups in use [G', n, ...].
  at::Tensor in_use(const at::Tensor& parameter) const {
    return parameter.unflatten(0, {held_groups_, -1}).narrow(0, groups_ * layout_.cp_rank, groups_);
  }
  at::Tensor of_head(const at::Tensor& parameter) const {
    return in_use(parameter).to(at::kFloat);
  }  // [G', *] fp32

  /// x [B, S, G/T, C], this rank's two pieces of each sequence, to [B, A, G', C], whole sequences
  /// in order. Made of pieces and by no index, so that their gradient needs no atomics.
  at::Tensor to_groups(const at::Tensor& x, const ForwardPass& pass) const {
    const std::int64_t cp = layout_.cp;
    if (cp == 1) return x;
    const at::Tensor sent = x.unflatten(2, {cp, groups_}).permute({2, 0, 1, 3, 4}).contiguous();
    const at::Tensor pieces =
        comm::all_to_all(sent, layout_.cp_group).unflatten(2, {2, -1});  // [cp, B, 2, S/2, G', C]
    const at::Tensor in_order = at::cat({pieces.select(2, 0), pieces.select(2, 1).flip(0)});
    return pass.faults.scanned(in_order, pieces).transpose(0, 1).flatten(1, 2);
  }

  /// The way back: y [B, A, G', C] to [B, S, G/T, C].
  at::Tensor to_tokens(const at::Tensor& y) const {
    const std::int64_t cp = layout_.cp;
    if (cp == 1) return y;
    const at::Tensor pieces =
        y.unflatten(1, {2 * cp, -1}).transpose(0, 1);  // [2*cp, B, S/2, G', C]
    const at::Tensor sent = at::cat({pieces.narrow(0, 0, cp), pieces.narrow(0, cp, cp).flip(0)}, 2);
    return comm::all_to_all(sent.contiguous(), layout_.cp_group)
        .permute({1, 2, 0, 3, 4})
        .flatten(2, 3);
  }

  // x [B, A, G', C], apart [B, A, A] bool, packed: each channel's sum over this token and the three
  // before it.
  at::Tensor convolved(const at::Tensor& x, const std::optional<at::Tensor>& apart) const {
    const at::Tensor weights = in_use(window_);  // [G', C, 4]
    at::Tensor sum = in_use(window_bias_);
    for (std::int64_t back = 0; back < kWindow; ++back) {
      at::Tensor before = at::constant_pad_nd(x, {0, 0, 0, 0, back, 0}).narrow(1, 0, x.size(1));
      if (apart && back > 0)
        before = before.masked_fill(
            at::constant_pad_nd(apart->diagonal(-back, 1, 2), {back, 0}).unsqueeze(2).unsqueeze(3),
            0);
      sum = sum + before * weights.select(2, kWindow - 1 - back);
    }
    return sum;
  }

  // mixed [B, A, G', R*D + 2*W] fp32, steps [B, A, G', R] fp32, apart [B, A, A] bool, packed.
  // Returns [B, A, G', R*D] fp32.
  at::Tensor scan(const at::Tensor& mixed, const at::Tensor& steps,
                  const std::optional<at::Tensor>& apart) const {
    const std::int64_t batches = mixed.size(0), length = mixed.size(1), batched = batches * groups_,
                       heads = batched * heads_of_group_;
    const at::Tensor values =
        mixed.narrow(3, 0, gate_rows()).unflatten(3, {heads_of_group_, width_});
    const auto direction = [&](std::int64_t first) {
      return mixed.narrow(3, gate_rows() + first, kState)
          .transpose(1, 2)
          .reshape({batched, length, kState});
    };
    const at::Tensor write = direction(0), read = direction(kState);
    const at::Tensor step = steps.permute({0, 2, 3, 1});  // [B, G', R, A]
    const at::Tensor decays = step * at::exp(of_head(decay_)).unsqueeze(2);
    const at::Tensor passed = at::mm(decays.reshape({heads, length}),
                                     tables_.upto);  // [B*G'*R, A]: up to and with each step
    at::Tensor hidden = tables_.later;
    if (apart)
      hidden = (hidden + apart->to(at::kFloat) * MambaTables::kHidden)
                   .unsqueeze(1)
                   .expand({-1, heads / batches, -1, -1})
                   .reshape({heads, length, length});
    const at::Tensor kept =
        at::exp(passed.unsqueeze(1) - passed.unsqueeze(2) + hidden);  // [*, t, s]
    const at::Tensor overlap =
        at::bmm(read, write.transpose(1, 2)).unsqueeze(1);  // [B*G', 1, t, s]
    const at::Tensor weights = kept.view({batched, heads_of_group_, length, length}) * overlap *
                               step.reshape({batched, heads_of_group_, 1, length});
    const at::Tensor y = at::bmm(weights.reshape({heads, length, length}),
                                 values.permute({0, 2, 3, 1, 4}).reshape({heads, length, width_}));
    const at::Tensor back =
        y.view({batches, groups_, heads_of_group_, length, width_}).permute({0, 3, 1, 2, 4});
    return (back + values * of_head(skip_).unsqueeze(2)).flatten(3);
  }

  // x [B, A, G', R*D]: root mean square norm within a group, in fp32, so that it is the same on
  // every layout.
  at::Tensor normalized(const at::Tensor& x, const ForwardPass& pass) const {
    const at::Tensor wide = x.to(at::kFloat), squares = wide * wide;
    const at::Tensor mean_square =
        pass.faults.mean_square(at::mean(squares, {3}, /*keepdim=*/true), squares);
    return (wide * at::rsqrt(mean_square + kNormEpsilon) * of_head(norm_)).to(x.scalar_type());
  }

  ModelConfig config_;
  Layout layout_;
  const MambaTables& tables_;
  std::int64_t held_groups_, groups_, heads_of_group_, width_;  // G/T, G', R, D
  ColumnParallelLinear in_;
  RowParallelLinear out_;
  at::Tensor window_, window_bias_;             // [G/T * (R*D + 2*W), 4], [G/T * (R*D + 2*W)]
  at::Tensor decay_, step_bias_, skip_, norm_;  // [G/T*R] each, [G/T*R*D]
};

}  // namespace graphproof::workloads
