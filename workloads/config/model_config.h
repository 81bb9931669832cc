// The sizes and options of the reference model and of its training (ModelConfig), and the place of
// this rank among the ranks that share it (Layout). Plain values, no LibTorch.
#pragma once

#include <cstdint>
#include <string>

#include "workloads/config/recompute_config.h"

namespace graphproof::workloads {

/// The values of axis precision, and fp64, in which the derivative of a loss is measured
/// (suites/arms/derivative.cpp). precision.h describes them for each tensor.
enum class Precision { fp32, bf16, fp16, fp8_delayed, fp8_current, mxfp8, nvfp4, fp64 };
/// Whether linear layers multiply numbers with a scale for each block (block_product.h).
constexpr bool is_block_scaled(Precision precision) {
  return precision == Precision::mxfp8 || precision == Precision::nvfp4;
}
/// Whether linear layers multiply numbers of 8 or 4 bits: those, or numbers with a scale for each
/// tensor (fp8_product.h).
constexpr bool is_quantized(Precision precision) {
  return precision == Precision::fp8_delayed || precision == Precision::fp8_current ||
         is_block_scaled(precision);
}
/// The values of axis loss_scale, which applies to fp16 only.
enum class LossScaling { dynamic, static_ };
/// The values of axis optimizer.
enum class OptimizerKind { sgd, adam };
/// The values of axis normalization.
enum class Normalization { RMSNorm, LayerNorm };
/// The values of axis activation.
enum class Activation { gelu, swiglu };
/// The values of axis position_embedding.
enum class PositionEmbedding { rope, learned_absolute };
/// The values of axis embedding_gradient (embedding.h).
enum class EmbeddingGradient { index_put, index_add };
/// The values of axis attention_kernel (attention.h).
enum class AttentionKernel { math, efficient, flash };

/// The values of axis image_counts: how many images a sequence has. late: none in the first steps.
enum class ImageCounts { fixed, variable, late };

/// The values of axis vision_length: what the length of the encoder's input follows from if none is
/// given. images: as many images as a microbatch can have. encoder: the encoder's own settings.
enum class VisionLength { images, encoder };

/// The model and how it is trained. Where a field names a header, that header describes the option.
struct ModelConfig {
  std::int64_t layers = 2, hidden = 64, heads = 4, kv_groups = 4, ffn = 256, vocab = 128;
  std::int64_t seq_length = 16, microbatch_size = 2, microbatches = 1;
  Normalization normalization = Normalization::RMSNorm;
  Activation activation = Activation::gelu;
  PositionEmbedding position_embedding = PositionEmbedding::rope;
  bool tied_embeddings = false;  // the output layer uses the embedding's weight
  bool packed = false;           // several documents in a sequence, and padding: data.h
  bool qkv_bias = false, linear_bias = false;
  bool multi_latent_attention = false;  // latent_projections.h
  /// Layers that predict tokens after the next one (multi_token_prediction.h), and the factor of
  /// the mean of their losses in the loss of a microbatch. The default of the factor is that of
  /// Megatron-LM's --mtp-loss-scaling-factor.
  std::int64_t mtp_num_layers = 0;
  double mtp_loss_scaling_factor = 0.1;
  double dropout = 0.0;  // probability
  bool hybrid = false;   // layers 0, 2, 4 ... are mamba layers
  /// Routed experts in a layer (0: a dense model), and how many of them each token uses.
  std::int64_t experts = 0, topk = 0;
  /// How tokens reach the experts: moe.h. `flex` and `gather_tokens` are ways of a dropless
  /// dispatch. With paged_stash an engine may limit its buffers (paged_stash.h).
  bool dropless = false, gather_tokens = false, flex = false, paged_stash = false;
  bool router_aux_loss = false, router_z_loss = false, router_score_correction = false;  // moe.h
  bool shared_expert = false;          // in addition to the routed ones, of the same inner size
  bool shared_expert_overlap = false;  // shared_expert_stream.h
  EmbeddingGradient embedding_gradient = EmbeddingGradient::index_put;
  AttentionKernel attention_kernel = AttentionKernel::math;
  /// Set if a single rank is compared with several ranks: the numbers of context parallel and of
  /// sequence parallel parts of the layout that it stands for. The tokens that one rank of that
  /// layout would have then share a capacity of their own.
  int capacity_cp = 1, capacity_parts = 1;
  /// A vision encoder in front of the decoder (vision_encoder.h): its layers, or 0 for none.
  std::int64_t encoder_layers = 0;
  std::int64_t images = 0;  // the most images of a sequence
  ImageCounts image_counts = ImageCounts::fixed;
  std::int64_t vision_seq_length = 0;  // of encoder_length(); 0: as vision_length says
  VisionLength vision_length = VisionLength::images;
  /// The positions that the encoder has for the patches of a microbatch, 0 if that is unknown, and
  /// the side of the square of patches of which one image token is made.
  std::int64_t vision_positions = 0, vision_merge_size = 1;
  bool freeze_vision_model = false;  // the encoder does not train, its projection does
  bool bidirectional = false;        // tokens attend to later ones too, as in an encoder
  RecomputeConfig recompute = {};
  Precision precision = Precision::fp32;
  bool autocast = false, autocast_cache = false;  // in bf16, with precision fp32: autocast.h
  bool cpu_offload = false;                       // activation_offload.h
  LossScaling loss_scaling = LossScaling::dynamic;
  OptimizerKind optimizer = OptimizerKind::sgd;
  bool clip_grad = false;                                    // gradient_clip.h
  bool weight_decay = false;                                 // optimizer.h
  bool nan_check_loss = false, nan_check_grad = false;       // host_checks.h
  bool overlap_grad_reduce = false;                          // gradient_reduction.h
  bool distributed_optimizer = false;                        // parameter_shards.h
  bool overlap_param_gather = false;                         // parameter_gather.h
  bool grad_accumulation_fusion = false;                     // fused_linear.h
  bool overlap_ep_comm = false;                              // layer_pass.h
  bool delay_wgrad = false;                                  // delayed_gradients.h
  bool fp8_weights = false, first_last_layers_bf16 = false;  // fp8_weights.h
  /// Set if a single rank is compared with several ranks: the numbers of ranks over which the
  /// layout that it stands for splits a weight and an expert's weight. Each part has its own scale.
  int fp8_parts = 1, fp8_expert_parts = 1;

  /// Whether activations, or some of them, have 16 bits.
  bool rounds_to_16_bits() const {
    return (precision != Precision::fp32 && precision != Precision::fp64) || autocast;
  }
  /// Whether the linear layers of a layer use numbers of 8 or 4 bits: in their products, or in
  /// rounded weights alone. The encoder has a first and a last layer of its own, as each block of
  /// layers has in Megatron-LM (fp8_utils.py: is_first_last_bf16_layer).
  bool uses_fp8(std::int64_t layer) const {
    const bool of_encoder = layer >= first_encoder_layer();
    const std::int64_t first = of_encoder ? first_encoder_layer() : 0,
                       last = first + (of_encoder ? encoder_layers : layers) - 1;
    return (fp8_weights || is_quantized(precision)) &&
           !(first_last_layers_bf16 && (layer == first || layer == last));
  }
  /// The width of a head: of its values, and of its queries and keys apart from a rotary part that
  /// latent attention adds to them.
  std::int64_t head_width() const { return hidden / heads; }
  /// How many elements of a query and of a key rotary positions rotate.
  std::int64_t rotary_width() const {
    return multi_latent_attention ? head_width() / 2 : head_width();
  }
  /// The width of a query and of a key.
  std::int64_t query_width() const {
    return head_width() + (multi_latent_attention ? rotary_width() : 0);
  }
  /// The widths of the latents from which latent attention makes queries, and keys and values
  /// (Megatron-LM's --q-lora-rank and --kv-lora-rank). As in DeepSeek-V3 that of keys and values is
  /// the smaller one.
  std::int64_t q_lora_rank() const { return hidden / 2; }
  std::int64_t kv_lora_rank() const { return hidden / 4; }
  /// Whether attention rotates queries and keys.
  bool rotates() const {
    return multi_latent_attention || position_embedding == PositionEmbedding::rope;
  }
  /// Whether the last pipeline stage has the token embedding too.
  bool embeds_on_last_stage() const { return tied_embeddings || mtp_num_layers > 0; }
  /// The tokens of one image: a grid of two by two patches, or squares of merged patches.
  static constexpr std::int64_t kPatches = 4;
  /// The numbers of a patch, two by two pixels of three colours, and those of an image token.
  static constexpr std::int64_t kPatchNumbers = 12;
  std::int64_t token_numbers() const {
    return kPatchNumbers * vision_merge_size * vision_merge_size;
  }
  /// The length of the encoder's input, which holds all images of a microbatch one after another,
  /// and padding. Derived from the encoder's settings it is that of Megatron-LM's
  /// get_vision_cuda_graph_seq_length().
  std::int64_t encoder_length() const {
    constexpr std::int64_t kUnknown = 4096;
    if (vision_seq_length > 0) return vision_seq_length;
    if (vision_length == VisionLength::images) return microbatch_size * images * kPatches;
    return vision_positions > 0 ? vision_positions / (vision_merge_size * vision_merge_size)
                                : kUnknown;
  }
  /// The number of the first layer of the encoder. Layers of the decoder come first, then those of
  /// multi-token prediction, then the encoder's.
  std::int64_t first_encoder_layer() const { return layers + mtp_num_layers; }
  /// The name of a layer.
  std::string layer_name(std::int64_t layer) const {
    if (layer < layers) return "layers." + std::to_string(layer);
    if (layer < first_encoder_layer()) return "mtp.layers." + std::to_string(layer - layers);
    return "vision.layers." + std::to_string(layer - first_encoder_layer());
  }
  bool mamba(std::int64_t layer) const { return hybrid && layer < layers && layer % 2 == 0; }
};

/// How context parallel ranks exchange keys and values (Megatron-LM's --cp-comm-type): `p2p` passes
/// those of one rank at a time around a ring, `all_gather` gathers those of all ranks at once.
enum class CpCommType { p2p, all_gather };

/// Where a buffer of a whole communicator lies in memory (placed_buffer.h): wherever the allocator
/// puts it, or with axis placement `per_rank` at a border of physical memory on ranks with an even
/// number and across one on the others.
enum class BufferPlacement { by_allocator, at_border, across_border };

/// The sizes of the parallel groups and the place of this rank in them. Group names are those of
/// comm::ProcessGroups; a group of one rank issues no collective. The experts of a layer are split
/// over the `ep` ranks of group ep, and each expert over the `etp` ranks of group etp. Ranks that
/// hold the same parts of experts form the group edp.
struct Layout {
  int tp = 1, dp = 1, tp_rank = 0, dp_rank = 0;
  std::string tp_group, dp_group;
  int ep = 1, ep_rank = 0;
  std::string ep_group, edp_group;
  int etp = 1, etp_rank = 0;
  std::string etp_group;
  bool sequence_parallel = false;  // tensor_parallel.h
  /// Context parallelism: this rank has two chunks of every sequence (context_parallel.h). Context
  /// parallel ranks hold the same parameters, as data parallel ranks do, and gradients are reduced
  /// over both kinds together (dp_cp_group).
  int cp = 1, cp_rank = 0;
  std::string cp_group, dp_cp_group;
  CpCommType cp_comm_type = CpCommType::p2p;
  /// The pipeline stage of this rank and its number of chunks. As in Megatron-LM, the layers are
  /// split into pp * vpp equal pieces, and the chunks of stage p are the pieces p, p + pp, p + 2 pp
  /// and so on. Each directed edge between two stages is a group (comm::edge_name). The embedding
  /// group consists of the first stage and the last, if both have the token embedding.
  int pp = 1, pp_rank = 0, vpp = 1;
  /// Microbatches that a chunk runs before the next chunk does; 0 is pp.
  std::int64_t microbatch_group = 0;
  std::string embedding_group;
  /// All ranks of a stage, which together find the largest elements of what becomes fp8
  /// (fp8_scaling.h).
  std::string amax_group;
  /// All stages. Used by the optimizer for the gradient norm and the test for infinite gradients.
  std::string pp_group;
  BufferPlacement placement = BufferPlacement::by_allocator;

  /// The number of ranks in a pipeline stage.
  int stage_ranks() const { return tp * cp * dp; }
  /// The number of ranks that hold the same parts of experts.
  int expert_replicas() const { return stage_ranks() / (ep * etp); }
  /// The number of ranks that hold the same dense parameters but work on different tokens, and
  /// their group.
  int replicas() const { return dp * cp; }
  const std::string& replica_group() const { return cp > 1 ? dp_cp_group : dp_group; }
  /// The tokens of a sequence that this rank has together with its tensor parallel peers.
  std::int64_t own_length(const ModelConfig& config) const { return config.seq_length / cp; }
  /// The number of parts into which own_length() is split outside tensor parallel regions.
  int sequence_parts() const { return sequence_parallel ? tp : 1; }
  bool first_stage() const { return pp_rank == 0; }
  bool last_stage() const { return pp_rank == pp - 1; }
  std::int64_t stage_layers(const ModelConfig& config) const { return config.layers / pp; }
  /// The layers of the vision encoder on this stage: the first one has them all.
  std::int64_t encoder_layers(const ModelConfig& config) const {
    return first_stage() ? config.encoder_layers : 0;
  }
  /// The layers of multi-token prediction on this stage: the last one has them all.
  std::int64_t mtp_layers(const ModelConfig& config) const {
    return last_stage() ? config.mtp_num_layers : 0;
  }
  std::int64_t chunk_layers(const ModelConfig& config) const { return config.layers / (pp * vpp); }
  std::int64_t first_layer(const ModelConfig& config, std::int64_t chunk) const {
    return chunk_layers(config) * (chunk * pp + pp_rank);
  }
  /// Whether this stage has a layer, and in which of its chunks. The encoder runs in front of the
  /// first stage's first chunk.
  bool holds(const ModelConfig& config, std::int64_t layer) const {
    if (layer >= config.first_encoder_layer()) return first_stage();
    return layer < config.layers ? layer / chunk_layers(config) % pp == pp_rank : last_stage();
  }
  std::int64_t chunk_of(const ModelConfig& config, std::int64_t layer) const {
    if (layer >= config.first_encoder_layer()) return 0;
    return layer < config.layers ? layer / chunk_layers(config) / pp : vpp - 1;
  }
  /// The place of a layer of this stage among the stage's layers, from 0: first those of the
  /// decoder, then those of multi-token prediction, then the encoder's.
  std::int64_t place(const ModelConfig& config, std::int64_t layer) const {
    if (layer >= config.first_encoder_layer())
      return stage_layers(config) + mtp_layers(config) + layer - config.first_encoder_layer();
    if (layer >= config.layers) return stage_layers(config) + layer - config.layers;
    return layer / chunk_layers(config) / pp * chunk_layers(config) + layer % chunk_layers(config);
  }
  /// The number of this stage's layers that have experts if the model has any, and the place of
  /// such a layer among them, from 0. In a hybrid model half the decoder's layers of each chunk are
  /// mamba layers.
  std::int64_t expert_layers(const ModelConfig& config) const {
    return decoder_expert_layers(config) + mtp_layers(config);
  }
  std::int64_t expert_place(const ModelConfig& config, std::int64_t layer) const {
    return layer < config.layers ? place(config, layer) / (config.hybrid ? 2 : 1)
                                 : decoder_expert_layers(config) + layer - config.layers;
  }
  std::int64_t decoder_expert_layers(const ModelConfig& config) const {
    return stage_layers(config) / (config.hybrid ? 2 : 1);
  }
};

}  // namespace graphproof::workloads
