// The keys and values of earlier tokens, which inference keeps instead of computing them again.
#pragma once

#include <vector>

#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {

/// The N tokens of one inference step, of any requests, and the cache. C entries of the cache, S
/// tokens that a request has at most, L layers of this rank, G/T key-value groups of this rank, D
/// elements in a head. All tensors are on the device and static, so that a graph may hold their
/// addresses.
struct CachedTokens {
  at::Tensor positions;                  // [N] int64 in: the place of each token in its request
  at::Tensor written;                    // [N] int64 in: the entry that gets its key and value
  at::Tensor read;                       // [N, S] int64 in: the entries of its request, in order
  at::Tensor mask;                       // [N, 1, S] in, of the model's type: added to its scores
  std::vector<at::Tensor> keys, values;  // L of [C, G/T, D], in and out
};

}  // namespace graphproof::workloads
