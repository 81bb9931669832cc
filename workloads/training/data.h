// The samples of a training step: sequences of tokens drawn from (seed, step, global sequence
// number), so that every layout and every engine trains on the same samples.
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "workloads/config/model_config.h"

namespace graphproof::workloads {

/// The samples of one step for this data parallel rank, on the device. S is the part of a sequence
/// that this context parallel rank holds, chunk by chunk (context_parallel.h).
///   tokens[m]     [B, S]  int64  in
///   labels[m]     [B, S]  int64  in  the next token of each position
/// In packed sequences, each sequence consists of several documents and padding, with other lengths
/// in every sample: the shapes are fixed, but not which tokens may attend to each other. Without
/// packing the following are empty:
///   documents[m]  [B, A]  int64  in  the document number of all A tokens of the sequence, also
///                                    those of other ranks; -1 for padding
///   weights[m]    [B, S]  fp32   in  the weight of each token's loss in the loss of the
///                                    microbatch: 0 for padding and for the last token of a
///                                    document, equal for all other tokens; the sum over the
///                                    context parallel ranks is the number of these ranks
/// An image of a packed sequence lies in one document: a border that would cut it comes after it,
/// and padding begins after the last image. With a vision encoder, the images of all sequences
/// follow one another along L image tokens, the encoder's length, and padding follows them. A
/// microbatch without images is all padding, so a batch has the same tensors whether it has images
/// or not. Without an encoder these are empty:
///   patches[m]    [L, X]  fp32   in  the X numbers of each token's patch or merged patches
///   images[m]     [1, L]  int64  in  the number of the image of each token; -1 for padding
///   image_rows[m] [L]     int64  in  the row, of those N that this rank has outside of tensor
///                                    parallel regions (tensor_parallel.h), whose place the token
///                                    takes; N for padding and if another rank has the place
/// With a paged stash every microbatch has the following, which is zero; otherwise it is empty:
///   expert_pull[m] [E]    fp32   in  added to the logits of all routers, as with Megatron-LM's
///                  or [N, E]         --moe-router-force-biased; with a row for each of a router's
///                                    N tokens, as with --moe-router-force-load-balancing
struct Batch {
  std::vector<at::Tensor> tokens, labels, documents, weights, patches, images, image_rows,
      expert_pull;
};
/// With ImageCounts::late the steps before this one have no images. Engines with two warm-up steps
/// have captured by then.
inline constexpr std::int64_t kFirstStepWithImages = 3;

/// The names of all tensors of a batch, which the graph of a step reads.
inline constexpr std::array<std::pair<const char*, std::vector<at::Tensor> Batch::*>, 8>
    kBatchParts{{{"tokens", &Batch::tokens},
                 {"labels", &Batch::labels},
                 {"documents", &Batch::documents},
                 {"weights", &Batch::weights},
                 {"patches", &Batch::patches},
                 {"images", &Batch::images},
                 {"image_rows", &Batch::image_rows},
                 {"expert_pull", &Batch::expert_pull}}};

/// The samples of (seed, step) for this data parallel rank. They do not depend on layout or impl.
/// The D data parallel ranks share the global batch of M * B * D sequences: rank r has the
/// sequences [r*B*M, (r+1)*B*M), and its microbatch m the B sequences from r*B*M + m*B on. Copies
/// from host memory, so it must not be called inside a capture. Throws std::invalid_argument for
/// more image tokens than the encoder has room for (rule B21), and for images that a sequence has
/// no room for.
Batch make_batch(const ModelConfig& config, const Layout& layout, std::uint64_t seed,
                 std::int64_t step, at::Device device);
/// The same batch with `number` in the patches of padding, which have no influence on a step.
Batch with_image_padding(Batch batch, double number);
/// A pull that no router resists: logits are sums of H products of normalised numbers with weights
/// of variance 1 / H, so they stay far below it.
inline constexpr double kStrongestPull = 100;
/// The same batch with every token pulled to the first `experts` experts, more than any router
/// resists. REQUIRES: a model with a paged stash.
Batch with_expert_pull(Batch batch, std::int64_t experts);
/// [N, E] fp32 on the host: 1 where token n is sent to an expert, otherwise 0. It has the `topk`
/// experts from number (first + n) mod `circle` on, after the last of which follows the first one.
at::Tensor pull_in_circle(std::int64_t tokens, std::int64_t experts, std::int64_t topk,
                          std::int64_t first, std::int64_t circle);

}  // namespace graphproof::workloads
