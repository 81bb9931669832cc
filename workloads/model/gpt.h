// The reference language model, dense, with experts, or with mamba layers between: embedding,
// layers, final norm, an output layer of its own or with the embedding's weight, and the loss.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "fixtures/tensors/torch.h"
#include "workloads/layers/cross_entropy.h"
#include "workloads/layers/embedding.h"
#include "workloads/layers/linear.h"
#include "workloads/layers/norm.h"
#include "workloads/model/layer_stack.h"

namespace graphproof::workloads {

class Gpt {
 public:
  /// This rank's stage of it, parameters created in the order of the forward. Tied embeddings are
  /// held by the first stage and by the last.
  Gpt(Parameters& parameters, const ModelConfig& config, const Layout& layout, at::Device device,
      faults::FaultHooks& faults)
      : layout_(layout),
        recompute_(config.recompute),
        tables_(config, layout, device, faults),
        mamba_tables_(config, device) {
    // Tied, it must serve the output layer, whose sums are over H elements; the norms make up for
    // small activations.
    const Distribution embedding =
        config.tied_embeddings ? weight_distribution(config.hidden, 1.0) : Distribution{0.0, 1.0};
    if (layout.first_stage() || (layout.last_stage() && config.tied_embeddings))
      embedding_.emplace(parameters, layout, "embedding", config.vocab, config.hidden, embedding);
    if (layout.first_stage() && config.position_embedding == PositionEmbedding::learned_absolute)
      positions_.emplace(parameters, layout, "position_embedding", config, embedding);
    for (const fixtures::NamedTensor& parameter : parameters.all())
      before_layers_.push_back(parameter.tensor);
    chunks_.resize(static_cast<std::size_t>(layout.vpp));
    for (int chunk = 0; chunk < layout.vpp; ++chunk)
      for (std::int64_t l = 0; l < layout.chunk_layers(config); ++l)
        chunks_[static_cast<std::size_t>(chunk)].emplace_back(
            parameters, config, layout, tables_, mamba_tables_, device,
            layout.first_layer(config, chunk) + l);
    if (!layout.last_stage()) return;
    final_norm_.emplace(parameters, config, layout, "final_norm");
    if (!config.tied_embeddings)
      output_.emplace(parameters, layout, "output", config.hidden, config.vocab,
                      /*with_bias=*/false, config.grad_accumulation_fusion);
    columns_ = own_columns(config.vocab, device);
    for (const char* behind : {"embedding.", "final_norm.", "output."})
      for (const at::Tensor& parameter : parameters.starting_with(behind))
        behind_layers_.push_back(parameter);
  }
  Gpt(const Gpt&) = delete;  // layers refer to the tables
  Gpt& operator=(const Gpt&) = delete;

  /// Whether a chunk of this stage begins with the tokens, and ends with the loss.
  bool embeds(std::int64_t chunk) const { return layout_.first_stage() && chunk == 0; }
  bool makes_loss(std::int64_t chunk) const {
    return layout_.last_stage() && chunk == layout_.vpp - 1;
  }

  /// One chunk. tokens, labels [B, S] int64 and weights [B, S] fp32 (undefined: the mean) in, S of
  /// this rank; received [N/P, H], what the chunk before returned, unless it embeds. Returns [N/P,
  /// H]; where it makes the loss [] fp32, those B*S tokens' weighted sum.
  at::Tensor forward(std::int64_t chunk, const at::Tensor& tokens, const at::Tensor& labels,
                     const at::Tensor& weights, const at::Tensor& received,
                     const ForwardPass& pass) const {
    const at::Tensor x =
        run_layers(layers(chunk), before_layers(chunk, tokens, received, pass), pass, recompute_);
    return makes_loss(chunk) ? behind_layers(x, labels, weights, pass) : x;
  }

  /// The three stretches of forward(): what the first layer takes, the layers, and the loss.
  at::Tensor before_layers(std::int64_t chunk, const at::Tensor& tokens, const at::Tensor& received,
                           const ForwardPass& pass) const {
    if (pass.gather && embeds(chunk)) pass.gather->wait(before_layers_);
    return embeds(chunk) ? embed(tokens, pass) : received;
  }
  const std::vector<Layer>& layers(std::int64_t chunk) const {
    return chunks_[static_cast<std::size_t>(chunk)];
  }
  at::Tensor behind_layers(const at::Tensor& x, const at::Tensor& labels, const at::Tensor& weights,
                           const ForwardPass& pass) const {
    if (pass.gather) pass.gather->wait(behind_layers_);
    return loss(x, labels, weights, pass);
  }

 private:
  at::Tensor embed(const at::Tensor& tokens, const ForwardPass& pass) const {
    const at::Tensor x = embedding_->forward(rows_of(tokens, layout_));
    return positions_ ? positions_->forward(x, pass.documents) : x;
  }

  at::Tensor loss(const at::Tensor& x, const at::Tensor& labels, const at::Tensor& weights,
                  const ForwardPass& pass) const {
    const at::Tensor hidden = final_norm_->forward(x);
    const at::Tensor logits = output_ ? output_->forward(hidden, pass)
                                      : column_parallel(hidden, embedding_->weight(), layout_);
    return vocab_parallel_cross_entropy(logits.to(at::kFloat), rows_of(labels, layout_), columns_,
                                        layout_,
                                        weights.defined() ? rows_of(weights, layout_) : weights);
  }

  at::Tensor own_columns(std::int64_t vocab, at::Device device) const {
    const std::int64_t columns = vocab / layout_.tp;
    return at::arange(columns * layout_.tp_rank, columns * (layout_.tp_rank + 1), at::kLong)
        .to(device);
  }

  Layout layout_;
  RecomputeConfig recompute_;
  AttentionTables tables_;
  MambaTables mamba_tables_;
  std::optional<VocabParallelEmbedding> embedding_;
  std::optional<LearnedPositionEmbedding> positions_;
  std::vector<std::vector<Layer>> chunks_;  // of this stage
  std::optional<Norm> final_norm_;
  std::optional<ColumnParallelLinear> output_;             // none where it is tied
  std::vector<at::Tensor> before_layers_, behind_layers_;  // parameters of the two ends
  at::Tensor columns_;  // [V/T] int64: this rank's vocabulary entries
};

}  // namespace graphproof::workloads
