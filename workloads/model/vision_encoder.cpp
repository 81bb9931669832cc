#include "workloads/model/vision_encoder.h"

#include <stdexcept>
#include <string>

namespace graphproof::workloads {
namespace {

/// The encoder has no pipeline of its own, and whole sequences.
Layout encoder_layout(Layout layout) {
  layout.pp = layout.vpp = layout.cp = 1;
  layout.pp_rank = layout.cp_rank = 0;
  layout.sequence_parallel = false;
  return layout;
}

void require_length(std::int64_t got, std::int64_t want) {
  if (got == want) return;
  throw std::invalid_argument(
      "vision encoder: got " + std::to_string(got) + " image tokens; want " + std::to_string(want) +
      ", with padding after the last image; why: rule B21, the encoder's graphs are captured for "
      "one length; next: pad a microbatch with fewer, and make the length larger for more");
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
      own_(encoder_layout(layout)),
      frozen_(config.freeze_vision_model),
      shared_(layout.sequence_parallel),
      tables_(config_, own_, device, faults),
      mamba_tables_(config_, device),
      patch_embedding_(encoder.create("vision.patch_embedding.weight",
                                      {config.hidden, config.token_numbers()}, whole(own_),
                                      weight_distribution(config.token_numbers(), 1.0))),
      positions_(encoder.create("vision.position_embedding.weight",
                                {ModelConfig::kPatches, config.hidden}, whole(own_), {0.0, 1.0})),
      layers_([&] {
        std::vector<Layer> layers;
        for (std::int64_t l = 0; l < config.encoder_layers; ++l)
          layers.emplace_back(
              encoder, config_, own_, tables_, mamba_tables_, device,
              Layer::Place{.index = config.first_encoder_layer() + l,
                           .name = config.layer_name(config.first_encoder_layer() + l),
                           .counter = static_cast<std::size_t>(layout.stage_layers(config) +
                                                               layout.mtp_layers(config) + l)});
        return layers;
      }()),
      final_norm_(encoder, config_, own_, "vision.final_norm"),
      projection_(projection.create("vision.projection.weight", {config.hidden, config.hidden},
                                    whole(own_), weight_distribution(config.hidden, 1.0))),
      dropout_(config_, own_, tracker, seed, device, faults),
      recomputes_(config_, own_, device),
      experts_(config_, own_, device),
      expert_buffers_(config_, own_, device) {
  front_ = {patch_embedding_, positions_};
  projections_ = encoder.starting_with("vision.final_norm.");
  projections_.push_back(projection_);
}

at::Tensor VisionEncoder::forward(const at::Tensor& text, const Images& images,
                                  const ForwardPass& pass) const {
  require_length(images.patches.size(0), config_.seq_length);
  at::Tensor numbers = images.numbers, rows = images.rows;
  pass.faults.images(numbers, rows);
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
  at::Tensor tokens = at::mm(final_norm_.forward(x), projection_.t()).to(text.scalar_type());
  if (shared_ && pass.faults.sums_image_gradients()) tokens = enter_tensor_parallel(tokens, own_);
  // What has no place here goes to a row behind the last one, which is cut off.
  const at::Tensor with_spare = at::cat({text, text.new_zeros({1, text.size(1)})});
  return with_spare.index_copy(0, rows, tokens).narrow(0, 0, text.size(0));
}

}  // namespace graphproof::workloads
