// The samples of a training step: sequences of tokens drawn from (seed, step, global sequence
// number), so that every layout and every engine trains on the same ones.
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "workloads/config/model_config.h"

namespace graphproof::workloads {

/// One step's samples of this data parallel rank, on the device; of each sequence what this context
/// parallel rank has, S its length, chunk by chunk (context_parallel.h).
///   tokens[m]  [B, S]  int64  in
///   labels[m]  [B, S]  int64  in  the next token of each position
/// Packed, each sequence is several documents one behind the other, of other lengths in every
/// sample, and padding: shapes are fixed, what may attend to what is not. Otherwise there are none
/// of these:
///   documents[m]  [B, A]  int64  in  of all A tokens, other ranks' too: the number of its
///   document; of padding -1 weights[m]    [B, S]  fp32   in  of a token's loss in the
///   microbatch's: 0 for padding and the last token of a document, the
///                                    same for all others; over the context parallel ranks they sum
///                                    to their number
struct Batch {
  std::vector<at::Tensor> tokens, labels, documents, weights;
};

/// All that a graph of a step reads, by name.
inline constexpr std::array<std::pair<const char*, std::vector<at::Tensor> Batch::*>, 4>
    kBatchParts{{{"tokens", &Batch::tokens},
                 {"labels", &Batch::labels},
                 {"documents", &Batch::documents},
                 {"weights", &Batch::weights}}};

/// The samples of (seed, step) for data parallel rank `dp_rank`: drawn per sample name, never from
/// layout or impl. `dp` ranks share the global batch of M * B * D sequences; rank r holds sequences
/// [r*B*M, (r+1)*B*M), microbatch m of them the B sequences from r*B*M + m*B on. A copy from host
/// memory: not inside a capture.
Batch make_batch(const ModelConfig& config, const Layout& layout, std::uint64_t seed,
                 std::int64_t step, at::Device device);

}  // namespace graphproof::workloads
