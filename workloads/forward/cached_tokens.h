// What inference keeps of earlier tokens instead of computing them again: keys and values for
// attention, or the latents that they are made of, and the state of mamba layers.
#pragma once

#include <vector>

#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {

/// What the rows of one inference step need of the states of mamba layers, for N rows and B slots.
/// The rows of a request are neighbours, in the order of their positions. Rows that belong to no
/// request have the slot B.
struct CachedStates {
  at::Tensor slots;   // [N] int64 in: the slot of each row
  at::Tensor upto;    // [N, N] fp32 in: 1 at (m, n) if row m has the slot of row n and m <= n, or 0
  at::Tensor begins;  // [N] bool in: the row's request begins in this step, so it has no state yet
  at::Tensor last;    // [B] int64 in: the last row of each slot, -1 without one
  /// L of [B + 1, G/T * R, D, W] fp32 and of [B + 1, G/T, R*D + 2*W, 3] of the model's type
  /// (mamba.h has the letters), in and out; undefined for other layers. The state after the last
  /// token of each slot, and the inputs of the convolution that the next token needs, the oldest
  /// first. No row changes those of slot B.
  std::vector<at::Tensor> states, windows;
};

/// The N tokens of one inference step, of any requests, and the cache. C entries of the cache, S
/// tokens that a request has at most, L layers of this rank, G/T key-value groups of this rank, D
/// elements in a head, K + W elements of a latent of keys and values and of their rotary part. All
/// tensors are on the device and static, so that a graph may hold their addresses.
struct CachedTokens {
  at::Tensor positions;  // [N] int64 in: the place of each token in its request
  at::Tensor written;    // [N] int64 in: the entry that gets its key and value, or its latent
  at::Tensor read;       // [N, S] int64 in: the entries of its request, in order
  at::Tensor mask;       // [N, 1, S] in, of the model's type: added to its scores
  /// L of [C, G/T, D], in and out; undefined for mamba layers and with latent attention.
  std::vector<at::Tensor> keys, values;
  /// L of [C, K + W], in and out: the latent, normalised, and the rotary part of the keys, rotated.
  /// All heads share them, so every tensor parallel rank has them whole. Undefined for mamba layers
  /// and without latent attention.
  std::vector<at::Tensor> latents;
  CachedStates states;  // only in a hybrid model
};

}  // namespace graphproof::workloads
