#include "workloads/layers/attention.h"

#include <cmath>
#include <tuple>
#include <utility>

#include "fixtures/comm/collectives.h"
#include "workloads/config/precision.h"
#include "workloads/forward/cached_tokens.h"
#include "workloads/forward/recompute.h"
#include "workloads/layers/context_parallel.h"
#include "workloads/layers/fp8_weights.h"

namespace graphproof::workloads {

AttentionTables::AttentionTables(const ModelConfig& config, const Layout& layout, at::Device device,
                                 faults::FaultHooks& faults) {
  const std::int64_t length = layout.own_length(config), width = config.rotary_width();
  const at::ScalarType type = scalar_type(config.precision);
  at::Tensor positions = own_positions(config, layout);
  const at::Tensor later =
      config.bidirectional
          ? at::zeros({length, config.seq_length}, at::kBool)
          : gathered_positions(config, layout).unsqueeze(0).gt(positions.unsqueeze(1));
  causal = at::zeros({length, config.seq_length}, type)
               .masked_fill(later, kMasked)
               .repeat({config.heads / config.kv_groups, 1})
               .unsqueeze(0)
               .to(device);
  if (config.packed) {
    own = positions.to(device);
    all = gathered_positions(config, layout).to(device);
    upto = later.logical_not().to(device);
  }
  if (!config.rotates()) return;
  positions = faults.rotary_positions(positions, layout);
  const at::Tensor exponent = at::arange(0, width, 2, at::kDouble) / static_cast<double>(width);
  const auto angles = [&](const at::Tensor& of) {
    const at::Tensor angle = at::outer(of.to(at::kDouble), at::pow(kRotaryBase, -exponent));
    return at::cat({angle, angle}, 1).to(wide_type(type)).view({-1, 1, 1, width});
  };
  const auto cosines = [&](const at::Tensor& both) { return at::cos(both).to(type).to(device); };
  const auto sines = [&](const at::Tensor& both) {
    return at::cat({-at::sin(both).narrow(3, 0, width / 2),
                    at::sin(both).narrow(3, width / 2, width / 2)},
                   3)
        .to(type)
        .to(device);
  };
  const at::Tensor in_order = at::arange(config.seq_length, at::kLong);
  const at::Tensor own_angles = angles(config.packed ? in_order : positions);
  cosine = cosines(own_angles);
  sine = sines(own_angles);
  if (layout.cp == 1 || config.packed) return;
  cosine_of_all = cosines(angles(in_order));
  sine_of_all = sines(angles(in_order));
}

Attention::Attention(Parameters& parameters, const ModelConfig& config, const Layout& layout,
                     const AttentionTables& tables, const std::string& name, std::int64_t layer,
                     DelayedGradients* delayed)
    : config_(config),
      layout_(layout),
      layer_(layer),
      tables_(tables),
      groups_(config.kv_groups / layout.tp),
      heads_of_group_(config.heads / config.kv_groups),
      width_(config.query_width()),
      value_width_(config.head_width()),
      qkv_(config.multi_latent_attention
               ? std::nullopt
               : std::optional<ColumnParallelLinear>(
                     std::in_place, parameters, layout, name + ".qkv", config.hidden,
                     (config.heads + 2 * config.kv_groups) * width_, config.qkv_bias,
                     config.grad_accumulation_fusion, delayed)),
      latent_(config.multi_latent_attention
                  ? std::optional<LatentProjections>(std::in_place, parameters, config, layout,
                                                     name, delayed)
                  : std::nullopt),
      projection_(parameters, layout, name + ".projection", config.hidden, config.hidden,
                  config.linear_bias, 1.0 / std::sqrt(2.0 * static_cast<double>(config.layers)),
                  config.grad_accumulation_fusion, delayed) {}

at::Tensor Attention::forward(const at::Tensor& x, const ForwardPass& pass) const {
  if (pass.cached && latent_) return projection_.forward(attend_to_latents(x, pass), pass);
  if (pass.cached) {
    const at::Tensor mixed =
        qkv_->forward(x, pass).unflatten(1, {groups_, heads_of_group_ + 2, width_});
    return projection_.forward(attend_to_kept(mixed, *pass.cached), pass);
  }
  const std::int64_t rows = config_.microbatch_size,
                     length = x.size(0) * layout_.sequence_parts() / rows;
  const AttentionInputs inputs =
      config_.packed ? inputs_within(pass.documents) : inputs_up_to(length);
  const Heads heads = latent_ ? from_latents(x, inputs, pass) : projected(x, inputs, pass);
  const auto core = [this, pass, mask = inputs.mask](const std::vector<at::Tensor>& given,
                                                     bool again) {
    return core_attention(given[0], given[1], given[2], mask, pass, again);
  };
  const std::vector<at::Tensor> given{heads.query, heads.key, heads.value};
  const bool recomputed = config_.recompute.of(RecomputedPart::core_attn);
  const at::Tensor attended = recomputed
                                  ? recompute(RecomputedPart::core_attn, pass.faults, core, given)
                                  : core(given, pass.again);
  const at::Tensor context = attended.view({rows, groups_, heads_of_group_, length, value_width_})
                                 .permute({0, 3, 1, 2, 4});  // [B, S, G/T, R, D]
  return projection_.forward(rows_of(context.flatten(2), layout_), pass);
}

/// x [N/P, H].
Attention::Heads Attention::projected(const at::Tensor& x, const AttentionInputs& inputs,
                                      const ForwardPass& pass) const {
  const std::int64_t rows = config_.microbatch_size;
  const at::Tensor mixed = sequences_of(qkv_->forward(x, pass), rows, layout_)
                               .unflatten(2, {groups_, heads_of_group_ + 2, width_});
  const std::int64_t length = mixed.size(1);
  const std::int64_t batches = rows * groups_, queries = heads_of_group_ * length;
  // Splits instead of slices: the gradient of each slice would be a whole tensor of zeros around
  // it, and these would be added.
  const std::vector<at::Tensor> parts =
      mixed.split_with_sizes({heads_of_group_ + 1, 1}, 3);  // queries and key; value
  const at::Tensor rotated = config_.rotates() ? rotate(parts[0], inputs) : parts[0];
  const std::vector<at::Tensor> query_and_key = rotated.split_with_sizes({heads_of_group_, 1}, 3);
  return {query_and_key[0].permute({0, 2, 3, 1, 4}).reshape({batches, queries, width_}),
          query_and_key[1].squeeze(3).permute({0, 2, 3, 1}).reshape({batches, width_, length}),
          parts[1].squeeze(3).permute({0, 2, 1, 3}).reshape({batches, length, width_})};
}

/// x [N/P, H]. The latents are kept, and with recompute of mla_up_proj what is made of them is made
/// again.
Attention::Heads Attention::from_latents(const at::Tensor& x, const AttentionInputs& inputs,
                                         const ForwardPass& pass) const {
  const Latents latents = latent_->down(x, pass);
  at::Tensor all;
  if (config_.recompute.of(RecomputedPart::mla_up_proj)) {
    const auto up = [this, inputs, pass = with_kept_scales(pass)](
                        const std::vector<at::Tensor>& given, bool again) {
      ForwardPass run = pass;
      run.again = run.again || again;
      const at::Tensor made = up_projected({given[0], given[1], given[2]}, inputs, run);
      pass.recomputes.note(RecomputedPart::mla_up_proj, layer_, made, again);
      return made;
    };
    all = recompute(RecomputedPart::mla_up_proj, pass.faults, up,
                    {latents.query, latents.key_value, latents.rotary}, latent_->up_parameters());
  } else {
    all = up_projected(latents, inputs, pass);
  }
  const std::vector<at::Tensor> parts = all.split_with_sizes({width_, width_, value_width_}, 2);
  return {parts[0], parts[1].transpose(1, 2), parts[2]};
}

/// Queries, keys and values of each head one after the other: [B*G/T, S, 2*E + D], where a group
/// has one head.
at::Tensor Attention::up_projected(const Latents& latents, const AttentionInputs& inputs,
                                   const ForwardPass& pass) const {
  const std::int64_t rows = config_.microbatch_size;
  const UpProjected up = latent_->up(latents, pass);
  const std::vector<std::int64_t> sizes{value_width_, width_ - value_width_};
  const std::vector<at::Tensor> query =
      sequences_of(up.query, rows, layout_).split_with_sizes(sizes, 3);  // [B, S, G/T, ..]
  const std::vector<at::Tensor> key_value =
      sequences_of(up.key_value, rows, layout_).split_with_sizes({value_width_, value_width_}, 3);
  const at::Tensor of_keys = sequences_of(up.rotary, rows, layout_).unsqueeze(2);  // [B, S, 1, W]
  const std::vector<at::Tensor> rotated =
      rotate(at::cat({query[1], of_keys}, 2).unsqueeze(3), inputs)
          .squeeze(3)
          .split_with_sizes({groups_, 1}, 2);
  return at::cat({query[0], rotated[0], key_value[0], rotated[1].expand({-1, -1, groups_, -1}),
                  key_value[1]},
                 3)
      .transpose(1, 2)
      .flatten(0, 1);
}

/// query [B*G/T, R*S, E], key [B*G/T, E, S], value [B*G/T, S, D]. Returns [B*G/T, R*S, D]. The
/// softmax is computed in fp32 (Megatron-LM's --attention-softmax-in-fp32). The exchange of keys
/// and values is part of it, so recompute exchanges them again.
at::Tensor Attention::core_attention(const at::Tensor& query, const at::Tensor& key,
                                     const at::Tensor& value, const at::Tensor& mask,
                                     const ForwardPass& pass, bool again) const {
  const DropoutPlace place{layer_, DropoutSite::core_attention, again};
  at::Tensor context;
  if (layout_.cp == 1) {
    context = attend_to_all(query, key, value, mask, pass, place);
  } else {
    const at::Tensor own = at::cat({key.transpose(1, 2), value}, 2);  // [B*G/T, S, E + D]
    const at::Tensor sent = pass.faults.sent_keys_and_values(own);
    if (layout_.cp_comm_type == CpCommType::all_gather) {
      const at::Tensor all = gathered(sent);
      context = attend_to_all(query, keys_of(all), values_of(all), mask, pass, place);
    } else {
      context = ring_attention(query, own, sent, mask, pass, place);
    }
  }
  pass.recomputes.note(RecomputedPart::core_attn, layer_, context, again);
  return context;
}

/// key [B*G/T, E, A], value [B*G/T, A, D].
at::Tensor Attention::attend_to_all(const at::Tensor& query, const at::Tensor& key,
                                    const at::Tensor& value, const at::Tensor& mask,
                                    const ForwardPass& pass, DropoutPlace place) const {
  if (config_.attention_kernel != AttentionKernel::math) return attend_fused(query, key, value);
  const at::Tensor scores = at::baddbmm(mask, query, key, /*beta=*/1, /*alpha=*/scale());
  const at::Tensor probabilities =
      pass.dropout.apply(at::softmax(wide(scores), -1).to(scores.scalar_type()), place);
  return at::bmm(probabilities, value);
}

/// The shapes of attend_to_all().
at::Tensor Attention::attend_fused(const at::Tensor& query, const at::Tensor& key,
                                   const at::Tensor& value) const {
  const std::int64_t batches = query.size(0), length = value.size(1);
  const std::vector<std::int64_t> heads{batches, heads_of_group_, length, width_};
  const at::Tensor q = query.view(heads);
  const at::Tensor k = key.transpose(1, 2).unsqueeze(1).expand(heads).contiguous(),
                   v = value.unsqueeze(1).expand(heads).contiguous();
  const at::Tensor context =
      config_.attention_kernel == AttentionKernel::flash
          ? std::get<0>(at::_scaled_dot_product_flash_attention(
                q, k, v, /*dropout_p=*/0, /*is_causal=*/true, /*return_debug_mask=*/false, scale()))
          : std::get<0>(at::_scaled_dot_product_efficient_attention(
                q, k, v, /*attn_bias=*/std::nullopt, /*compute_log_sumexp=*/true, /*dropout_p=*/0,
                /*is_causal=*/true, scale()));
  return context.reshape(query.sizes());
}

/// mixed [N, G/T, R+2, D]: queries, key and value of each token. Returns [N, G/T*R*D].
at::Tensor Attention::attend_to_kept(const at::Tensor& mixed, const CachedTokens& cached) const {
  const std::int64_t tokens = mixed.size(0), kept = cached.read.size(1);
  const at::Tensor rotated =
      rotate_to(cached.positions, mixed.narrow(2, 0, heads_of_group_ + 1));  // [N, G/T, R+1, D]
  const auto index = static_cast<std::size_t>(layer_);
  const at::Tensor &keys = cached.keys.at(index), &values = cached.values.at(index);
  keys.index_copy_(0, cached.written, rotated.select(2, heads_of_group_));
  values.index_copy_(0, cached.written, mixed.select(2, heads_of_group_ + 1));
  const at::Tensor entries = cached.read.flatten();
  const auto of_request = [&](const at::Tensor& all) {  // [N*G/T, S, D]
    return all.index_select(0, entries)
        .view({tokens, kept, groups_, width_})
        .transpose(1, 2)
        .reshape({tokens * groups_, kept, width_});
  };
  const at::Tensor query =
      rotated.narrow(2, 0, heads_of_group_).reshape({tokens * groups_, heads_of_group_, width_});
  const at::Tensor mask = cached.mask.unsqueeze(1)
                              .expand({tokens, groups_, 1, kept})
                              .reshape({tokens * groups_, 1, kept});
  const at::Tensor scores =
      at::baddbmm(mask, query, of_request(keys).transpose(1, 2), /*beta=*/1, /*alpha=*/scale());
  const at::Tensor shares = at::softmax(wide(scores), -1).to(scores.scalar_type());
  return at::bmm(shares, of_request(values)).view({tokens, groups_ * heads_of_group_ * width_});
}

/// x [N, H]. Returns [N, G/T*D]. Keys and values are made of the latents that are kept.
at::Tensor Attention::attend_to_latents(const at::Tensor& x, const ForwardPass& pass) const {
  const CachedTokens& cached = *pass.cached;
  const std::int64_t tokens = x.size(0), kept = cached.read.size(1),
                     rotated = width_ - value_width_;
  const Latents latents = latent_->down(x, pass);
  const std::vector<at::Tensor> query =
      latent_->queries(latents.query, pass).split_with_sizes({value_width_, rotated}, 2);
  const at::Tensor rotary = rotate_to(pass.faults.kept_positions(cached.positions),
                                      latents.rotary.unsqueeze(1).unsqueeze(1))
                                .flatten(1);  // [N, W]
  const at::Tensor& all = cached.latents.at(static_cast<std::size_t>(layer_));
  all.index_copy_(0, cached.written, at::cat({latents.key_value, rotary}, 1));
  const std::vector<at::Tensor> read =
      all.index_select(0, cached.read.flatten())
          .split_with_sizes({all.size(1) - rotated, rotated}, 1);  // [N*S, K], [N*S, W]
  const std::vector<at::Tensor> made =
      latent_->keys_and_values(read[0], pass)
          .split_with_sizes({value_width_, value_width_}, 2);  // [N*S, G/T, D] each
  const auto of_heads = [&](const at::Tensor& of_kept) {       // [N*G/T, S, *]
    return of_kept.unflatten(0, {tokens, kept}).transpose(1, 2).flatten(0, 1);
  };
  const at::Tensor key =
      of_heads(at::cat({made[0], read[1].unsqueeze(1).expand({-1, groups_, -1})}, 2));
  const at::Tensor asked =
      at::cat({query[0], rotate_to(cached.positions, query[1].unsqueeze(2)).squeeze(2)}, 2)
          .reshape({tokens * groups_, 1, width_});
  const at::Tensor mask = cached.mask.unsqueeze(1)
                              .expand({tokens, groups_, 1, kept})
                              .reshape({tokens * groups_, 1, kept});
  const at::Tensor scores =
      at::baddbmm(mask, asked, key.transpose(1, 2), /*beta=*/1, /*alpha=*/scale());
  const at::Tensor shares = at::softmax(wide(scores), -1).to(scores.scalar_type());
  return at::bmm(shares, of_heads(made[1])).view({tokens, groups_ * value_width_});
}

/// own [B*G/T, S, E + D]. Returns [B*G/T, A, E + D], rank by rank.
at::Tensor Attention::gathered(const at::Tensor& own) const {
  const at::Tensor all = comm::all_gather(own, layout_.cp_group)
                             .view({layout_.cp, own.size(0), own.size(1), own.size(2)});
  return all.transpose(0, 1).reshape({own.size(0), layout_.cp * own.size(1), own.size(2)});
}

/// own [B*G/T, S, E + D]: the keys and values of this rank; `sent` is what travels of them.
at::Tensor Attention::ring_attention(const at::Tensor& query, const at::Tensor& own,
                                     const at::Tensor& sent, const at::Tensor& mask,
                                     const ForwardPass& pass, DropoutPlace place) const {
  const std::int64_t length = own.size(1);
  const at::Tensor kept = pass.dropout.mask({query.size(0), query.size(1), layout_.cp * length},
                                            query.options(), place);
  at::Tensor piece = own, context;
  // fp32: [B*G/T, R*S, D], and the logarithms of the sums of exponentials [B*G/T, R*S, 1].
  std::vector<at::Tensor> contexts, sums;
  for (int hop = 0; hop < layout_.cp; ++hop) {
    if (hop > 0) piece = comm::ring_shift(hop == 1 ? sent : piece, 1, layout_.cp_group);
    const std::int64_t first = (layout_.cp_rank - hop + layout_.cp) % layout_.cp * length;
    const at::Tensor scores =
        wide(at::baddbmm(mask.narrow(2, first, length), query, keys_of(piece), /*beta=*/1,
                         /*alpha=*/scale()));
    sums.push_back(at::logsumexp(scores, {-1}, /*keepdim=*/true));
    const at::Tensor probabilities =
        pass.dropout.apply(at::softmax(scores, -1).to(query.scalar_type()),
                           kept.defined() ? kept.narrow(2, first, length) : kept);
    contexts.push_back(wide(at::bmm(probabilities, values_of(piece))));
  }
  const at::Tensor shares = at::softmax(at::cat(sums, 2), 2);  // [B*G/T, R*S, cp]
  for (int hop = 0; hop < layout_.cp; ++hop) {
    const at::Tensor part = contexts[static_cast<std::size_t>(hop)] * shares.narrow(2, hop, 1);
    context = hop == 0 ? part : context + part;
  }
  return context.to(query.scalar_type());
}

at::Tensor Attention::keys_of(const at::Tensor& both) const {
  return both.narrow(2, 0, width_).transpose(1, 2);
}

at::Tensor Attention::values_of(const at::Tensor& both) const {
  return both.narrow(2, width_, value_width_);
}

double Attention::scale() const { return 1.0 / std::sqrt(static_cast<double>(width_)); }

/// For sequences of which this rank has `length` tokens; steps may be shorter than the model's
/// sequences (lengths.h).
AttentionInputs Attention::inputs_up_to(std::int64_t length) const {
  if (length == layout_.own_length(config_)) return {tables_.causal, tables_.cosine, tables_.sine};
  if (layout_.cp > 1) return inputs_of_parts(length);
  const at::Tensor causal = tables_.causal.unflatten(1, {heads_of_group_, -1})
                                .narrow(2, 0, length)
                                .narrow(3, 0, length)
                                .flatten(1, 2);
  const bool rotary = config_.rotates();
  return {.mask = causal,
          .cosine = rotary ? tables_.cosine.narrow(0, 0, length) : at::Tensor(),
          .sine = rotary ? tables_.sine.narrow(0, 0, length) : at::Tensor()};
}

/// The same for a context parallel rank. Its places depend on the length, so its tables are made of
/// those of whole sequences, on the device, as a capture may contain it.
AttentionInputs Attention::inputs_of_parts(std::int64_t length) const {
  const at::Tensor all = at::arange(layout_.cp * length, tables_.causal.options().dtype(at::kLong));
  std::vector<at::Tensor> by_rank;
  for (int rank = 0; rank < layout_.cp; ++rank)
    by_rank.push_back(rows_of_rank(all, layout_.cp, rank));
  const at::Tensor own = by_rank[static_cast<std::size_t>(layout_.cp_rank)];
  const at::Tensor later = at::cat(by_rank).unsqueeze(0).gt(own.unsqueeze(1));
  const bool rotary = config_.rotates();
  return {.mask = at::zeros(later.sizes(), tables_.causal.options())
                      .masked_fill(later, AttentionTables::kMasked)
                      .repeat({heads_of_group_, 1})
                      .unsqueeze(0),
          .cosine = rotary ? tables_.cosine_of_all.index_select(0, own) : at::Tensor(),
          .sine = rotary ? tables_.sine_of_all.index_select(0, own) : at::Tensor()};
}

/// documents [B, A].
AttentionInputs Attention::inputs_within(const at::Tensor& documents) const {
  const at::Tensor mine = documents.index_select(1, tables_.own),
                   theirs = documents.index_select(1, tables_.all);
  const at::Tensor same =
      mine.unsqueeze(2).eq(theirs.unsqueeze(1)).logical_and(tables_.upto);  // [B, S, A]
  const at::Tensor positions = same.sum({2}) - 1;                           // [B, S]
  const at::Tensor hidden =
      same.logical_not().to(tables_.causal.scalar_type()) * AttentionTables::kMasked;
  const std::int64_t rows = same.size(0), queries = heads_of_group_ * same.size(1);
  const bool rotary = config_.rotates();
  return {.mask = hidden.repeat({1, heads_of_group_, 1})
                      .unsqueeze(1)
                      .expand({-1, groups_, -1, -1})
                      .reshape({rows * groups_, queries, -1}),
          .cosine = rotary ? tables_.cosine.index({positions}) : at::Tensor(),
          .sine = rotary ? tables_.sine.index({positions}) : at::Tensor()};
}

/// x [B, S, G/T, *, W], S of this rank. Rotates the pairs (d, d + W/2) by the angle of their
/// position.
at::Tensor Attention::rotate(const at::Tensor& x, const AttentionInputs& inputs) const {
  return x * inputs.cosine + at::roll(x, x.size(4) / 2, 4) * inputs.sine;
}

/// x [N, *, *, W], single tokens at `positions` [N] int64. As rotate().
at::Tensor Attention::rotate_to(const at::Tensor& positions, const at::Tensor& x) const {
  return x * tables_.cosine.index_select(0, positions) +
         at::roll(x, x.size(3) / 2, 3) * tables_.sine.index_select(0, positions);
}

}  // namespace graphproof::workloads
