#include "workloads/layers/mamba.h"

#include <cmath>

#include "fixtures/comm/collectives.h"
#include "workloads/config/precision.h"

namespace graphproof::workloads {
namespace {

/// The first `length` rows and columns of `table`.
at::Tensor square(const at::Tensor& table, std::int64_t length) {
  if (length == table.size(0)) return table;
  return table.narrow(0, 0, length).narrow(1, 0, length);
}

}  // namespace

MambaTables::MambaTables(const ModelConfig& config, at::Device device) {
  if (!config.hybrid) return;
  const at::ScalarType type = wide_type(scalar_type(config.precision));
  upto = at::ones({config.seq_length, config.seq_length}, type).triu().to(device);
  later =
      at::zeros({config.seq_length, config.seq_length}, type)
          .masked_fill(at::ones({config.seq_length, config.seq_length}, at::kBool).triu(1), kHidden)
          .to(device);
}

Mamba::Mamba(Parameters& parameters, const ModelConfig& config, const Layout& layout,
             const MambaTables& tables, const std::string& name, std::int64_t layer)
    : config_(config),
      layout_(layout),
      layer_(static_cast<std::size_t>(layer)),
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
  // Half-lives from less than one token to about ten. In sequences as short as these, both ends of
  // Megatron-LM's range would keep everything or nothing.
  decay_ = of_groups(".A_log", heads_of_group_, {0.7, 0.7});
  step_bias_ = of_groups(".dt_bias", heads_of_group_, {-1.0, 1.0});
  skip_ = of_groups(".D", heads_of_group_, {1.0, 0.5});
  norm_ = of_groups(".norm.weight", gate_rows(), {1.0, 0.1});
}

std::vector<std::int64_t> Mamba::state_shape(const ModelConfig& config, const Layout& layout) {
  return {config.heads / layout.tp, kExpand * config.hidden / config.heads, kState};
}

std::vector<std::int64_t> Mamba::window_shape(const ModelConfig& config, const Layout& layout) {
  return {config.kv_groups / layout.tp, kExpand * config.hidden / config.kv_groups + 2 * kState,
          kWindow - 1};
}

at::Tensor Mamba::forward(const at::Tensor& x, const ForwardPass& pass) const {
  if (pass.cached) return forward_kept(x, pass.cached->states, pass);
  const std::int64_t columns = gate_rows() + mixed_rows() + heads_of_group_;
  const at::Tensor rows =
      to_groups(sequences_of(in_.forward(x, pass), config_.microbatch_size, layout_)
                    .unflatten(2, {held_groups_, columns}),
                pass);  // [B, A, G', *]
  const at::Tensor gate = rows.narrow(3, 0, gate_rows());
  std::optional<at::Tensor> apart;
  if (config_.packed) apart = pass.documents.unsqueeze(2).ne(pass.documents.unsqueeze(1));
  const at::Tensor mixed =
      wide(at::silu(convolved(rows.narrow(3, gate_rows(), mixed_rows()), apart)));
  const at::Tensor steps = at::softplus(
      wide(rows.narrow(3, gate_rows() + mixed_rows(), heads_of_group_)) + of_head(step_bias_));
  const at::Tensor scanned = scan(mixed, steps, apart).to(x.scalar_type());  // [B, A, G', R*D]
  return out_.forward(
      rows_of(to_tokens(normalized(scanned * at::silu(gate), pass)).flatten(2), layout_), pass);
}

/// parameter [G/T*n, ...]. Returns its part for the groups in use, [G', n, ...].
at::Tensor Mamba::in_use(const at::Tensor& parameter) const {
  return parameter.unflatten(0, {held_groups_, -1}).narrow(0, groups_ * layout_.cp_rank, groups_);
}

/// The same in fp32.
at::Tensor Mamba::of_head(const at::Tensor& parameter) const { return wide(in_use(parameter)); }

/// x [B, S, G/T, C], this rank's two chunks of each sequence. Returns [B, A, G', C], whole
/// sequences in order. Uses slices and no index, so that the gradient needs no atomics.
at::Tensor Mamba::to_groups(const at::Tensor& x, const ForwardPass& pass) const {
  const std::int64_t cp = layout_.cp;
  if (cp == 1) return x;
  const at::Tensor sent = x.unflatten(2, {cp, groups_}).permute({2, 0, 1, 3, 4}).contiguous();
  const at::Tensor pieces =
      comm::all_to_all(sent, layout_.cp_group).unflatten(2, {2, -1});  // [cp, B, 2, S/2, G', C]
  const at::Tensor in_order = at::cat({pieces.select(2, 0), pieces.select(2, 1).flip(0)});
  return pass.faults.scan_input(in_order, pieces).transpose(0, 1).flatten(1, 2);
}

/// The inverse: y [B, A, G', C] to [B, S, G/T, C].
at::Tensor Mamba::to_tokens(const at::Tensor& y) const {
  const std::int64_t cp = layout_.cp;
  if (cp == 1) return y;
  const at::Tensor pieces = y.unflatten(1, {2 * cp, -1}).transpose(0, 1);  // [2*cp, B, S/2, G', C]
  const at::Tensor sent = at::cat({pieces.narrow(0, 0, cp), pieces.narrow(0, cp, cp).flip(0)}, 2);
  return comm::all_to_all(sent.contiguous(), layout_.cp_group)
      .permute({1, 2, 0, 3, 4})
      .flatten(2, 3);
}

/// x [B, A, G', C]; apart [B, A, A] bool, only for packed sequences: whether two tokens are in
/// different documents. Returns the weighted sum over each token and the three before it.
at::Tensor Mamba::convolved(const at::Tensor& x, const std::optional<at::Tensor>& apart) const {
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

/// mixed [B, A, G', R*D + 2*W] fp32, steps [B, A, G', R] fp32, apart as for convolved(). Returns
/// [B, A, G', R*D] fp32.
at::Tensor Mamba::scan(const at::Tensor& mixed, const at::Tensor& steps,
                       const std::optional<at::Tensor>& apart) const {
  const std::int64_t batches = mixed.size(0), length = mixed.size(1), batched = batches * groups_,
                     heads = batched * heads_of_group_;
  const at::Tensor values = mixed.narrow(3, 0, gate_rows()).unflatten(3, {heads_of_group_, width_});
  const auto direction = [&](std::int64_t first) {
    return mixed.narrow(3, gate_rows() + first, kState)
        .transpose(1, 2)
        .reshape({batched, length, kState});
  };
  const at::Tensor write = direction(0), read = direction(kState);
  const at::Tensor step = steps.permute({0, 2, 3, 1});  // [B, G', R, A]
  const at::Tensor decays = step * at::exp(of_head(decay_)).unsqueeze(2);
  // The tables are for sequences of the model's length, and serve shorter ones (lengths.h).
  const at::Tensor passed =
      at::mm(decays.reshape({heads, length}),
             square(tables_.upto, length));  // [B*G'*R, A]: sums up to and with each step
  at::Tensor hidden = square(tables_.later, length);
  if (apart)
    hidden = (hidden + apart->to(hidden.scalar_type()) * MambaTables::kHidden)
                 .unsqueeze(1)
                 .expand({-1, heads / batches, -1, -1})
                 .reshape({heads, length, length});
  const at::Tensor kept = at::exp(passed.unsqueeze(1) - passed.unsqueeze(2) + hidden);  // [*, t, s]
  const at::Tensor overlap = at::bmm(read, write.transpose(1, 2)).unsqueeze(1);  // [B*G', 1, t, s]
  const at::Tensor weights = kept.view({batched, heads_of_group_, length, length}) * overlap *
                             step.reshape({batched, heads_of_group_, 1, length});
  const at::Tensor y = at::bmm(weights.reshape({heads, length, length}),
                               values.permute({0, 2, 3, 1, 4}).reshape({heads, length, width_}));
  const at::Tensor back =
      y.view({batches, groups_, heads_of_group_, length, width_}).permute({0, 3, 1, 2, 4});
  return (back + values * of_head(skip_).unsqueeze(2)).flatten(3);
}

namespace {

/// kept [B + 1, ...] out: of every slot that has a row in this step, the value of its last row.
void keep(const at::Tensor& kept, const at::Tensor& of_last, const at::Tensor& last) {
  const at::Tensor of_slots = kept.narrow(0, 0, last.size(0));
  std::vector<std::int64_t> shape(static_cast<std::size_t>(kept.dim()), 1);
  shape[0] = -1;
  of_slots.copy_(at::where(last.ge(0).view(shape), of_last, of_slots));
}

/// What the slots of the rows have kept, [N, ...]; zeros for requests that begin.
at::Tensor kept_of_rows(const at::Tensor& kept, const CachedStates& cached) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(kept.dim()), 1);
  shape[0] = -1;
  return kept.index_select(0, cached.slots).masked_fill(cached.begins.view(shape), 0);
}

}  // namespace

/// x [N, H], in place of forward().
at::Tensor Mamba::forward_kept(const at::Tensor& x, const CachedStates& cached,
                               const ForwardPass& pass) const {
  const at::Tensor rows = in_.forward(x, pass).unflatten(
      1, {groups_, gate_rows() + mixed_rows() + heads_of_group_});  // [N, G', *]
  const at::Tensor gate = rows.narrow(2, 0, gate_rows());
  const at::Tensor mixed =
      wide(at::silu(convolved_kept(rows.narrow(2, gate_rows(), mixed_rows()), cached)));
  const at::Tensor steps = at::softplus(
      wide(rows.narrow(2, gate_rows() + mixed_rows(), heads_of_group_)) + of_head(step_bias_));
  const at::Tensor scanned =
      scan_kept(mixed, steps, cached).to(x.scalar_type()) * at::silu(gate);  // [N, G', R*D]
  return out_.forward(normalized(scanned.unsqueeze(0), pass).squeeze(0).flatten(1), pass);
}

/// x [N, G', C], in place of convolved().
at::Tensor Mamba::convolved_kept(const at::Tensor& x, const CachedStates& cached) const {
  const at::Tensor weights = in_use(window_);                                // [G', C, 4]
  const at::Tensor ahead = kept_of_rows(cached.windows.at(layer_), cached);  // [N, G', C, 3]
  const at::Tensor place =
      cached.upto.sum({0}).to(at::kLong).sub(1).view({-1, 1, 1, 1});  // among its request's rows
  const std::int64_t rows = x.size(0);
  std::vector<at::Tensor> window{x};  // each row, and those before it
  for (std::int64_t back = 1; back < kWindow; ++back) {
    const at::Tensor index = (place + (kWindow - 1 - back)).clamp_max(kWindow - 2);
    const at::Tensor earlier =
        ahead.gather(3, index.expand({rows, x.size(1), x.size(2), 1})).squeeze(3);
    const at::Tensor in_step = at::constant_pad_nd(x, {0, 0, 0, 0, back, 0}).narrow(0, 0, rows);
    window.push_back(at::where(place.squeeze(3).ge(back), in_step, earlier));
  }
  at::Tensor sum = in_use(window_bias_);
  for (std::int64_t back = 0; back < kWindow; ++back)
    sum = sum + window[static_cast<std::size_t>(back)] * weights.select(2, kWindow - 1 - back);
  std::vector<at::Tensor> newest(window.rend() - (kWindow - 1), window.rend());
  keep(cached.windows.at(layer_), at::stack(newest, 3).index_select(0, cached.last.clamp_min(0)),
       cached.last);
  return sum;
}

/// mixed [N, G', R*D + 2*W] fp32, steps [N, G', R] fp32. Returns [N, G', R*D] fp32.
at::Tensor Mamba::scan_kept(const at::Tensor& mixed, const at::Tensor& steps,
                            const CachedStates& cached) const {
  const std::int64_t rows = mixed.size(0), heads = groups_ * heads_of_group_;
  const at::Tensor values = mixed.narrow(2, 0, gate_rows()).unflatten(2, {heads_of_group_, width_});
  const at::Tensor write = mixed.narrow(2, gate_rows(), kState),
                   read = mixed.narrow(2, gate_rows() + kState, kState);  // [N, G', W]
  const at::Tensor decays = steps * at::exp(of_head(decay_));
  const at::Tensor passed = at::mm(decays.reshape({rows, heads}).t(),
                                   cached.upto);  // [G'*R, N]: sums up to and with each row
  const at::Tensor hidden = (1 - cached.upto.t()) * MambaTables::kHidden;
  const at::Tensor kept =
      at::exp(passed.unsqueeze(1) - passed.unsqueeze(2) + hidden);  // [G'*R, t, s]
  const at::Tensor overlap =
      at::bmm(read.transpose(0, 1), write.permute({1, 2, 0})).unsqueeze(1);  // [G', 1, t, s]
  const at::Tensor step = steps.permute({1, 2, 0});                          // [G', R, N]
  const at::Tensor weights =
      kept.view({groups_, heads_of_group_, rows, rows}) * overlap * step.unsqueeze(2);
  const at::Tensor of_step = at::bmm(weights.reshape({heads, rows, rows}),
                                     values.permute({1, 2, 0, 3}).reshape({heads, rows, width_}));

  // What the state has of earlier steps: it decays up to each row.
  const at::Tensor& states = cached.states.at(layer_);
  const at::Tensor before = kept_of_rows(states, cached);     // [N, G'*R, D, W]
  const at::Tensor left = at::exp(-passed).t().unsqueeze(2);  // [N, G'*R, 1]
  const at::Tensor of_heads =
      read.unsqueeze(2).expand({-1, -1, heads_of_group_, -1}).reshape({rows, heads, 1, kState});
  const at::Tensor earlier = (before * of_heads).sum({3}) * left;

  // The state after the last row of each slot.
  const at::Tensor last = cached.last.clamp_min(0);
  const at::Tensor written = (values * steps.unsqueeze(3)).unsqueeze(4) *
                             write.unsqueeze(2).unsqueeze(3);  // [N, G', R, D, W]
  const at::Tensor added = at::bmm(
      kept.index_select(1, last),
      written.permute({1, 2, 0, 3, 4}).reshape({heads, rows, width_ * kState}));  // [G'*R, B, D*W]
  keep(states,
       before.index_select(0, last) * left.index_select(0, last).unsqueeze(3) +
           added.transpose(0, 1).unflatten(2, {width_, kState}),
       cached.last);

  const at::Tensor y = of_step.transpose(0, 1) + earlier;  // [N, G'*R, D]
  return (y.unflatten(1, {groups_, heads_of_group_}) + values * of_head(skip_).unsqueeze(2))
      .flatten(2);
}

/// x [B, A, G', R*D]. The RMS norm over each group, in fp32, so that it does not depend on the
/// layout.
at::Tensor Mamba::normalized(const at::Tensor& x, const ForwardPass& pass) const {
  const at::Tensor input = wide(x), squares = input * input;
  const at::Tensor mean_square =
      pass.faults.mean_square(at::mean(squares, {3}, /*keepdim=*/true), squares);
  return (input * at::rsqrt(mean_square + kNormEpsilon) * of_head(norm_)).to(x.scalar_type());
}

}  // namespace graphproof::workloads
