// What the reference model is and how it is trained (ModelConfig), and where this rank stands in it
// (Layout). Plain values, no LibTorch.
#pragma once

#include <cstdint>
#include <string>

#include "workloads/config/recompute_config.h"

namespace graphproof::workloads {

/// Spelled as the axes of their names. What bf16 and fp16 mean for each tensor: precision.h.
enum class Precision { fp32, bf16, fp16 };
enum class LossScaling { dynamic, static_ };  // of fp16 alone
enum class OptimizerKind { sgd, adam };
enum class Normalization { RMSNorm, LayerNorm };
enum class Activation { gelu, swiglu };
enum class PositionEmbedding { rope, learned_absolute };

struct ModelConfig {
  std::int64_t layers = 2, hidden = 64, heads = 4, kv_groups = 4, ffn = 256, vocab = 128;
  std::int64_t seq_length = 16, microbatch_size = 2, microbatches = 1;
  Normalization normalization = Normalization::RMSNorm;
  Activation activation = Activation::gelu;
  PositionEmbedding position_embedding = PositionEmbedding::rope;
  bool tied_embeddings = false;  // the output layer's weight is the embedding's
  bool packed = false;           // documents in a sequence, and padding: data.h
  bool qkv_bias = false, linear_bias = false;
  double dropout = 0.0;  // probability
  bool hybrid = false;   // layers 0, 2, 4 ... are mamba layers
  std::int64_t experts = 0,
               topk = 0;  // routed experts of a layer and of a token; 0 is a dense model
  bool dropless = false, gather_tokens = false;  // how tokens get to experts: moe.h
  bool router_aux_loss = false, router_z_loss = false, router_score_correction = false;  // moe.h
  bool shared_expert = false;          // beside the routed ones, of the same inner size
  bool shared_expert_overlap = false;  // shared_expert_stream.h
  /// Of a single rank that stands for more: the tokens that each rank of a layout with so many
  /// context and sequence parallel parts would have share a capacity of their own.
  int capacity_cp = 1, capacity_parts = 1;
  RecomputeConfig recompute = {};
  Precision precision = Precision::fp32;
  LossScaling loss_scaling = LossScaling::dynamic;
  OptimizerKind optimizer = OptimizerKind::sgd;
  bool clip_grad = false;     // by the norm of all gradients, gradient_clip.h
  bool weight_decay = false;  // optimizer.h
  bool nan_check_loss = false, nan_check_grad = false;       // host_checks.h
  bool overlap_grad_reduce = false;                          // gradient_reduction.h
  bool distributed_optimizer = false;                        // parameter_shards.h
  bool overlap_param_gather = false;                         // parameter_gather.h
  bool grad_accumulation_fusion = false;                     // fused_linear.h
  bool overlap_ep_comm = false;                              // layer_pass.h
  bool delay_wgrad = false;                                  // delayed_gradients.h
  bool fp8_weights = false, first_last_layers_bf16 = false;  // fp8_weights.h
  /// Of a single rank that stands for more: the ranks over which a weight is cut, and an expert's,
  /// have scales of their own.
  int fp8_parts = 1, fp8_expert_parts = 1;

  bool rounds_weights(std::int64_t layer) const {
    return fp8_weights && !(first_last_layers_bf16 && (layer == 0 || layer == layers - 1));
  }
  bool mamba(std::int64_t layer) const { return hybrid && layer % 2 == 0; }
};

/// How context parallel ranks get each other's keys and values, as Megatron-LM's --cp-comm-type:
/// passed round a ring, one rank's at a time, or all at once.
enum class CpCommType { p2p, all_gather };

/// Where this rank stands. A group of one rank issues no collective; names are those of
/// comm::ProcessGroups. The experts are split over `ep` of a stage's ranks and each of them over
/// `etp`, neighbours in the groups ep and etp; ranks that hold the same parts are the group edp.
struct Layout {
  int tp = 1, dp = 1, tp_rank = 0, dp_rank = 0;
  std::string tp_group, dp_group;
  int ep = 1, ep_rank = 0;
  std::string ep_group, edp_group;
  int etp = 1, etp_rank = 0;
  std::string etp_group;
  bool sequence_parallel = false;  // see tensor_parallel.h
  /// Context parallelism: of every sequence this rank has two chunks (context_parallel.h). Such
  /// ranks hold the same parameters as data parallel ones do: gradients are reduced over dp_cp,
  /// both kinds together.
  int cp = 1, cp_rank = 0;
  std::string cp_group, dp_cp_group;
  CpCommType cp_comm_type = CpCommType::p2p;
  /// Pipeline stage, and of how many chunks it is made. The layers are cut into pp * vpp equal
  /// pieces; stage p holds pieces p, p + pp, p + 2 pp and so on as its chunks, as Megatron-LM
  /// places them. Each directed edge between two stages is a group (comm::edge_name); the embedding
  /// group is first and last stage.
  int pp = 1, pp_rank = 0, vpp = 1;
  std::int64_t microbatch_group =
      0;  // microbatches that a chunk runs before the next chunk does; 0 is pp
  std::string embedding_group;
  std::string pp_group;  // the stages, where the optimizer asks all of them: the norm, or whether
                         // anything is infinite

  /// Ranks of a pipeline stage.
  int stage_ranks() const { return tp * cp * dp; }
  /// Ranks that hold the same parts of experts.
  int expert_replicas() const { return stage_ranks() / (ep * etp); }
  /// Ranks that hold the same dense parameters and work on other tokens, and their group.
  int replicas() const { return dp * cp; }
  const std::string& replica_group() const { return cp > 1 ? dp_cp_group : dp_group; }
  /// Tokens of a sequence that this rank has, its tensor parallel peers' included.
  std::int64_t own_length(const ModelConfig& config) const { return config.seq_length / cp; }
  /// Into how many parts that is cut outside tensor parallel regions.
  int sequence_parts() const { return sequence_parallel ? tp : 1; }
  bool first_stage() const { return pp_rank == 0; }
  bool last_stage() const { return pp_rank == pp - 1; }
  std::int64_t stage_layers(const ModelConfig& config) const { return config.layers / pp; }
  std::int64_t chunk_layers(const ModelConfig& config) const { return config.layers / (pp * vpp); }
  std::int64_t first_layer(const ModelConfig& config, std::int64_t chunk) const {
    return chunk_layers(config) * (chunk * pp + pp_rank);
  }
  bool holds(const ModelConfig& config, std::int64_t layer) const {
    return layer / chunk_layers(config) % pp == pp_rank;
  }
  /// Where a layer that this stage holds stands among its layers.
  std::int64_t place(const ModelConfig& config, std::int64_t layer) const {
    return layer / chunk_layers(config) / pp * chunk_layers(config) + layer % chunk_layers(config);
  }
  /// Of this stage's layers, those that have experts if the model has any, and where such a layer
  /// stands among them. Every chunk of a hybrid model has as many mamba layers as others.
  std::int64_t expert_layers(const ModelConfig& config) const {
    return stage_layers(config) / (config.hybrid ? 2 : 1);
  }
  std::int64_t expert_place(const ModelConfig& config, std::int64_t layer) const {
    return place(config, layer) / (config.hybrid ? 2 : 1);
  }
};

}  // namespace graphproof::workloads
