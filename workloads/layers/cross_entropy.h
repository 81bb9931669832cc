// The language model loss of logits that are split over the vocabulary (Megatron-LM's
// vocab-parallel cross entropy). The ranks exchange three times N numbers instead of gathering N *
// V logits.
#pragma once

#include <ATen/ATen.h>

#include "workloads/config/model_config.h"

namespace graphproof::workloads {

/// logits  [N, V/T]  fp32   this rank's part of the vocabulary, differentiable
/// labels  [N]       int64  0 .. V-1, the same on all T ranks
/// columns [V/T]     int64  the vocabulary entries of this rank's columns
/// weights [N]       fp32   undefined: 1/N each
/// Returns [] fp32: the weighted sum over the N tokens of -log softmax(logits)[label], the same on
/// all T ranks. Uses one-hot rows instead of gather and scatter, so there are no out-of-range
/// indices to mask, no atomics, and no host synchronisation.
at::Tensor vocab_parallel_cross_entropy(const at::Tensor& logits, const at::Tensor& labels,
                                        const at::Tensor& columns, const Layout& layout,
                                        const at::Tensor& weights = {});

}  // namespace graphproof::workloads
