// The vision encoder of model vlm: patch embedding, transformer layers without a causal mask, norm,
// and a projection to the decoder, whose results take the places of tokens in the decoder's
// sequences. It is on the first pipeline stage and runs in front of the stage's first chunk, so it
// belongs to one chunk whatever the number of virtual stages is.
//
// As in Megatron-LM's capture of a vision encoder, the images of all sequences of a microbatch
// follow one another along one sequence of the encoder (batch 1), padded to a fixed length, for
// which graphs are captured. A token attends to the tokens of its own image. Padding attends only
// to padding, and its results are dropped, so neither its values nor its number matter.
//
// The layers are those of the decoder (layer.h) with another configuration, and parts of their own
// for a runner, numbered after the decoder's (ModelConfig::layer_name). They have no dropout, no
// recompute and no experts. A frozen encoder needs no gradients: its parts have no backward.
// Products in 8 or 4 bits and rounded weights have scales, histories and copies of the encoder's
// own layers (fp8_scaling.h, fp8_weights.h), which belong to the chunk that the encoder runs in
// front of. A scale follows the largest element of a tensor or of a block, so there padding does
// have influence.
//
// Where ranks share the decoder's sequences, by sequence or by context parallelism, each of them
// runs the encoder with all images, and takes the tokens whose places it has. The encoder itself
// has whole sequences. Tensor parallel ranks add up what their parts of a sequence give to the
// gradients of image tokens; the gradients of context parallel ranks are summed as those of all
// parameters are.
//
// The numbers of an image token are those of its patch, or of the square of patches that are merged
// into it (spatial_merge_size).
//
// L image tokens, X numbers of an image token, H hidden elements; N rows of the decoder on this
// rank.
#pragma once

#include <vector>

#include "fixtures/tensors/torch.h"
#include "workloads/layers/norm.h"
#include "workloads/model/layer.h"

namespace graphproof::workloads {

/// The encoder's configuration: that of a model of `encoder_layers` dense layers with one sequence.
ModelConfig encoder_config(const ModelConfig& config);

/// The encoder with its projection. Used by the thread that runs the step.
class VisionEncoder {
 public:
  /// Creates the encoder's parameters in `encoder` and those of the projection in `projection`,
  /// which may be the same. REQUIRES: a first stage. `tracker` and `faults` outlive it.
  VisionEncoder(Parameters& encoder, Parameters& projection, const ModelConfig& config,
                const Layout& layout, fixtures::RngTracker& tracker, std::uint64_t seed,
                at::Device device, faults::FaultHooks& faults);
  VisionEncoder(const VisionEncoder&) = delete;  // the layers refer to the tables
  VisionEncoder& operator=(const VisionEncoder&) = delete;

  /// The images of one microbatch (data.h).
  struct Images {
    const at::Tensor &patches, &numbers, &rows;  // [L, X], [1, L], [L]
  };
  /// text [N, H]: the embedded tokens. Returns [N, H], with the image tokens in their places.
  /// `pass` is that of the decoder's forward; its counters end with those of the encoder's layers.
  /// Throws std::invalid_argument for another number of image tokens than L (rule B21).
  at::Tensor forward(const at::Tensor& text, const Images& images, const ForwardPass& pass) const;

 private:
  ModelConfig config_;
  Layout own_;            // of the encoder
  bool frozen_, shared_;  // shared: tensor parallel ranks have parts of the decoder's sequences
  AttentionTables tables_;
  MambaTables mamba_tables_;
  at::Tensor patch_embedding_, positions_;  // [H, X]; [tokens of an image, H]
  std::vector<Layer> layers_;
  Norm final_norm_;
  at::Tensor projection_;                        // [H, H]
  std::vector<at::Tensor> front_, projections_;  // the parameters before and after the layers
  mutable Dropout dropout_;                      // with probability 0
  RecomputeLedger recomputes_;                   // of nothing
  ExpertLedger experts_;                         // of nothing
  ExpertBuffers expert_buffers_;                 // of nothing
};

}  // namespace graphproof::workloads
