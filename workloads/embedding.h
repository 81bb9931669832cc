// The token embedding, split over the vocabulary (Megatron-LM's VocabParallelEmbedding): each rank looks up the tokens
// that it owns, the others get zeros, and the sum over the ranks is the whole lookup.
//
// The lookup is an index with int64 indices, whose backward is index_put_ with accumulation. CUDA runs that sorted and
// without atomics, so it is deterministic and needs no host (embedding and index_add use atomics there).
#pragma once

#include <string>

#include "fixtures/torch.h"
#include "workloads/parameters.h"
#include "workloads/tensor_parallel.h"

namespace graphproof::workloads {

class VocabParallelEmbedding {
 public:
  VocabParallelEmbedding(Parameters& parameters, const Layout& layout, const std::string& name, std::int64_t vocab,
                         std::int64_t hidden)
      : layout_(layout), first_(vocab / layout.tp * layout.tp_rank), end_(first_ + vocab / layout.tp) {
    weight_ = parameters.create(name + ".weight", {vocab, hidden}, {0, layout.tp_rank, layout.tp}, {0.0, 1.0});
  }

  /// tokens [N] int64 in 0 .. V-1. Returns [N, H], the same on all T ranks.
  at::Tensor forward(const at::Tensor& tokens) const {
    if (layout_.tp == 1) return at::index(weight_, {tokens});
    const at::Tensor foreign = at::logical_or(tokens.lt(first_), tokens.ge(end_));  // [N] bool: another rank's token
    const at::Tensor own = at::index(weight_, {(tokens - first_).masked_fill(foreign, 0)});
    return leave_tensor_parallel(own.masked_fill(foreign.unsqueeze(1), 0.0), layout_);
  }

 private:
  Layout layout_;
  std::int64_t first_, end_;  // tokens of this rank: [first_, end_)
  at::Tensor weight_;         // [V/T, H]
};

}  // namespace graphproof::workloads
