// The token embedding, split over the vocabulary (Megatron-LM's VocabParallelEmbedding): each rank
// looks up the tokens that it owns, the others get zeros, and the sum over the ranks is the whole
// lookup. And the learned position embedding, which is added to it where the model has one.
//
// The lookup is an index with int64 indices, whose backward is index_put_ with accumulation. CUDA
// runs that sorted and without atomics, so it is deterministic and needs no host (embedding and
// index_add use atomics there).
#pragma once

#include <string>

#include "fixtures/tensors/torch.h"
#include "workloads/layers/context_parallel.h"
#include "workloads/layers/tensor_parallel.h"
#include "workloads/parameters/parameters.h"

namespace graphproof::workloads {

class VocabParallelEmbedding {
 public:
  VocabParallelEmbedding(Parameters& parameters, const Layout& layout, const std::string& name,
                         std::int64_t vocab, std::int64_t hidden, Distribution distribution)
      : layout_(layout),
        first_(vocab / layout.tp * layout.tp_rank),
        end_(first_ + vocab / layout.tp) {
    weight_ = parameters.create(name + ".weight", {vocab, hidden}, {0, layout.tp_rank, layout.tp},
                                distribution);
  }

  /// [V/T, H]: also the output layer's weight, where the two are tied.
  const at::Tensor& weight() const { return weight_; }

  /// tokens [N] int64 in 0 .. V-1. Returns [N/P, H], outside the region.
  at::Tensor forward(const at::Tensor& tokens) const {
    if (layout_.tp == 1) return at::index(weight_, {tokens});
    const at::Tensor foreign =
        at::logical_or(tokens.lt(first_), tokens.ge(end_));  // [N] bool: another rank's token
    const at::Tensor own = at::index(weight_, {(tokens - first_).masked_fill(foreign, 0)});
    return leave_tensor_parallel(own.masked_fill(foreign.unsqueeze(1), 0.0), layout_);
  }

 private:
  Layout layout_;
  std::int64_t first_, end_;  // tokens of this rank: [first_, end_)
  at::Tensor weight_;         // [V/T, H]
};

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

  /// x [N/P, H], documents [B, A] int64, undefined unless sequences are packed: positions are then
  /// counted from the beginning of each document. Returns [N/P, H]: each token plus its position's
  /// row.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& documents) const {
    const at::Tensor rows =
        documents.defined() ? at::index(weight_, {positions_in(documents)}) : of_rank(weight_);
    return (x.unflatten(0, {batch_, length_}) + rows.narrow(-2, first_, length_)).flatten(0, 1);
  }

 private:
  at::Tensor of_rank(const at::Tensor& x) const {
    return rows_of_rank(x, layout_.cp, layout_.cp_rank);
  }
  /// [B, A/cp] int64: tokens before each one in its document.
  at::Tensor positions_in(const at::Tensor& documents) const {
    const at::Tensor same = documents.unsqueeze(2).eq(documents.unsqueeze(1));  // [B, A, A]
    return of_rank(same.tril(-1).sum({2}).t()).t();
  }

  std::int64_t batch_, length_,
      first_;  // of what its context parallel rank has this one has [first_, first_ + length_)
  Layout layout_;
  at::Tensor weight_;  // [S, H]
};

}  // namespace graphproof::workloads
