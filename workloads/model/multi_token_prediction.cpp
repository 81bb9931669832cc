#include "workloads/model/multi_token_prediction.h"

#include <algorithm>
#include <string>
#include <utility>

#include "fixtures/comm/collectives.h"
#include "workloads/layers/context_parallel.h"
#include "workloads/model/layer_stack.h"

namespace graphproof::workloads {
namespace {

/// [A] int64: where position p is in a tensor of all positions, rank by rank.
at::Tensor places_of_positions(const ModelConfig& config, const Layout& layout) {
  return at::argsort(gathered_positions(config, layout));
}

/// [B, S] fp32: equal for the positions of this rank that have a token `ahead` positions later than
/// the next one, and 0 for the others. As with packed sequences (data.h), the sum over the context
/// parallel ranks is their number.
at::Tensor weights_ahead(const ModelConfig& config, const Layout& layout, std::int64_t ahead) {
  const std::int64_t predicted = config.microbatch_size * (config.seq_length - ahead);
  return own_positions(config, layout)
             .lt(config.seq_length - ahead)
             .to(at::kFloat)
             .repeat({config.microbatch_size, 1}) *
         (static_cast<double>(layout.cp) / static_cast<double>(predicted));
}

}  // namespace

MultiTokenPrediction::MultiTokenPrediction(Parameters& parameters, const ModelConfig& config,
                                           const Layout& layout, const AttentionTables& tables,
                                           const MambaTables& mamba_tables, at::Device device)
    : layout_(layout),
      recompute_(config.recompute.of_prediction_layers() ? config.recompute : RecomputeConfig{}),
      own_(own_positions(config, layout).to(device)),
      factor_(config.mtp_loss_scaling_factor / static_cast<double>(config.mtp_num_layers)) {
  const at::Tensor places = places_of_positions(config, layout),
                   positions = own_positions(config, layout);
  const auto ahead = [&](std::int64_t by) {
    return places.index_select(0, (positions + by).clamp_max(config.seq_length - 1)).to(device);
  };
  for (std::int64_t depth = 0; depth < config.mtp_num_layers; ++depth) {
    const std::string number = std::to_string(depth);
    const std::int64_t index = config.layers + depth;
    Norm embedding_norm(parameters, config, layout, "mtp.embedding_norms." + number),
        hidden_norm(parameters, config, layout, "mtp.hidden_norms." + number);
    DuplicatedLinear projection(parameters, layout, "mtp.projections." + number, 2 * config.hidden,
                                config.hidden, config.grad_accumulation_fusion);
    std::vector<Layer> layer;
    layer.emplace_back(
        parameters, config, layout, tables, mamba_tables, device,
        Layer::Place{.index = index,
                     .name = config.layer_name(index),
                     .counter = static_cast<std::size_t>(layout.place(config, index))});
    depths_.push_back({.embedding_norm = std::move(embedding_norm),
                       .hidden_norm = std::move(hidden_norm),
                       .projection = std::move(projection),
                       .layer = std::move(layer),
                       .final_norm = Norm(parameters, config, layout, "mtp.final_norms." + number),
                       .tokens = ahead(depth),
                       .labels = ahead(depth + 1),
                       .weights = weights_ahead(config, layout, depth + 1).to(device),
                       .ahead = depth + 1});
  }
}

MultiTokenPrediction::Targets MultiTokenPrediction::targets(const at::Tensor& labels,
                                                            const at::Tensor& weights,
                                                            const ForwardPass& pass) const {
  Targets targets{.next = of_all_ranks(labels),
                  .documents = pass.documents,
                  .weights = weights,
                  .length = labels.size(1)};
  pass.faults.predicted(targets.next, targets.documents, targets.weights);
  return targets;
}

at::Tensor MultiTokenPrediction::loss(const at::Tensor& hidden, const Targets& targets,
                                      const Shared& shared, const ForwardPass& pass) const {
  at::Tensor x = hidden, sum;
  for (const Depth& depth : depths_) {
    x = depth.final_norm.forward(
        run_layers(depth.layer, input_of(depth, x, targets, shared, pass), pass, recompute_));
    const at::Tensor one = loss_of(depth, x, targets, shared);
    sum = sum.defined() ? sum + one : one;
  }
  return sum * factor_;
}

/// x [N/P, H], what the layer before made of each position. Returns [N/P, H].
at::Tensor MultiTokenPrediction::input_of(const Depth& depth, const at::Tensor& x,
                                          const Targets& targets, const Shared& shared,
                                          const ForwardPass& pass) const {
  const at::Tensor embedded =
      shared.embed(targets.next.index_select(1, places(depth.tokens, targets.length)));
  return depth.projection.forward(
      at::cat({depth.embedding_norm.forward(embedded), depth.hidden_norm.forward(x)}, 1), pass);
}

/// x [N/P, H], after the norm of `depth`. Returns [] fp32.
at::Tensor MultiTokenPrediction::loss_of(const Depth& depth, const at::Tensor& x,
                                         const Targets& targets, const Shared& shared) const {
  return shared.loss(x, targets.next.index_select(1, places(depth.labels, targets.length)),
                     targets.documents.defined() ? weights_within(targets.documents, depth.ahead)
                     : targets.weights.defined()
                         ? weights_up_to_padding(targets.weights, depth.ahead)
                         : depth.weights);
}

/// `of_whole_sequence` [S] are places in a sequence of the model's length. The same for one of
/// `length` tokens, behind whose end there is nothing to take. Shorter sequences than the model's
/// occur only on a rank that has whole sequences (lengths.h), where places are positions.
at::Tensor MultiTokenPrediction::places(const at::Tensor& of_whole_sequence,
                                        std::int64_t length) const {
  if (length == of_whole_sequence.size(0)) return of_whole_sequence;
  return of_whole_sequence.narrow(0, 0, length).clamp_max(length - 1);
}

/// weights [B, S] of the next tokens, 0 for padding. As weights_ahead(), of the positions that have
/// a token that far ahead which is no padding. Without any, all are 0.
at::Tensor MultiTokenPrediction::weights_up_to_padding(const at::Tensor& weights,
                                                       std::int64_t ahead) const {
  const std::int64_t predicted = std::max<std::int64_t>(0, weights.size(1) - ahead);
  at::Tensor counted = at::zeros_like(weights);
  counted.narrow(1, 0, predicted)
      .copy_(weights.narrow(1, weights.size(1) - predicted, predicted).gt(0));
  return counted / counted.sum().clamp_min(1);
}

/// documents [B, A]. As weights_ahead(), of the positions whose document has a token that far
/// ahead. Without any, all are 0.
at::Tensor MultiTokenPrediction::weights_within(const at::Tensor& documents,
                                                std::int64_t ahead) const {
  const std::int64_t last = documents.size(1) - (ahead + 1);  // the first position without one
  const at::Tensor begins = documents.narrow(1, 0, last);
  at::Tensor counted = at::zeros_like(documents, at::kFloat);
  counted.narrow(1, 0, last)
      .copy_(begins.eq(documents.narrow(1, ahead + 1, last)).logical_and(begins.ge(0)));
  return counted.index_select(1, own_) * layout_.cp / counted.sum().clamp_min(1);
}

/// labels [B, S]. Returns those of all context parallel ranks, rank by rank, [B, A].
at::Tensor MultiTokenPrediction::of_all_ranks(const at::Tensor& labels) const {
  if (layout_.cp == 1) return labels;
  return comm::all_gather(labels.contiguous(), layout_.cp_group)
      .unflatten(0, {layout_.cp, labels.size(0)})
      .transpose(0, 1)
      .flatten(1, 2);
}

}  // namespace graphproof::workloads
