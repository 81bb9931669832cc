#include "suites/checks/attempt/expected.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "workloads/engine_traits/engine_traits.h"

namespace graphproof::checks {

std::vector<std::int64_t> Expected::replayed_steps() const {
  std::vector<std::int64_t> result;
  for (std::int64_t step = first_replay; step <= last_inputs_step; ++step) result.push_back(step);
  return result;
}

bool trains(const Axes& axes) {
  const bool decodes = axes.text("schedule") == "decode" && axes.subject() == "reference";
  return axes.text("model") != "collective" && !decodes;
}

StageEnds ends_of(const Axes& axes, int rank) {
  const std::int64_t stage = rank / (axes.integer("tp") * axes.integer("cp") * axes.integer("dp"));
  return {.first = stage == 0, .last = stage == axes.integer("pp") - 1};
}

bool shares_embedding(const Axes& axes) {
  return axes.integer("pp") > 1 &&
         (axes.flag("tied_embeddings") || axes.integer("mtp_num_layers") > 0);
}

Expected expected(const Axes& axes, StageEnds ends) {
  Expected result;
  const engines::EngineTraits& engine = engines::traits_of(axes.text("impl"));
  result.graph = engine.captures();
  result.trains = trains(axes);
  result.steps = axes.integer("steps");
  result.warmup_steps = axes.integer("warmup_steps");
  result.microbatches = axes.integer("microbatches");
  result.layers = axes.integer("layers") / axes.integer("pp");
  result.first_replay = engine.eager_steps(result.warmup_steps);
  result.capture_step = engine.capture_step(result.warmup_steps);
  // In a hybrid model every other layer is a mamba layer, whose only module is `mamba`.
  const std::int64_t kinds = axes.text("model") == "hybrid" ? 2 : 1;
  // The layers of multi-token prediction are transformer layers.
  const std::int64_t predictions = ends.last ? axes.integer("mtp_num_layers") : 0;
  result.expert_layers = result.layers / kinds + predictions;
  const std::int64_t layer_passes = result.layers / kinds * result.microbatches;
  const std::int64_t modules = axes.size("modules"), mamba = axes.holds("modules", "mamba") ? 1 : 0;
  // Axis modules: an empty set means the whole layer; otherwise each module is a part of every
  // layer of its kind. Megatron-Core gives Transformer Engine one callable for the captured modules
  // of a layer; the subject that is Transformer Engine alone gives it each of them.
  const bool one_graph_a_layer = engine.one_graph_a_layer && (axes.subject() == "reference" ||
                                                              axes.subject() == "megatron_core");
  const std::int64_t parts = modules == 0        ? kinds
                             : one_graph_a_layer ? mamba + (modules > mamba ? 1 : 0)
                                                 : modules;
  const std::int64_t prediction_parts = modules == 0        ? 1
                                        : one_graph_a_layer ? (modules > mamba ? 1 : 0)
                                                            : modules - mamba;
  // The layers of a vision encoder are dense. A frozen one has no backward graphs.
  const bool sees = axes.text("model") == "vlm" && ends.first;
  const std::int64_t encoder_layers = sees ? axes.integer("encoder_layers") : 0;
  result.counted_layers = result.layers + predictions + encoder_layers;
  const std::int64_t dense =
      (axes.holds("modules", "attn") ? 1 : 0) + (axes.holds("modules", "mlp") ? 1 : 0);
  const std::int64_t encoder_parts = modules == 0        ? 1
                                     : one_graph_a_layer ? std::min<std::int64_t>(dense, 1)
                                                         : dense;
  const std::int64_t directions = axes.flag("freeze_vision_model") ? 1 : 2;
  const std::string captured = axes.text("captured_models");
  if (engine.captures_modules()) {
    result.launches_per_step = 0;
    if (captured != "encoder")
      result.launches_per_step +=
          2 * parts * layer_passes + 2 * prediction_parts * predictions * result.microbatches;
    if (captured != "decoder")
      result.launches_per_step += directions * encoder_parts * encoder_layers * result.microbatches;
  }
  // A graph of delayed weight gradients exists for each layer that has captured linear layers:
  // those of attention, and those of the shared expert, which is captured with the router.
  const bool delayed = axes.holds("modules", "attn") ||
                       (axes.holds("modules", "moe_router") && axes.flag("shared_expert"));
  if (engine.captures_delayed_weight_gradients && axes.flag("delay_wgrad") && delayed)
    result.launches_per_step += layer_passes + predictions * result.microbatches;
  if (axes.flag("optimizer_graph")) ++result.launches_per_step;
  // A step of Megatron-Core's inference is a forward pass, through a graph of each layer or of all.
  if (axes.text("schedule") == "decode" && axes.subject() == "megatron_core")
    result.launches_per_step = axes.text("inference_scope") == "block" ? 1 : layer_passes;
  result.last_inputs_step = result.steps;
  // Step first_replay has the inputs of the capture; the next one has others.
  result.replays_fresh_inputs = result.first_replay + 1 < result.steps;
  // A graph of the evaluation has its warm-up, its capture, and one replay; the first batch again
  // and a later evaluation are not counted.
  if (axes.text("schedule") == "train-eval-train") result.evaluations = result.warmup_steps + 2;
  // After every replayed step, and the one that repeats the capture's inputs.
  if (axes.text("schedule") == "train-rollout-train")
    result.rollouts = result.last_inputs_step - result.first_replay + 1;
  result.forwards_per_step = result.microbatches;
  if (!result.trains && axes.text("schedule") == "decode") {
    // All graphs are captured before the first step, with padding alone.
    result.first_replay = result.capture_step = 0;
    result.last_inputs_step = result.steps - 1;
    result.replays_fresh_inputs = true;
  }
  return result;
}

std::vector<RecomputedPart> recomputed_parts(const Axes& axes, bool last_stage) {
  const std::string value = axes.text("recompute");
  const std::int64_t chunks = axes.integer("vpp"),
                     layers = axes.integer("layers") / axes.integer("pp");
  if (value == "none") return {};
  const std::int64_t predictions = last_stage ? axes.integer("mtp_num_layers") : 0;
  const std::size_t open = value.find('(');
  std::istringstream list(value.substr(open + 1, value.size() - open - 2));
  if (value.starts_with("full")) {
    std::string method, count;
    std::getline(list, method, ',');
    std::getline(list, count);
    return {{"layer",
             method == "block" ? chunks * std::min<std::int64_t>(std::stoll(count), layers / chunks)
                               : layers + predictions,
             true}};
  }
  std::vector<RecomputedPart> parts;
  const std::int64_t others =
      (axes.text("model") == "hybrid" ? layers / 2 : layers) +  // a mamba layer has no parts
      predictions;
  for (std::string module; std::getline(list, module, ',');) {
    if (module == "layernorm") {
      parts.push_back({"attention_norm", others, false});
      parts.push_back({"mlp_norm", others, false});
    } else {
      parts.push_back({module, others, module == "core_attn"});
    }
  }
  return parts;
}

namespace {

/// Of rounded_weights(), those of the decoder and of multi-token prediction.
std::vector<std::int64_t> rounded_weights_of_decoder(const Axes& axes, std::int64_t stage) {
  const std::int64_t layers = axes.integer("layers"), stages = axes.integer("pp"),
                     of_chunk = layers / (stages * axes.integer("vpp"));
  const std::int64_t of_experts =
      axes.flag("shared_expert") ? 4 : 2;  // up and down; all routed experts share one tensor each
  // Latent attention has two projections down and two up in place of one.
  const std::int64_t of_transformer = (axes.flag("multi_latent_attention") ? 5 : 2) +
                                      (axes.integer("experts") > 0 ? of_experts : 2);
  std::vector<std::int64_t> weights;
  for (std::int64_t place = 0; place < layers / stages; ++place) {
    const std::int64_t layer = of_chunk * (place / of_chunk * stages + stage) + place % of_chunk;
    const bool kept = axes.flag("first_last_layers_bf16") && (layer == 0 || layer == layers - 1);
    const bool mamba = axes.text("model") == "hybrid" && layer % 2 == 0;
    weights.push_back(kept ? 0 : mamba ? 2 : of_transformer);
  }
  if (stage == stages - 1)
    weights.resize(weights.size() + static_cast<std::size_t>(axes.integer("mtp_num_layers")),
                   of_transformer);
  return weights;
}

/// Of rounded_weights(), those of the vision encoder, which the first stage has.
std::vector<std::int64_t> rounded_weights_of_encoder(const Axes& axes, std::int64_t stage) {
  if (axes.text("model") != "vlm" || stage != 0) return {};
  constexpr std::int64_t kOfDenseLayer = 4;  // two of attention, two of the MLP
  std::vector<std::int64_t> weights(static_cast<std::size_t>(axes.integer("encoder_layers")),
                                    kOfDenseLayer);
  if (axes.flag("first_last_layers_bf16")) weights.front() = weights.back() = 0;
  return weights;
}

}  // namespace

std::vector<std::int64_t> rounded_weights(const Axes& axes, std::int64_t stage) {
  std::vector<std::int64_t> weights = rounded_weights_of_decoder(axes, stage);
  const std::vector<std::int64_t> of_encoder = rounded_weights_of_encoder(axes, stage);
  weights.insert(weights.end(), of_encoder.begin(), of_encoder.end());
  return weights;
}

LinearLayers linear_layers(const Axes& axes, std::int64_t stage) {
  const std::vector<std::int64_t> of_layers = rounded_weights_of_decoder(axes, stage);
  const std::int64_t inner = std::accumulate(of_layers.begin(), of_layers.end(), std::int64_t{0});
  if (stage < axes.integer("pp") - 1) return {inner, inner};
  // The output layer, and a projection in front of each layer of prediction.
  const std::int64_t predictions = axes.integer("mtp_num_layers"),
                     weights = inner + 1 + predictions;
  return {weights, weights + predictions};
}

std::int64_t offloaded_activations(const Axes& axes) {
  const std::int64_t of_output =
      axes.flag("tied_embeddings") ? 1 + axes.integer("mtp_num_layers") : 0;
  return linear_layers(axes, 0).uses - of_output;
}

std::vector<std::int64_t> fp8_updates(const Axes& axes, std::int64_t stage) {
  const std::vector<std::int64_t> weights = rounded_weights_of_decoder(axes, stage),
                                  of_encoder = rounded_weights_of_encoder(axes, stage);
  const auto rounds = [](std::int64_t count) { return count > 0; };
  const std::int64_t chunks = axes.integer("vpp"),
                     of_chunk = axes.integer("layers") / (axes.integer("pp") * chunks);
  std::vector<std::int64_t> updates;
  for (int direction = 0; direction < 2; ++direction)
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      const auto first = weights.begin() + chunk * of_chunk;
      // Layers of multi-token prediction belong to the last chunk.
      const auto end = chunk == chunks - 1 ? weights.end() : first + of_chunk;
      // The encoder runs in front of the first chunk.
      const bool any = std::any_of(first, end, rounds) ||
                       (chunk == 0 && std::ranges::any_of(of_encoder, rounds));
      updates.push_back(any ? axes.integer("microbatches") : 0);
    }
  return updates;
}

bool reduces_amax(const Axes& axes, std::int64_t stage) {
  if (axes.text("precision") != "fp8_delayed" ||
      axes.integer("tp") * axes.integer("cp") * axes.integer("dp") == 1)
    return false;
  const std::vector<std::int64_t> updates = fp8_updates(axes, stage);
  return std::any_of(updates.begin(), updates.end(), [](auto count) { return count > 0; });
}

std::vector<std::vector<int>> ranks_by_stage(const Axes& axes, int world_size) {
  const int stages = static_cast<int>(axes.integer("pp"));
  const int ranks_per_stage = world_size / stages;
  std::vector<std::vector<int>> result(stages);
  for (int rank = 0; rank < ranks_per_stage * stages; ++rank)
    result[rank / ranks_per_stage].push_back(rank);
  return result;
}

bool reduces_over_stages(const Axes& axes) {
  return axes.integer("pp") > 1 && (axes.flag("clip_grad") || axes.text("precision") == "fp16");
}

std::vector<std::vector<int>> stage_groups(const Axes& axes, int world_size) {
  const int stages = static_cast<int>(axes.integer("pp")), stage_ranks = world_size / stages;
  std::vector<std::vector<int>> result(stage_ranks);
  for (int rank = 0; rank < stage_ranks * stages; ++rank)
    result[rank % stage_ranks].push_back(rank);
  return result;
}

std::vector<std::vector<int>> pairs(const Axes& axes, int world_size, std::int64_t from,
                                    std::int64_t to) {
  const int stage_ranks = world_size / static_cast<int>(axes.integer("pp"));
  std::vector<std::vector<int>> result;
  for (int place = 0; place < stage_ranks; ++place)
    result.push_back(
        {static_cast<int>(from) * stage_ranks + place, static_cast<int>(to) * stage_ranks + place});
  return result;
}

std::vector<std::string> symmetric_groups(const Axes& axes) {
  const bool context = axes.integer("cp") > 1;
  std::vector<std::string> kinds;
  for (const char* kind : {"tp", "cp", "dp", "ep", "etp"})
    if (axes.integer(kind) > 1 && !(context && std::string_view(kind) == "dp"))
      kinds.emplace_back(kind);
  if (context) kinds.emplace_back("dp_cp");
  return kinds;
}

std::vector<std::vector<int>> groups(const Axes& axes, int world_size, std::string_view kind) {
  const int tp = static_cast<int>(axes.integer("tp")), cp = static_cast<int>(axes.integer("cp"));
  const int size = kind == "dp_cp" ? static_cast<int>(axes.integer("dp")) * cp
                                   : static_cast<int>(axes.integer(kind));
  const int stride = kind == "dp"                      ? tp * cp
                     : kind == "cp" || kind == "dp_cp" ? tp
                     : kind == "ep"                    ? static_cast<int>(axes.integer("etp"))
                                                       : 1;
  std::vector<std::vector<int>> result;
  for (int rank = 0; rank < world_size; ++rank) {
    if (rank / stride % size != 0) continue;
    std::vector<int> group;
    for (int member = 0; member < size && rank + member * stride < world_size; ++member)
      group.push_back(rank + member * stride);
    result.push_back(group);
  }
  return result;
}

}  // namespace graphproof::checks
