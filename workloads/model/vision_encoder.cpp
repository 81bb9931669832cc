#include "workloads/model/vision_encoder.h"

#include <stdexcept>
#include <string>

namespace graphproof::workloads {
namespace {

/// The encoder has no pipeline of its own.
Layout one_stage(Layout layout) {
  layout.pp = layout.vpp = 1;
  layout.pp_rank = 0;
  return layout;
}

void require_length(std::int64_t got, std::int64_t want) {
  if (got == want) return;
  throw std::invalid_argument(
      "vision encoder: got " + std::to_string(got) + " image tokens; want " + std::to_string(want) +
      ", with padding after the last image; why: rule B21, the encoder's graphs are captured for "
      "one length; next: pad a microbatch with fewer, and raise vision_seq_length for more");
}

}  // namespace

ModelConfig encoder_config(const ModelConfig& config) {
  ModelConfig encoder = config;
  encoder.layers = config.encoder_layers;
  encoder.kv_groups = config.heads;
  encoder.seq_length = config.encoder_length();
  encoder.microbatch_size = 1;
  encoder.position_embedding = PositionEmbedding::learned_absolute;
  encoder.multi_latent_attention = false;
  encoder.mtp_num_layers = 0;
  encoder.packed = encoder.bidirectional = true;  // each image is a document
  encoder.dropout = 0;
  encoder.hybrid = encoder.shared_expert = encoder.shared_expert_overlap = false;
  encoder.experts = encoder.topk = 0;
  encoder.recompute = {};
  encoder.grad_accumulation_fusion = config.grad_accumulation_fusion && !config.freeze_vision_model;
  return encoder;
}

VisionEncoder::VisionEncoder(Parameters& encoder, Parameters& projection, const ModelConfig& config,
                             const Layout& layout, fixtures::RngTracker& tracker,
                             std::uint64_t seed, at::Device device, faults::FaultHooks& faults)
    : config_(encoder_config(config)),
      frozen_(config.freeze_vision_model),
      tables_(config_, one_stage(layout), device, faults),
      mamba_tables_(config_, device),
      patch_embedding_(encoder.create("vision.patch_embedding.weight",
                                      {config.hidden, ModelConfig::kPatchNumbers}, whole(layout),
                                      weight_distribution(ModelConfig::kPatchNumbers, 1.0))),
      positions_(encoder.create("vision.position_embedding.weight",
                                {ModelConfig::kPatches, config.hidden}, whole(layout), {0.0, 1.0})),
      layers_([&] {
        std::vector<Layer> layers;
        for (std::int64_t l = 0; l < config.encoder_layers; ++l)
          layers.emplace_back(
              encoder, config_, one_stage(layout), tables_, mamba_tables_, device,
              Layer::Place{.index = config.first_encoder_layer() + l,
                           .name = config.layer_name(config.first_encoder_layer() + l),
                           .counter = static_cast<std::size_t>(layout.stage_layers(config) +
                                                               layout.mtp_layers(config) + l)});
        return layers;
      }()),
      final_norm_(encoder, config_, layout, "vision.final_norm"),
      projection_(projection.create("vision.projection.weight", {config.hidden, config.hidden},
                                    whole(layout), weight_distribution(config.hidden, 1.0))),
      dropout_(config_, one_stage(layout), tracker, seed, device, faults),
      recomputes_(config_, one_stage(layout), device),
      experts_(config_, one_stage(layout), device),
      expert_buffers_(config_, one_stage(layout), device) {
  front_ = {patch_embedding_, positions_};
  projections_ = encoder.starting_with("vision.final_norm.");
  projections_.push_back(projection_);
}

at::Tensor VisionEncoder::forward(const at::Tensor& text, const Images& images,
                                  const ForwardPass& pass) const {
  require_length(images.patches.size(0), config_.seq_length);
  const at::Tensor numbers = pass.faults.image_numbers(images.numbers);
  const ForwardPass run{.microbatch = pass.microbatch,
                        .dropout = dropout_,
                        .counters = pass.counters,
                        .faults = pass.faults,
                        .recording = pass.recording,
                        .runner = pass.runner,
                        .module_runs = pass.module_runs,
                        .recomputes = recomputes_,
                        .experts = experts_,
                        .expert_buffers = expert_buffers_,
                        .router_bias = pass.router_bias,
                        .root_gradient = pass.root_gradient,
                        .documents = numbers,
                        .autocast = pass.autocast,
                        .gather = frozen_ ? nullptr : pass.gather,
                        .fp8_weights = pass.fp8_weights};
  if (run.gather) run.gather->wait(front_);
  // Every image has all its tokens, so a token's position in its image is the remainder of its
  // position among all tokens.
  const std::int64_t patches = ModelConfig::kPatches, length = config_.seq_length;
  const at::Tensor positions = positions_.repeat({(length + patches - 1) / patches, 1});
  at::Tensor x = at::mm(images.patches.to(patch_embedding_.scalar_type()), patch_embedding_.t()) +
                 positions.narrow(0, 0, length);
  for (const Layer& layer : layers_) x = layer.forward(x, run);
  if (pass.gather) pass.gather->wait(frozen_ ? std::vector{projection_} : projections_);
  const at::Tensor tokens = at::mm(final_norm_.forward(x), projection_.t()).to(text.scalar_type());
  // The results of padding go to a row behind the last one, which is cut off.
  const at::Tensor with_spare = at::cat({text, text.new_zeros({1, text.size(1)})});
  return with_spare.index_copy(0, images.rows, tokens).narrow(0, 0, text.size(0));
}

}  // namespace graphproof::workloads
