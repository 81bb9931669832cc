// The reference language model, dense or with experts: embedding, layers, final norm, an output layer of its own or with
// the embedding's weight, and the loss.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "fixtures/torch.h"
#include "workloads/cross_entropy.h"
#include "workloads/embedding.h"
#include "workloads/layer.h"
#include "workloads/linear.h"
#include "workloads/norm.h"

namespace graphproof::workloads {

class Gpt {
 public:
  /// Parameters are created in the order of the forward.
  Gpt(Parameters& parameters, const ModelConfig& config, const Layout& layout, at::Device device,
      const fixtures::Fault& fault)
      : layout_(layout),
        tables_(config, device),
        embedding_(parameters, layout, "embedding", config.vocab, config.hidden, embedding_distribution(config)),
        positions_(make_positions(parameters, config, layout)),
        layers_(make_layers(parameters, config, layout, tables_, device)),
        final_norm_(parameters, config, layout, "final_norm") {
    if (!config.tied_embeddings)
      output_.emplace(parameters, layout, "output", config.hidden, config.vocab, /*with_bias=*/false);
    if (!fault.is("M46")) columns_ = own_columns(config.vocab, device);
  }
  Gpt(const Gpt&) = delete;  // layers refer to the tables
  Gpt& operator=(const Gpt&) = delete;

  /// tokens, labels [B, S] int64 in. Returns [] fp32: the mean loss of the microbatch's B*S tokens.
  at::Tensor forward(const at::Tensor& tokens, const at::Tensor& labels, const ForwardPass& pass) const {
    at::Tensor x = embedding_.forward(rows_of(tokens, layout_));
    if (positions_) x = positions_->forward(x);
    for (const Layer& layer : layers_) x = layer.forward(x, pass);
    const at::Tensor hidden = final_norm_.forward(x);
    const at::Tensor logits =
        output_ ? output_->forward(hidden) : column_parallel(hidden, embedding_.weight(), layout_);
    // M46 stands for what a library makes on its first use; here it is copied from the host.
    if (!columns_.defined()) columns_ = own_columns(logits.size(1) * layout_.tp, tokens.device());
    return vocab_parallel_cross_entropy(logits.to(at::kFloat), rows_of(labels, layout_), columns_, layout_);
  }

 private:
  // Tied, it must serve the output layer, whose sums are over H elements; the norms make up for small activations.
  static Distribution embedding_distribution(const ModelConfig& config) {
    return config.tied_embeddings ? weight_distribution(config.hidden, 1.0) : Distribution{0.0, 1.0};
  }

  static std::optional<LearnedPositionEmbedding> make_positions(Parameters& parameters, const ModelConfig& config,
                                                                const Layout& layout) {
    if (config.position_embedding != PositionEmbedding::learned_absolute) return std::nullopt;
    return LearnedPositionEmbedding(parameters, layout, "position_embedding", config, embedding_distribution(config));
  }

  static std::vector<Layer> make_layers(Parameters& parameters, const ModelConfig& config, const Layout& layout,
                                        const AttentionTables& tables, at::Device device) {
    std::vector<Layer> layers;
    for (std::int64_t l = 0; l < config.layers; ++l) layers.emplace_back(parameters, config, layout, tables, device, l);
    return layers;
  }

  at::Tensor own_columns(std::int64_t vocab, at::Device device) const {
    const std::int64_t columns = vocab / layout_.tp;
    return at::arange(columns * layout_.tp_rank, columns * (layout_.tp_rank + 1), at::kLong).to(device);
  }

  Layout layout_;
  AttentionTables tables_;
  VocabParallelEmbedding embedding_;
  std::optional<LearnedPositionEmbedding> positions_;
  std::vector<Layer> layers_;
  Norm final_norm_;
  std::optional<ColumnParallelLinear> output_;  // none where it is tied
  mutable at::Tensor columns_;  // [V/T] int64: this rank's vocabulary entries; mutable for M46 only
};

}  // namespace graphproof::workloads
