// Multi-token prediction (DeepSeek-V3, DeepSeek-AI 2024; Megatron-LM's --mtp-num-layers): layers
// behind the last layer of the decoder, on the last pipeline stage, each of which predicts a token
// further ahead. Layer k, counted from 1, takes what the layer before it made of each position (the
// first one takes the output of the decoder's final norm) and the embedding of the token k
// positions later. Both are normalised, put together and projected to H elements; a transformer
// layer and a norm follow, and the model's own output layer predicts the token k + 1 positions
// later. The mean of the losses times a factor is added to the loss of the microbatch. (Megatron-LM
// adds it to the differentiated loss alone and reports it apart.)
//
// Embedding and output layer are the model's. In a pipeline the last stage has a copy of the
// embedding, whose gradient is summed over the first and the last stage, as for tied embeddings.
//
// The transformer layers are parts of their own for a runner, numbered after the decoder's
// (ModelConfig::layer_name); what lies between them is eager unless the whole step is captured. The
// last positions of a sequence have no token that far ahead: they have weight 0, and as attention
// is causal, no other position that counts depends on them. In packed sequences the same holds for
// the last positions of each document, because attention stays within it too. Where Megatron-LM
// splits the projection over tensor parallel ranks and gathers its outputs, each rank here has it
// whole.
//
// B sequences of A tokens, S of them on this rank; N = B*S, P parts of a sequence
// (tensor_parallel.h), H hidden elements.
#pragma once

#include <functional>
#include <vector>

#include "fixtures/tensors/torch.h"
#include "workloads/layers/linear.h"
#include "workloads/layers/norm.h"
#include "workloads/model/layer.h"

namespace graphproof::workloads {

/// The layers of this stage, which is the last one. Used by the thread that runs the step.
class MultiTokenPrediction {
 public:
  /// What predictions share with the model. embed: tokens [B, S] int64 to [N/P, H]. loss: of what
  /// the output layer makes of hidden [N/P, H], for labels [B, S] int64 with weights [B, S] fp32;
  /// returns [] fp32.
  struct Shared {
    std::function<at::Tensor(const at::Tensor& tokens)> embed;
    std::function<at::Tensor(const at::Tensor& hidden, const at::Tensor& labels,
                             const at::Tensor& weights)>
        loss;
  };

  /// REQUIRES: rotary positions, and more tokens in a sequence than layers. The tables outlive it.
  MultiTokenPrediction(Parameters& parameters, const ModelConfig& config, const Layout& layout,
                       const AttentionTables& tables, const MambaTables& mamba_tables,
                       at::Device device);
  MultiTokenPrediction(const MultiTokenPrediction&) = delete;  // backwards refer to the layers
  MultiTokenPrediction& operator=(const MultiTokenPrediction&) = delete;

  /// What there is to predict in a microbatch: the next token of each position of all context
  /// parallel ranks [B, A] int64, rank by rank, the documents that it is part of and the weights of
  /// this rank's positions, both undefined if there are none.
  struct Targets {
    at::Tensor next, documents, weights;
    std::int64_t length;  // S
  };
  /// labels [B, S] int64, the next token of each position; weights [B, S] fp32 of the labels, 0 for
  /// padding, or undefined if all count alike.
  Targets targets(const at::Tensor& labels, const at::Tensor& weights,
                  const ForwardPass& pass) const;

  /// hidden [N/P, H], the output of the final norm. Returns [] fp32: the mean of the layers' losses
  /// times their factor.
  at::Tensor loss(const at::Tensor& hidden, const Targets& targets, const Shared& shared,
                  const ForwardPass& pass) const;

  /// The same for a model with one layer, in pieces: the input [N/P, H] of the transformer layer,
  /// the layer, and the loss of its `output` [N/P, H].
  at::Tensor before_layer(const at::Tensor& hidden, const Targets& targets, const Shared& shared,
                          const ForwardPass& pass) const {
    return input_of(depths_.at(0), hidden, targets, shared, pass);
  }
  const Layer& layer() const { return depths_.at(0).layer.at(0); }
  at::Tensor after_layer(const at::Tensor& output, const Targets& targets,
                         const Shared& shared) const {
    return loss_of(depths_.at(0), depths_.at(0).final_norm.forward(output), targets, shared) *
           factor_;
  }

 private:
  /// One layer of prediction.
  struct Depth {
    Norm embedding_norm, hidden_norm;
    DuplicatedLinear projection;  // [H, 2*H]
    std::vector<Layer> layer;     // one, as a list for run_layers()
    Norm final_norm;
    /// [S] int64: where, among the labels of all ranks, the token is whose embedding a position
    /// takes, and the one that it predicts.
    at::Tensor tokens, labels;
    at::Tensor weights;  // [B, S] fp32, unless sequences are packed
    std::int64_t ahead;  // how many positions behind the next token the predicted one is
  };
  at::Tensor input_of(const Depth& depth, const at::Tensor& x, const Targets& targets,
                      const Shared& shared, const ForwardPass& pass) const;
  at::Tensor loss_of(const Depth& depth, const at::Tensor& x, const Targets& targets,
                     const Shared& shared) const;
  at::Tensor of_all_ranks(const at::Tensor& labels) const;
  at::Tensor places(const at::Tensor& of_whole_sequence, std::int64_t length) const;
  at::Tensor weights_up_to_padding(const at::Tensor& weights, std::int64_t ahead) const;
  at::Tensor weights_within(const at::Tensor& documents, std::int64_t ahead) const;

  Layout layout_;
  RecomputeConfig recompute_;
  at::Tensor own_;  // [S] int64: the positions of this rank's tokens
  double factor_;   // of each loss
  std::vector<Depth> depths_;
};

}  // namespace graphproof::workloads
