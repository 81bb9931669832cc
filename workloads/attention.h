// Causal self attention with rotary positions (Su et al. 2021) where the embedding has none, and grouped keys and values (Ainslie et al. 2023), heads
// split over the T tensor parallel ranks.
//
// G key-value groups, R = heads/G query heads of a group, D = H/heads elements of a head; N = B*S tokens, P parts of
// a sequence (tensor_parallel.h).
// The rows of the projection lie group by group as Megatron-LM's: R query heads, the key, the value. So a rank's shard
// holds whole groups, and the R heads of a group are one matrix product with the key they share.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "fixtures/torch.h"
#include "workloads/forward_pass.h"
#include "workloads/linear.h"
#include "workloads/precision.h"
#include "workloads/recompute.h"

namespace graphproof::workloads {

/// Constants of every layer's attention, on the device, made once: a capture must not build them from host data.
struct AttentionTables {
  /// Base wavelength of the rotary angles; Megatron-LM's --rotary-base default.
  static constexpr double kRotaryBase = 10000.0;
  /// Added to the scores of later positions. exp of it is 0 in fp32 and bf16, and unlike -inf it has no NaN behind it.
  static constexpr double kMasked = -10000.0;

  AttentionTables(const ModelConfig& config, at::Device device) {
    const std::int64_t length = config.seq_length, width = config.hidden / config.heads;
    const at::ScalarType type = scalar_type(config.precision);
    const at::Tensor later = at::triu(at::full({length, length}, kMasked, type), 1);
    causal = later.repeat({config.heads / config.kv_groups, 1}).unsqueeze(0).to(device);
    if (config.position_embedding != PositionEmbedding::rope) return;
    const at::Tensor exponent = at::arange(0, width, 2, at::kDouble) / static_cast<double>(width);
    const at::Tensor angle = at::outer(at::arange(length, at::kDouble), at::pow(kRotaryBase, -exponent));
    const at::Tensor both = at::cat({angle, angle}, 1).to(at::kFloat).view({length, 1, 1, width});
    cosine = at::cos(both).to(type).to(device);
    sine = at::sin(both).to(type).to(device);
  }

  at::Tensor cosine, sine;  // [S, 1, 1, D] of the model's type; undefined without rotary positions
  at::Tensor causal;        // [1, R*S, S] of the model's type: 0 or kMasked
};

class Attention {
 public:
  Attention(Parameters& parameters, const ModelConfig& config, const Layout& layout, const AttentionTables& tables,
            const std::string& name, std::int64_t layer)
      : config_(config),
        layout_(layout),
        layer_(layer),
        tables_(tables),
        groups_(config.kv_groups / layout.tp),
        heads_of_group_(config.heads / config.kv_groups),
        width_(config.hidden / config.heads),
        qkv_(parameters, layout, name + ".qkv", config.hidden, (config.heads + 2 * config.kv_groups) * width_,
             config.qkv_bias, config.grad_accumulation_fusion),
        projection_(parameters, layout, name + ".projection", config.hidden, config.hidden, config.linear_bias,
                    1.0 / std::sqrt(2.0 * static_cast<double>(config.layers)), config.grad_accumulation_fusion) {}

  /// x [N/P, H] outside the region; so is what is returned, of the same shape.
  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass) const {
    const std::int64_t rows = config_.microbatch_size, length = config_.seq_length;
    const std::int64_t batches = rows * groups_, queries = heads_of_group_ * length;
    const at::Tensor mixed =
        sequences_of(qkv_.forward(x), rows, layout_).unflatten(2, {groups_, heads_of_group_ + 2, width_});
    at::Tensor turned = mixed.narrow(3, 0, heads_of_group_ + 1);  // queries and key; the value stays
    if (config_.position_embedding == PositionEmbedding::rope) turned = rotate(turned);
    const at::Tensor query =
        turned.narrow(3, 0, heads_of_group_).permute({0, 2, 3, 1, 4}).reshape({batches, queries, width_});
    const at::Tensor key = turned.select(3, heads_of_group_).permute({0, 2, 3, 1}).reshape({batches, width_, length});
    const at::Tensor value =
        mixed.select(3, heads_of_group_ + 1).permute({0, 2, 1, 3}).reshape({batches, length, width_});

    const auto core = [this, pass](const std::vector<at::Tensor>& inputs, bool again) {
      return core_attention(inputs[0], inputs[1], inputs[2], pass, again);
    };
    const bool recomputed = config_.recompute.of(RecomputedPart::core_attn);
    const at::Tensor attended = recomputed ? recompute(core, {query, key, value}) : core({query, key, value}, pass.again);
    const at::Tensor context =
        attended.view({rows, groups_, heads_of_group_, length, width_}).permute({0, 3, 1, 2, 4});  // [B, S, G/T, R, D]
    return projection_.forward(rows_of(context.flatten(2), layout_));
  }

 private:
  // query [B*G/T, R*S, D], key [B*G/T, D, S], value [B*G/T, S, D]. Returns [B*G/T, R*S, D]. The softmax is fp32, as
  // Megatron-LM's --attention-softmax-in-fp32.
  at::Tensor core_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const ForwardPass& pass, bool again) const {
    const double scale = 1.0 / std::sqrt(static_cast<double>(width_));
    const at::Tensor scores = at::baddbmm(tables_.causal, query, key, /*beta=*/1, /*alpha=*/scale);
    const at::Tensor probabilities =
        pass.dropout.apply(at::softmax(scores.to(at::kFloat), -1).to(scores.scalar_type()),
                           {layer_, DropoutSite::core_attention, again});
    const at::Tensor context = at::bmm(probabilities, value);
    pass.recomputes.note(RecomputedPart::core_attn, layer_, context, again);
    return context;
  }

  // x [B, S, G/T, *, D]: turns the pairs (d, d + D/2) by the angle of their position.
  at::Tensor rotate(const at::Tensor& x) const {
    const at::Tensor first = x.narrow(4, 0, width_ / 2), second = x.narrow(4, width_ / 2, width_ / 2);
    return x * tables_.cosine + at::cat({-second, first}, 4) * tables_.sine;
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
