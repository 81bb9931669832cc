#include "suites/case/step_config.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <set>
#include <sstream>

#include "reports/record/text/message.h"
#include "workloads/config/precision.h"
#include "workloads/pipeline/pipeline_schedule.h"

namespace graphproof::suites {
namespace {

constexpr double kDropoutProbability = 0.1;  // of the axis value dropout=true

[[noreturn]] void cannot_run(std::string what, std::string got, std::string want) {
  throw record::Error({.what = std::move(what),
                       .got = std::move(got),
                       .want = std::move(want),
                       .why = "this program does not implement it, and the plan should have "
                              "skipped the case (skipped.capability)",
                       .next = "./graphproof plan, and report the case that it let through"});
}

/// Reads the axes of a case and remembers which ones were read.
class AxisReader {
 public:
  /// REQUIRES: both outlive the reader.
  AxisReader(const matrix::AxisTable& axes, const matrix::Case& test_case)
      : axes_(axes), test_case_(test_case) {}

  std::int64_t integer(const char* axis) {
    return matrix::integer_of(axes_, test_case_, note(axis));
  }
  std::string text(const char* axis) { return matrix::text_of(axes_, test_case_, note(axis)); }
  bool boolean(const char* axis) { return matrix::boolean_of(axes_, test_case_, note(axis)); }
  std::vector<std::string> list(const char* axis) {
    return std::get<std::vector<std::string>>(matrix::value_of(axes_, test_case_, note(axis)));
  }
  /// For axes whose meaning is elsewhere.
  void skip(std::initializer_list<const char*> axes) { read_.insert(axes.begin(), axes.end()); }

  /// Throws record::Error if the case sets an axis that was not read, because it would then run as
  /// something else than its name states.
  void expect_all_read() const {
    for (const auto& [axis, value] : test_case_.values)
      if (!axis.starts_with("env.") && !read_.contains(axis))
        cannot_run("axis " + axis, matrix::value_text(value), "its default");
  }

 private:
  const char* note(const char* axis) {
    read_.insert(axis);
    return axis;
  }

  const matrix::AxisTable& axes_;
  const matrix::Case& test_case_;
  std::set<std::string> read_;
};

capture::CaptureMode capture_mode(const std::string& word) {
  if (word == "global") return capture::CaptureMode::global;
  if (word == "relaxed") return capture::CaptureMode::relaxed;
  return capture::CaptureMode::thread_local_;
}

std::vector<workloads::ModuleKind> module_kinds(const std::vector<std::string>& words) {
  std::vector<workloads::ModuleKind> kinds;
  for (const std::string& word : words) {
    const auto known =
        std::find(workloads::kModuleKinds.begin(), workloads::kModuleKinds.end(), word);
    if (known == workloads::kModuleKinds.end())
      cannot_run("modules", word, "attn, mlp, moe, moe_router, moe_preprocess or mamba");
    kinds.push_back(static_cast<workloads::ModuleKind>(known - workloads::kModuleKinds.begin()));
  }
  return kinds;
}

engines::CapturedModels captured_models(const std::string& word) {
  if (word == "encoder") return engines::CapturedModels::encoder;
  if (word == "decoder") return engines::CapturedModels::decoder;
  return engines::CapturedModels::both;
}

engines::PoolSharing pool_sharing(const std::string& word) {
  if (word == "per_microbatch") return engines::PoolSharing::per_microbatch;
  if (word == "per_graph") return engines::PoolSharing::per_graph;
  return engines::PoolSharing::single;
}

/// The workload of model collective; nothing for other models, for which its axes must have their
/// defaults.
std::optional<workloads::CollectiveConfig> collective_config(AxisReader& axes) {
  const workloads::CollectiveConfig config{.collective = axes.text("collective"),
                                           .bytes = axes.integer("collective_bytes"),
                                           .per_rank = axes.text("placement") == "per_rank",
                                           .group = "dp"};
  const std::string model = axes.text("model");
  if (model == "collective") return config;
  if (model != "gpt" && model != "moe" && model != "hybrid" && model != "vlm")
    cannot_run("model", model, "gpt, moe, hybrid, vlm or collective");
  return std::nullopt;
}

/// Where the communication buffers of a training step lie on a rank.
workloads::BufferPlacement buffer_placement(const std::string& word, int rank) {
  if (word != "per_rank") return workloads::BufferPlacement::by_allocator;
  return rank % 2 == 0 ? workloads::BufferPlacement::at_border
                       : workloads::BufferPlacement::across_border;
}

/// A value of an axis and its meaning for the workload.
template <class Meaning>
struct Word {
  const char* word;
  Meaning meaning;
};
constexpr Word<workloads::Precision> named(workloads::Precision precision) {
  return {workloads::name_of(precision), precision};
}
constexpr std::array kPrecisions{
    named(workloads::Precision::fp32),        named(workloads::Precision::bf16),
    named(workloads::Precision::fp16),        named(workloads::Precision::fp8_delayed),
    named(workloads::Precision::fp8_current), named(workloads::Precision::mxfp8),
    named(workloads::Precision::nvfp4)};
constexpr std::array kLossScales{
    Word<workloads::LossScaling>{"dynamic", workloads::LossScaling::dynamic},
    Word<workloads::LossScaling>{"static", workloads::LossScaling::static_}};
constexpr std::array kOptimizers{
    Word<workloads::OptimizerKind>{"sgd", workloads::OptimizerKind::sgd},
    Word<workloads::OptimizerKind>{"adam", workloads::OptimizerKind::adam}};
constexpr std::array kNormalizations{
    Word<workloads::Normalization>{"RMSNorm", workloads::Normalization::RMSNorm},
    Word<workloads::Normalization>{"LayerNorm", workloads::Normalization::LayerNorm}};
constexpr std::array kActivations{
    Word<workloads::Activation>{"gelu", workloads::Activation::gelu},
    Word<workloads::Activation>{"swiglu", workloads::Activation::swiglu}};
constexpr std::array kPositionEmbeddings{
    Word<workloads::PositionEmbedding>{"rope", workloads::PositionEmbedding::rope},
    Word<workloads::PositionEmbedding>{"learned_absolute",
                                       workloads::PositionEmbedding::learned_absolute}};
constexpr std::array kEmbeddingGradients{
    Word<workloads::EmbeddingGradient>{"index_put", workloads::EmbeddingGradient::index_put},
    Word<workloads::EmbeddingGradient>{"index_add", workloads::EmbeddingGradient::index_add}};
constexpr std::array kAttentionKernels{
    Word<workloads::AttentionKernel>{"math", workloads::AttentionKernel::math},
    Word<workloads::AttentionKernel>{"efficient", workloads::AttentionKernel::efficient},
    Word<workloads::AttentionKernel>{"flash", workloads::AttentionKernel::flash}};
constexpr std::array kCpCommTypes{
    Word<workloads::CpCommType>{"p2p", workloads::CpCommType::p2p},
    Word<workloads::CpCommType>{"all_gather", workloads::CpCommType::all_gather}};
constexpr std::array kImageCounts{
    Word<workloads::ImageCounts>{"fixed", workloads::ImageCounts::fixed},
    Word<workloads::ImageCounts>{"variable", workloads::ImageCounts::variable},
    Word<workloads::ImageCounts>{"late", workloads::ImageCounts::late}};
constexpr std::array kSchedules{
    Word<Schedule>{"train", Schedule::train},
    Word<Schedule>{"train-eval-train", Schedule::train_eval_train},
    Word<Schedule>{"resume", Schedule::resume}, Word<Schedule>{"decode", Schedule::decode},
    Word<Schedule>{"train-rollout-train", Schedule::train_rollout_train}};
constexpr std::array kInferenceScopes{
    Word<engines::InferenceScope>{"none", engines::InferenceScope::none},
    Word<engines::InferenceScope>{"layer", engines::InferenceScope::layer},
    Word<engines::InferenceScope>{"block", engines::InferenceScope::block}};
// "none" is the value for a model without experts. Rules refuse combinations that make no sense.
constexpr std::array kDropless{Word<bool>{"none", false}, Word<bool>{"drop_and_pad", false},
                               Word<bool>{"dropless", true}, Word<bool>{"paged_stash", true}};
constexpr std::array kGathers{Word<bool>{"none", false}, Word<bool>{"alltoall", false},
                              Word<bool>{"flex", false}, Word<bool>{"allgather", true}};

template <class Words>
auto meaning_of(const Words& words, const char* axis, const std::string& text) {
  std::string known;
  for (const auto& row : words) {
    if (text == row.word) return row.meaning;
    known += (known.empty() ? "" : " or ") + std::string(row.word);
  }
  cannot_run(axis, text, known);
}

/// The meaning of the axis recompute: none, selective(module,...) or full(method,layers).
workloads::RecomputeConfig recompute_config(const std::string& value) {
  using workloads::RecomputeConfig;
  using workloads::RecomputedPart;
  RecomputeConfig config;
  if (value == "none") return config;
  const std::size_t open = value.find('(');
  const std::string method = value.substr(0, open);
  std::istringstream list(value.substr(open + 1, value.size() - open - 2));
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(list, argument, ',');) arguments.push_back(argument);
  if (method == "full")
    return workloads::full(arguments[0] == "uniform" ? RecomputeConfig::Method::uniform
                                                     : RecomputeConfig::Method::block,
                           std::stoll(arguments[1]));
  for (const std::string& module : arguments) {
    if (module == "layernorm") {
      config.parts.insert(config.parts.end(),
                          {RecomputedPart::attention_norm, RecomputedPart::mlp_norm});
      continue;
    }
    const auto part =
        std::find(workloads::kRecomputedParts.begin(), workloads::kRecomputedParts.end(), module);
    if (part == workloads::kRecomputedParts.end())
      cannot_run("recompute", value, "modules of the axis recompute");
    config.parts.push_back(static_cast<RecomputedPart>(part - workloads::kRecomputedParts.begin()));
  }
  return config;
}

/// The inference job of schedule decode, or a rollout; nothing for other schedules, for which its
/// axes must have their defaults.
std::optional<engines::DecoderConfig> decoding_config(AxisReader& axes, const StepConfig& config) {
  const bool decodes = config.schedule == Schedule::decode;
  const engines::DecoderConfig decoding{
      .requests = {.slots = config.model.microbatch_size,
                   .length = config.model.seq_length,
                   .steps =
                       decodes ? config.steps : requests::rollout_steps(config.model.seq_length),
                   .chunk = axes.integer("prefill_chunk"),
                   .blocks = axes.integer("cache_blocks"),
                   .ranks = config.layout.dp,
                   .sizes = requests::batch_sizes(axes.list("batch_sizes"),
                                                  config.model.microbatch_size)},
      .scope = meaning_of(kInferenceScopes, "inference_scope", axes.text("inference_scope")),
      .sampled = axes.text("sampling") == "random",
      .padding = 0};
  return decodes || config.schedule == Schedule::train_rollout_train ? std::optional(decoding)
                                                                     : std::nullopt;
}

bool reduces_over_stages(const workloads::ModelConfig& model) {
  return model.clip_grad || model.precision == workloads::Precision::fp16;
}

}  // namespace

std::string capture_mode_word(capture::CaptureMode mode) {
  switch (mode) {
    case capture::CaptureMode::global:
      return "global";
    case capture::CaptureMode::thread_local_:
      return "thread_local";
    case capture::CaptureMode::relaxed:
      return "relaxed";
  }
  return "";
}

StepConfig step_config(const matrix::AxisTable& axes, const matrix::Case& test_case,
                       const fixtures::Rank& place, std::uint64_t seed) {
  AxisReader reader(axes, test_case);
  const auto integer = [&](const char* axis) { return reader.integer(axis); };
  const auto text = [&](const char* axis) { return reader.text(axis); };
  const auto boolean = [&](const char* axis) { return reader.boolean(axis); };
  // The launcher sets the environment variables of some of these axes in the ranks (the evidence
  // line `config` shows whether they took effect); the plan compares `arch` with the machine; and
  // suites/rank reads `comm` and `teardown`.
  reader.skip({"allocator", "nccl_algo", "nccl_graph_register", "nccl_proto", "arch", "comm",
               "teardown", "memory_limit", "sanitizer"});

  const std::string impl = text("impl");
  const int tp = static_cast<int>(integer("tp")), dp = static_cast<int>(integer("dp")),
            pp = static_cast<int>(integer("pp"));
  const int cp = static_cast<int>(integer("cp"));
  if (tp * cp * dp * pp != place.world_size)
    throw record::Error({.what = "world size of case " + matrix::case_name(axes, test_case),
                         .got = std::to_string(place.world_size) + " ranks",
                         .want = "tp * cp * dp * pp = " + std::to_string(tp * cp * dp * pp),
                         .why = "each rank holds one part of the layout",
                         .next = "start as many ranks as the batch file lists"});

  StepConfig config;
  config.collective = collective_config(reader);
  config.seed = seed;
  config.steps = integer("steps");
  config.autograd_threads = text("autograd_threads") == "on";
  config.schedule = meaning_of(kSchedules, "schedule", text("schedule"));
  config.resumes_in_new_process =
      config.schedule == Schedule::resume && text("resume_in") == "new_process";
  config.shape_buckets = integer("shape_buckets");
  config.soak_steps = integer("soak_steps");
  config.blocking_stream = text("capture_stream") == "blocking";
  config.exec_update = text("recapture") == "exec_update";
  config.rng_backend = text("rng_tracker") == "plain" ? fixtures::RngBackend::plain
                                                      : fixtures::RngBackend::graph_safe;
  config.model = {
      .layers = integer("layers"),
      .hidden = integer("hidden"),
      .heads = integer("heads"),
      .kv_groups = integer("kv_groups") == 0 ? integer("heads") : integer("kv_groups"),
      .ffn = integer("ffn") == 0 ? 4 * integer("hidden") : integer("ffn"),
      .vocab = integer("vocab"),
      .seq_length = integer("seq_length"),
      .microbatch_size = integer("microbatch_size"),
      .microbatches = integer("microbatches"),
      .normalization = meaning_of(kNormalizations, "normalization", text("normalization")),
      .activation = meaning_of(kActivations, "activation", text("activation")),
      .position_embedding =
          meaning_of(kPositionEmbeddings, "position_embedding", text("position_embedding")),
      .tied_embeddings = boolean("tied_embeddings"),
      .packed = boolean("packed"),
      .qkv_bias = boolean("qkv_bias"),
      .linear_bias = boolean("linear_bias"),
      .multi_latent_attention = boolean("multi_latent_attention"),
      .mtp_num_layers = integer("mtp_num_layers"),
      .dropout = boolean("dropout") ? kDropoutProbability : 0.0,
      .hybrid = text("model") == "hybrid",
      .experts = integer("experts"),
      .topk = integer("topk"),
      .dropless = meaning_of(kDropless, "dispatch", text("dispatch")),
      .gather_tokens = meaning_of(kGathers, "dispatcher", text("dispatcher")),
      .flex = text("dispatcher") == "flex",
      .paged_stash = text("dispatch") == "paged_stash",
      .router_aux_loss = boolean("router_aux_loss"),
      .router_z_loss = boolean("router_z_loss"),
      .router_score_correction = boolean("router_score_correction"),
      .shared_expert = boolean("shared_expert"),
      .shared_expert_overlap = boolean("shared_expert_overlap"),
      .embedding_gradient =
          meaning_of(kEmbeddingGradients, "embedding_gradient", text("embedding_gradient")),
      .attention_kernel =
          meaning_of(kAttentionKernels, "attention_kernel", text("attention_kernel")),
      .encoder_layers = text("model") == "vlm" ? integer("encoder_layers") : 0,
      .images = integer("images"),
      .image_counts = meaning_of(kImageCounts, "image_counts", text("image_counts")),
      .vision_seq_length = integer("vision_seq_length"),
      .vision_length = text("vision_length") == "encoder" ? workloads::VisionLength::encoder
                                                          : workloads::VisionLength::images,
      .vision_positions = integer("vision_positions"),
      .vision_merge_size = integer("vision_merge_size"),
      .freeze_vision_model = boolean("freeze_vision_model"),
      .recompute = recompute_config(text("recompute")),
      .precision = meaning_of(kPrecisions, "precision", text("precision")),
      .autocast = text("autocast") == "bf16",
      .autocast_cache = boolean("autocast_cache"),
      .cpu_offload = boolean("cpu_offload"),
      .loss_scaling = meaning_of(kLossScales, "loss_scale", text("loss_scale")),
      .optimizer = meaning_of(kOptimizers, "optimizer", text("optimizer")),
      .clip_grad = boolean("clip_grad"),
      .weight_decay = boolean("weight_decay"),
      .nan_check_loss = boolean("nan_check_loss"),
      .nan_check_grad = boolean("nan_check_grad"),
      .overlap_grad_reduce = boolean("overlap_grad_reduce"),
      .distributed_optimizer = boolean("distributed_optimizer"),
      .overlap_param_gather = boolean("overlap_param_gather"),
      .grad_accumulation_fusion = boolean("grad_accumulation_fusion"),
      .overlap_ep_comm = boolean("overlap_ep_comm"),
      .delay_wgrad = boolean("delay_wgrad"),
      .fp8_weights = boolean("fp8_weights"),
      .first_last_layers_bf16 = boolean("first_last_layers_bf16")};
  const int ep = static_cast<int>(integer("ep")), etp = static_cast<int>(integer("etp"));
  const bool splits_experts = config.model.experts > 0 && ep * etp * tp > 1;
  config.layout = {
      .tp = tp,
      .dp = dp,
      .tp_rank = place.rank % tp,
      .dp_rank = place.rank / (tp * cp) % dp,
      .tp_group = "tp",
      .dp_group = "dp",
      .ep = ep,
      .ep_rank = place.rank / etp % ep,
      .ep_group = "ep",
      .edp_group = splits_experts ? "edp"
                   : cp > 1       ? "dp_cp"
                                  : "dp",
      .etp = etp,
      .etp_rank = place.rank % etp,
      .etp_group = "etp",
      .sequence_parallel = boolean("sequence_parallel"),
      .cp = cp,
      .cp_rank = place.rank / tp % cp,
      .cp_group = "cp",
      .dp_cp_group = "dp_cp",
      .cp_comm_type = meaning_of(kCpCommTypes, "cp_comm_type", text("cp_comm_type")),
      .pp = pp,
      .pp_rank = place.rank / (tp * cp * dp),
      .vpp = static_cast<int>(integer("vpp")),
      .microbatch_group = integer("microbatch_group"),
      .embedding_group = pp > 1 && config.model.embeds_on_last_stage() ? "embd" : "",
      .amax_group = config.model.precision == workloads::Precision::fp8_delayed && tp * cp * dp > 1
                        ? "amax"
                        : "",
      .pp_group = pp > 1 && reduces_over_stages(config.model) ? "pp" : "",
      .placement = buffer_placement(text("placement"), place.rank)};
  config.engine = {.impl = impl,
                   .modules = module_kinds(reader.list("modules")),
                   .captured_models = captured_models(text("captured_models")),
                   .pool = pool_sharing(text("pool")),
                   .warmup_steps = integer("warmup_steps"),
                   .capture_mode = capture_mode(text("capture_mode")),
                   .optimizer_graph = boolean("optimizer_graph")};
  config.fault = fixtures::fault_of(text("fault"));
  reader.skip({"encoder_layers"});  // without effect on other models (rule G003)
  config.times_blocks = text("perf_limit") != "none";
  const std::string tolerance = text("tolerance");
  config.tolerances =
      matrix::parse_tolerances(tolerance, matrix::Origin::option("tolerance", tolerance));
  config.deterministic_algorithms = text("deterministic_algorithms") == "on";
  // The same in all arms, because it determines the order in which gradients are added.
  config.model.recompute.after_router =
      std::ranges::any_of(config.engine.modules, [](workloads::ModuleKind kind) {
        return kind == workloads::ModuleKind::moe_router ||
               kind == workloads::ModuleKind::moe_preprocess;
      });
  config.decoding = decoding_config(reader, config);
  reader.expect_all_read();
  return config;
}

std::vector<comm::GroupLayout> process_groups(const workloads::Layout& layout) {
  auto groups = comm::tensor_data_groups(layout.tp, layout.dp, layout.pp, layout.cp);
  if (layout.cp > 1)
    for (comm::GroupLayout& group :
         comm::context_groups(layout.tp, layout.cp, layout.dp, layout.pp))
      groups.push_back(std::move(group));
  const int stage_ranks = layout.tp * layout.replicas();
  for (const order::Edge& edge : order::edges(layout.pp, layout.vpp))
    groups.push_back(comm::edge_group(stage_ranks, edge.from, edge.to));
  if (!layout.embedding_group.empty())
    groups.push_back(comm::stage_pairs(layout.embedding_group, stage_ranks, 0, layout.pp - 1));
  if (!layout.amax_group.empty()) groups.push_back(comm::amax_group(stage_ranks, layout.pp));
  if (!layout.pp_group.empty()) groups.push_back(comm::stage_group(stage_ranks, layout.pp));
  if (layout.edp_group == "edp")
    for (comm::GroupLayout& group :
         comm::expert_groups(stage_ranks * layout.pp, layout.ep, layout.pp, layout.etp))
      groups.push_back(std::move(group));
  return groups;
}

StepConfig single_rank(const StepConfig& parallel) {
  StepConfig single = parallel;
  single.model.microbatches *= parallel.layout.dp;
  single.model.dropout = 0;
  single.model.loss_scaling = workloads::LossScaling::static_;
  single.model.nan_check_loss = single.model.nan_check_grad = false;
  single.model.overlap_ep_comm = single.model.delay_wgrad = false;
  // One rank scales whole tensors, or blocks of tokens, where several scale parts, and a number
  // that is rounded to another neighbour changes what is computed from it by an eighth. The layout
  // itself is compared exactly.
  if (workloads::is_quantized(single.model.precision))
    single.model.precision = workloads::Precision::fp32;
  single.model.fp8_parts = parallel.layout.tp;
  single.model.fp8_expert_parts = parallel.layout.etp;
  const int parts = parallel.layout.sequence_parts();
  if (single.model.experts > 0) {
    single.model.capacity_cp = parallel.layout.cp;
    single.model.capacity_parts = parts;
    // Sums in another order, and a second step after an update by them, differ by roundings. 16-bit
    // roundings send tokens to other experts (seen on GPUs with bf16 and fp16 under the distributed
    // optimizer, and on the simulated device with fp16 and etp 2).
    if (parts * parallel.layout.cp * parallel.layout.etp > 1 ||
        parallel.model.distributed_optimizer) {
      single.model.precision = workloads::Precision::fp32;
      single.model.autocast = false;
    }
  }
  // In the second step roundings in 16 bits move the bias of a mamba layer's time step, whose
  // gradient nearly cancels, as far as a defect may (seen on the simulated device with four
  // layers). With weights in fp8 they do so in the first step, for all parameters of a mamba layer.
  if (single.model.hybrid && (parallel.model.distributed_optimizer || parallel.model.fp8_weights)) {
    single.model.precision = workloads::Precision::fp32;
    single.model.autocast = false;
  }
  single.layout = {};
  single.engine.impl = "none";
  single.fault = fixtures::Fault::none;
  return single;
}

int world_rank(const workloads::Layout& layout) {
  return ((layout.pp_rank * layout.dp + layout.dp_rank) * layout.cp + layout.cp_rank) * layout.tp +
         layout.tp_rank;
}

}  // namespace graphproof::suites
