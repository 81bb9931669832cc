// The reference language model: embedding, layers (dense, with experts, or alternating with mamba
// layers), final norm, an output layer with its own weight or the embedding's, and the loss, which
// may include that of multi-token prediction.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fixtures/tensors/torch.h"
#include "workloads/layers/cross_entropy.h"
#include "workloads/layers/linear.h"
#include "workloads/layers/norm.h"
#include "workloads/model/embedding.h"
#include "workloads/model/layer_pass.h"
#include "workloads/model/layer_stack.h"
#include "workloads/model/multi_token_prediction.h"

namespace graphproof::workloads {

/// The pipeline stage of the model that this rank holds. B sequences of S tokens on this rank,
/// N = B*S, P parts of a sequence outside tensor parallel regions, H hidden elements.
class Gpt {
 public:
  /// Creates the parameters in the order of the forward. Embeddings that the last stage uses too
  /// are held by the first stage and by the last (ModelConfig::embeds_on_last_stage). `faults`
  /// outlives it.
  Gpt(Parameters& parameters, const ModelConfig& config, const Layout& layout, at::Device device,
      faults::FaultHooks& faults);
  Gpt(const Gpt&) = delete;  // the layers refer to the tables
  Gpt& operator=(const Gpt&) = delete;

  /// Whether a chunk of this stage begins with the embedding, and whether it ends with the loss.
  bool embeds(std::int64_t chunk) const { return layout_.first_stage() && chunk == 0; }
  bool makes_loss(std::int64_t chunk) const {
    return layout_.last_stage() && chunk == layout_.vpp - 1;
  }

  /// The forward of one chunk after before_layers(), which returned `input`. labels [B, S] int64;
  /// weights [B, S] fp32, or undefined for the mean. Returns [N/P, H]; if the chunk makes the loss
  /// [] fp32, the weighted sum over the B*S tokens.
  at::Tensor forward(std::int64_t chunk, const at::Tensor& input, const at::Tensor& labels,
                     const at::Tensor& weights, const ForwardPass& pass) const {
    const at::Tensor x = run_layers(layers(chunk), input, pass, recompute_);
    return makes_loss(chunk) ? after_layers(x, labels, weights, pass) : x;
  }

  /// The three pieces of a forward: the input of the first layer, the layers, and the loss. tokens
  /// [B, S] int64; received [N/P, H] is the output of the previous chunk, unused if the chunk
  /// embeds.
  at::Tensor before_layers(std::int64_t chunk, const at::Tensor& tokens, const at::Tensor& received,
                           const ForwardPass& pass) const;
  const std::vector<Layer>& layers(std::int64_t chunk) const {
    return chunks_[static_cast<std::size_t>(chunk)];
  }
  at::Tensor after_layers(const at::Tensor& x, const at::Tensor& labels, const at::Tensor& weights,
                          const ForwardPass& pass) const;

  /// The layer of multi-token prediction of a chunk that makes the loss; null if there is none.
  /// around_prediction() is what lies between the chunk's last layer and the loss, apart from this
  /// layer. Its pieces return what after_layers() returns. REQUIRES: at most one such layer.
  const Layer* prediction_layer(std::int64_t chunk) const {
    return makes_loss(chunk) && prediction_ ? &prediction_->layer() : nullptr;
  }
  AroundLayer around_prediction(const at::Tensor& labels, const at::Tensor& weights,
                                const ForwardPass& pass) const;

  /// The logits [N, V] fp32 of the token after each of N tokens: with pass.cached single tokens [N]
  /// int64 of any requests, otherwise those of whole sequences [B, S] int64. REQUIRES: one stage
  /// and chunk. Every rank gets the whole vocabulary.
  at::Tensor logits(const at::Tensor& tokens, const ForwardPass& pass) const;

 private:
  MultiTokenPrediction::Shared shared_with_prediction(const ForwardPass& pass) const;
  at::Tensor output_of(const at::Tensor& hidden, const ForwardPass& pass) const;
  at::Tensor loss_of(const at::Tensor& hidden, const at::Tensor& labels, const at::Tensor& weights,
                     const ForwardPass& pass) const;

  Layout layout_;
  RecomputeConfig recompute_;
  AttentionTables tables_;
  MambaTables mamba_tables_;
  std::optional<VocabParallelEmbedding> embedding_;
  std::optional<LearnedPositionEmbedding> positions_;
  std::vector<std::vector<Layer>> chunks_;  // of this stage
  std::optional<Norm> final_norm_;
  std::optional<ColumnParallelLinear> output_;  // none if it is tied to the embedding
  std::optional<MultiTokenPrediction> prediction_;
  std::vector<at::Tensor> before_layers_parameters_, after_layers_parameters_;
  at::Tensor columns_;  // [V/T] int64: the vocabulary entries of this rank
};

}  // namespace graphproof::workloads
