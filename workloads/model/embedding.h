// The token embedding, split over the vocabulary (Megatron-LM's VocabParallelEmbedding), and the
// learned position embedding, which is added to it. Each rank looks up the tokens that it owns and
// uses zeros for the others; the sum over the ranks is the complete lookup.
//
// With index_put the lookup is an index with int64 indices, whose backward is index_put_ with
// accumulation. On CUDA that sorts and uses no atomics, so it is deterministic without the host.
// With index_add it is an index_select, whose backward is index_add_. That adds with atomics on
// CUDA, in an order that changes from run to run, unless torch.use_deterministic_algorithms is on
// (PyTorch lists index_add_ there); the simulated device changes the order too.
#pragma once

#include <string>

#include "fixtures/tensors/torch.h"
#include "workloads/layers/context_parallel.h"
#include "workloads/layers/tensor_parallel.h"
#include "workloads/parameters/parameters.h"

namespace graphproof::workloads {

/// V entries of the vocabulary, H hidden elements.
class VocabParallelEmbedding {
 public:
  VocabParallelEmbedding(Parameters& parameters, const Layout& layout, const std::string& name,
                         std::int64_t vocab, std::int64_t hidden, Distribution distribution,
                         EmbeddingGradient gradient)
      : layout_(layout),
        gradient_(gradient),
        first_(vocab / layout.tp * layout.tp_rank),
        end_(first_ + vocab / layout.tp) {
    weight_ = parameters.create(name + ".weight", {vocab, hidden}, {0, layout.tp_rank, layout.tp},
                                distribution);
  }

  /// [V/T, H]: also the weight of the output layer, if the two are tied.
  const at::Tensor& weight() const { return weight_; }

  /// tokens [N] int64 in 0 .. V-1. Returns [N/P, H], outside the tensor parallel region.
  at::Tensor forward(const at::Tensor& tokens) const {
    if (layout_.tp == 1) return rows_of(tokens);
    const at::Tensor foreign =
        at::logical_or(tokens.lt(first_), tokens.ge(end_));  // [N] bool: owned by another rank
    const at::Tensor own = rows_of((tokens - first_).masked_fill(foreign, 0));
    return leave_tensor_parallel(own.masked_fill(foreign.unsqueeze(1), 0.0), layout_);
  }

 private:
  at::Tensor rows_of(const at::Tensor& tokens) const {
    return gradient_ == EmbeddingGradient::index_put ? at::index(weight_, {tokens})
                                                     : at::index_select(weight_, 0, tokens);
  }

  Layout layout_;
  EmbeddingGradient gradient_;
  std::int64_t first_, end_;  // tokens of this rank: [first_, end_)
  at::Tensor weight_;         // [V/T, H]
};

/// A weight of [A, H], a row for each position of a sequence. B sequences in a microbatch.
class LearnedPositionEmbedding {
 public:
  LearnedPositionEmbedding(Parameters& parameters, const Layout& layout, const std::string& name,
                           const ModelConfig& config, Distribution distribution)
      : batch_(config.microbatch_size),
        length_(layout.own_length(config) / layout.sequence_parts()),
        first_(layout.sequence_parallel ? length_ * layout.tp_rank : 0),
        layout_(layout),
        weight_(parameters.create(name + ".weight", {config.seq_length, config.hidden},
                                  whole(layout), distribution)) {}

  /// x [N/P, H]; documents [B, A] int64, undefined unless sequences are packed. Returns each token
  /// plus the row of its position, [N/P, H]. Positions count from the beginning of the sequence, or
  /// of the document if sequences are packed.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& documents) const {
    const at::Tensor rows =
        documents.defined() ? at::index(weight_, {positions_in(documents)}) : of_rank(weight_);
    return (x.unflatten(0, {batch_, length_}) + rows.narrow(-2, first_, length_)).flatten(0, 1);
  }

 private:
  at::Tensor of_rank(const at::Tensor& x) const {
    return rows_of_rank(x, layout_.cp, layout_.cp_rank);
  }
  /// [B, A/cp] int64: the number of tokens before each token in its document.
  at::Tensor positions_in(const at::Tensor& documents) const {
    const at::Tensor same = documents.unsqueeze(2).eq(documents.unsqueeze(1));  // [B, A, A]
    return of_rank(same.tril(-1).sum({2}).t()).t();
  }

  /// This rank has the tokens [first_, first_ + length_) of those that its tensor parallel peers
  /// have together.
  std::int64_t batch_, length_, first_;
  Layout layout_;
  at::Tensor weight_;  // [A, H]
};

}  // namespace graphproof::workloads
