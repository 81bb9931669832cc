// Causal self attention with rotary positions (Su et al. 2021) where the embedding has none, and
// grouped keys and values (Ainslie et al. 2023), heads split over the T tensor parallel ranks,
// sequences over the context parallel ones (context_parallel.h).
//
// A rank has S tokens of each of its sequences, and there are A in all; without context parallelism
// S is A. Its queries attend to everybody's keys. With all_gather these come in one collective;
// with p2p, ring attention (Liu et al. 2023), they come round one rank's at a time, each lot is
// attended to by itself, and the results are weighted by the sums of exponentials that their
// softmaxes divided by. Lots that the mask hides completely are computed as well and weigh nothing:
// so every rank runs the same operators, and its graph is that of its peers. Backward sums
// everybody's gradients of a rank's keys and values there.
//
// Packed sequences (data.h): a token attends to those before it in its own document, and its
// position is counted from that document's beginning, as Megatron-LM's --reset-attention-mask and
// --reset-position-ids. Shapes stay; mask and angles are made from the documents of each
// microbatch.
//
// G key-value groups, R = heads/G query heads of a group, D = H/heads elements of a head; N = B*S
// tokens, P parts of a sequence (tensor_parallel.h). The rows of the projection lie group by group
// as Megatron-LM's: R query heads, the key, the value. So a rank's shard holds whole groups, and
// the R heads of a group are one matrix product with the key they share.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "fixtures/comm/collectives.h"
#include "fixtures/tensors/torch.h"
#include "workloads/config/precision.h"
#include "workloads/forward/forward_pass.h"
#include "workloads/forward/recompute.h"
#include "workloads/layers/context_parallel.h"
#include "workloads/layers/linear.h"

namespace graphproof::workloads {

/// Constants of every layer's attention, on the device, made once: a capture must not build them
/// from host data.
struct AttentionTables {
  /// Base wavelength of the rotary angles; Megatron-LM's --rotary-base default.
  static constexpr double kRotaryBase = 10000.0;
  /// Added to the scores of later positions. exp of it is 0 in fp32 and bf16, and unlike -inf it
  /// has no NaN behind it.
  static constexpr double kMasked = -10000.0;

  AttentionTables(const ModelConfig& config, const Layout& layout, at::Device device,
                  faults::FaultHooks& faults) {
    const std::int64_t length = layout.own_length(config), width = config.hidden / config.heads;
    const at::ScalarType type = scalar_type(config.precision);
    at::Tensor positions = own_positions(config, layout);
    const at::Tensor later =
        gathered_positions(config, layout).unsqueeze(0).gt(positions.unsqueeze(1));
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
    if (config.position_embedding != PositionEmbedding::rope) return;
    positions = faults.rotary_positions(positions, layout);
    const at::Tensor exponent = at::arange(0, width, 2, at::kDouble) / static_cast<double>(width);
    if (config.packed) positions = at::arange(config.seq_length, at::kLong);
    const at::Tensor angle = at::outer(positions.to(at::kDouble), at::pow(kRotaryBase, -exponent));
    const at::Tensor both = at::cat({angle, angle}, 1).to(at::kFloat).view({-1, 1, 1, width});
    cosine = at::cos(both).to(type).to(device);
    sine = at::cat({-at::sin(both).narrow(3, 0, width / 2),
                    at::sin(both).narrow(3, width / 2, width / 2)},
                   3)
               .to(type)
               .to(device);
  }

  // [S, 1, 1, D] of the model's type, packed [A, 1, 1, D]; undefined without rotary positions. The
  // sines of the first D/2 are negative, as those of a rotation that is written as x * cosine + (x,
  // halves swapped) * sine.
  at::Tensor cosine, sine;
  at::Tensor causal;  // [1, R*S, A] of the model's type: 0 or kMasked; keys rank by rank
  at::Tensor own,
      all;          // [S], [A] int64: positions of this rank's tokens and of the keys; packed alone
  at::Tensor upto;  // [S, A] bool: not masked in causal; packed alone
};

/// What attention does with one microbatch's sequences.
struct Attendance {
  at::Tensor mask;          // [1 or B*G/T, R*S, A] of the model's type, added to the scores
  at::Tensor cosine, sine;  // [S, 1, 1, D] or [B, S, 1, 1, D]
};

class Attention {
 public:
  Attention(Parameters& parameters, const ModelConfig& config, const Layout& layout,
            const AttentionTables& tables, const std::string& name, std::int64_t layer,
            DelayedGradients* delayed = nullptr)
      : config_(config),
        layout_(layout),
        layer_(layer),
        tables_(tables),
        groups_(config.kv_groups / layout.tp),
        heads_of_group_(config.heads / config.kv_groups),
        width_(config.hidden / config.heads),
        qkv_(parameters, layout, name + ".qkv", config.hidden,
             (config.heads + 2 * config.kv_groups) * width_, config.qkv_bias,
             config.grad_accumulation_fusion, delayed),
        projection_(parameters, layout, name + ".projection", config.hidden, config.hidden,
                    config.linear_bias, 1.0 / std::sqrt(2.0 * static_cast<double>(config.layers)),
                    config.grad_accumulation_fusion, delayed) {}

  /// x [N/P, H] outside the region; so is what is returned, of the same shape.
  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass) const {
    const std::int64_t rows = config_.microbatch_size;
    const at::Tensor mixed = sequences_of(qkv_.forward(x, pass), rows, layout_)
                                 .unflatten(2, {groups_, heads_of_group_ + 2, width_});
    const std::int64_t length = mixed.size(1);
    const std::int64_t batches = rows * groups_, queries = heads_of_group_ * length;
    const Attendance attendance = config_.packed ? within_documents(pass.documents) : up_to(length);
    // Splits and not slices: the gradient of a slice is a whole tensor of zeros around it, and the
    // sum of those.
    const std::vector<at::Tensor> parts =
        mixed.split_with_sizes({heads_of_group_ + 1, 1}, 3);  // the value is not turned
    const at::Tensor turned = config_.position_embedding == PositionEmbedding::rope
                                  ? rotate(parts[0], attendance)
                                  : parts[0];
    const std::vector<at::Tensor> asked = turned.split_with_sizes({heads_of_group_, 1}, 3);
    const at::Tensor query = asked[0].permute({0, 2, 3, 1, 4}).reshape({batches, queries, width_});
    const at::Tensor key =
        asked[1].squeeze(3).permute({0, 2, 3, 1}).reshape({batches, width_, length});
    const at::Tensor value =
        parts[1].squeeze(3).permute({0, 2, 1, 3}).reshape({batches, length, width_});

    const auto core = [this, pass, mask = attendance.mask](const std::vector<at::Tensor>& inputs,
                                                           bool again) {
      return core_attention(inputs[0], inputs[1], inputs[2], mask, pass, again);
    };
    const bool recomputed = config_.recompute.of(RecomputedPart::core_attn);
    const at::Tensor attended =
        recomputed ? recompute(RecomputedPart::core_attn, pass.faults, core, {query, key, value})
                   : core({query, key, value}, pass.again);
    const at::Tensor context = attended.view({rows, groups_, heads_of_group_, length, width_})
                                   .permute({0, 3, 1, 2, 4});  // [B, S, G/T, R, D]
    return projection_.forward(rows_of(context.flatten(2), layout_), pass);
  }

 private:
  // query [B*G/T, R*S, D], key [B*G/T, D, S], value [B*G/T, S, D]. Returns [B*G/T, R*S, D]. The
  // softmax is fp32, as Megatron-LM's --attention-softmax-in-fp32. The ranks' keys and values come
  // together in here, so recompute exchanges them again.
  at::Tensor core_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const at::Tensor& mask, const ForwardPass& pass, bool again) const {
    const DropoutPlace place{layer_, DropoutSite::core_attention, again};
    at::Tensor context;
    if (layout_.cp == 1) {
      context = attend_to_all(query, key, value, mask, pass, place);
    } else {
      const at::Tensor own = at::cat({key.transpose(1, 2), value}, 2);  // [B*G/T, S, 2*D]
      const at::Tensor sent = pass.faults.travelling(own);
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

  // key [B*G/T, D, A], value [B*G/T, A, D].
  at::Tensor attend_to_all(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const at::Tensor& mask, const ForwardPass& pass,
                           DropoutPlace place) const {
    const at::Tensor scores = at::baddbmm(mask, query, key, /*beta=*/1, /*alpha=*/scale());
    const at::Tensor probabilities =
        pass.dropout.apply(at::softmax(scores.to(at::kFloat), -1).to(scores.scalar_type()), place);
    return at::bmm(probabilities, value);
  }

  // own [B*G/T, S, 2*D]. Returns [B*G/T, A, 2*D], rank by rank.
  at::Tensor gathered(const at::Tensor& own) const {
    const at::Tensor all = comm::all_gather(own, layout_.cp_group)
                               .view({layout_.cp, own.size(0), own.size(1), own.size(2)});
    return all.transpose(0, 1).reshape({own.size(0), config_.seq_length, own.size(2)});
  }

  at::Tensor ring_attention(const at::Tensor& query, const at::Tensor& own, const at::Tensor& sent,
                            const at::Tensor& mask, const ForwardPass& pass,
                            DropoutPlace place) const {
    const std::int64_t length = layout_.own_length(config_);
    const at::Tensor kept = pass.dropout.mask({query.size(0), query.size(1), config_.seq_length},
                                              query.options(), place);
    at::Tensor lot = own, context;
    std::vector<at::Tensor> contexts,
        sums;  // fp32: [B*G/T, R*S, D], and logarithms [B*G/T, R*S, 1]
    for (int hop = 0; hop < layout_.cp; ++hop) {
      if (hop > 0) lot = comm::ring_shift(hop == 1 ? sent : lot, 1, layout_.cp_group);
      const std::int64_t first = (layout_.cp_rank - hop + layout_.cp) % layout_.cp * length;
      const at::Tensor scores =
          at::baddbmm(mask.narrow(2, first, length), query, keys_of(lot), /*beta=*/1,
                      /*alpha=*/scale())
              .to(at::kFloat);
      sums.push_back(at::logsumexp(scores, {-1}, /*keepdim=*/true));
      const at::Tensor probabilities =
          pass.dropout.apply(at::softmax(scores, -1).to(query.scalar_type()),
                             kept.defined() ? kept.narrow(2, first, length) : kept);
      contexts.push_back(at::bmm(probabilities, values_of(lot)).to(at::kFloat));
    }
    const at::Tensor shares = at::softmax(at::cat(sums, 2), 2);  // [B*G/T, R*S, cp]
    for (int hop = 0; hop < layout_.cp; ++hop) {
      const at::Tensor part = contexts[static_cast<std::size_t>(hop)] * shares.narrow(2, hop, 1);
      context = hop == 0 ? part : context + part;
    }
    return context.to(query.scalar_type());
  }

  at::Tensor keys_of(const at::Tensor& both) const {
    return both.narrow(2, 0, width_).transpose(1, 2);
  }
  at::Tensor values_of(const at::Tensor& both) const { return both.narrow(2, width_, width_); }
  double scale() const { return 1.0 / std::sqrt(static_cast<double>(width_)); }

  /// Of sequences of `length` tokens. Shorter ones than the model's are of a rank that has all of
  /// them (lengths.h).
  Attendance up_to(std::int64_t length) const {
    if (length == layout_.own_length(config_))
      return {tables_.causal, tables_.cosine, tables_.sine};
    const at::Tensor causal = tables_.causal.unflatten(1, {heads_of_group_, -1})
                                  .narrow(2, 0, length)
                                  .narrow(3, 0, length)
                                  .flatten(1, 2);
    const bool turns = config_.position_embedding == PositionEmbedding::rope;
    return {.mask = causal,
            .cosine = turns ? tables_.cosine.narrow(0, 0, length) : at::Tensor(),
            .sine = turns ? tables_.sine.narrow(0, 0, length) : at::Tensor()};
  }

  // documents [B, A].
  Attendance within_documents(const at::Tensor& documents) const {
    const at::Tensor mine = documents.index_select(1, tables_.own),
                     theirs = documents.index_select(1, tables_.all);
    const at::Tensor same =
        mine.unsqueeze(2).eq(theirs.unsqueeze(1)).logical_and(tables_.upto);  // [B, S, A]
    const at::Tensor positions = same.sum({2}) - 1;                           // [B, S]
    const at::Tensor hidden =
        same.logical_not().to(tables_.causal.scalar_type()) * AttentionTables::kMasked;
    const std::int64_t rows = same.size(0), queries = heads_of_group_ * same.size(1);
    const bool turns = config_.position_embedding == PositionEmbedding::rope;
    return {.mask = hidden.repeat({1, heads_of_group_, 1})
                        .unsqueeze(1)
                        .expand({-1, groups_, -1, -1})
                        .reshape({rows * groups_, queries, -1}),
            .cosine = turns ? tables_.cosine.index({positions}) : at::Tensor(),
            .sine = turns ? tables_.sine.index({positions}) : at::Tensor()};
  }

  // x [B, S, G/T, *, D], S of this rank: turns the pairs (d, d + D/2) by the angle of their
  // position.
  at::Tensor rotate(const at::Tensor& x, const Attendance& attendance) const {
    return x * attendance.cosine + at::roll(x, width_ / 2, 4) * attendance.sine;
  }

  ModelConfig config_;
  Layout layout_;
  std::int64_t layer_;
  const AttentionTables& tables_;
  std::int64_t groups_, heads_of_group_, width_;  // G/T, R, D
  ColumnParallelLinear qkv_;
  RowParallelLinear projection_;
};

}  // namespace graphproof::workloads
