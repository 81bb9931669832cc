#include "matrix/plan/nearest_case.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace graphproof::matrix {
namespace {

constexpr std::int64_t kShrunkSize = 2;  // the smallest size with which a dimension communicates
// More microbatches than a shrunk pipeline has stages, so that it reaches its steady state.
constexpr std::int64_t kMostMicrobatches = 4;
constexpr std::int64_t kMostWarmupSteps = 3;  // upstream's default
constexpr std::int64_t kShrunkExperts = 4, kMostTopk = 2;
constexpr std::int64_t kMostPredictions = 2;  // the second follows another prediction layer

// Options that mean the same as a boolean axis.
struct Switch {
  const char* option;
  const char* axis;
};
constexpr Switch kSwitches[] = {
    {"sequence_parallel", "sequence_parallel"},
    {"optimizer_cuda_graph", "optimizer_graph"},
    {"use_distributed_optimizer", "distributed_optimizer"},
    {"gradient_accumulation_fusion", "grad_accumulation_fusion"},
    {"delay_wgrad_compute", "delay_wgrad"},
    {"overlap_moe_expert_parallel_comm", "overlap_ep_comm"},
    {"overlap_grad_reduce", "overlap_grad_reduce"},
    {"overlap_param_gather", "overlap_param_gather"},
    {"check_for_nan_in_loss_and_grad", "nan_check_loss"},
    {"check_for_nan_in_loss_and_grad", "nan_check_grad"},
    {"check_for_nan_in_loss", "nan_check_loss"},
    {"check_for_nan_in_grad", "nan_check_grad"},
    {"cpu_offloading", "cpu_offload"},
    {"add_qkv_bias", "qkv_bias"},
    {"add_bias_linear", "linear_bias"},
    {"multi_latent_attention", "multi_latent_attention"},
    {"enable_offline_packing", "packed"},
    {"rl_use_sequence_packing", "packed"},
};

// Options that mean the same as a size axis.
struct Size {
  const char* option;
  const char* axis;
};
constexpr Size kSizes[] = {
    {"tensor_model_parallel_size", "tp"},
    {"pipeline_model_parallel_size", "pp"},
    {"virtual_pipeline_model_parallel_size", "vpp"},
    {"context_parallel_size", "cp"},
    {"expert_model_parallel_size", "ep"},
    {"expert_tensor_parallel_size", "etp"},
};

// Switches that change what a graph holds and that no axis represents. They are dropped, and
// reported.
constexpr const char* kNotRepresented[] = {"use_megatron_fsdp",
                                           "use_torch_fsdp2",
                                           "nccl_ub",
                                           "tp_comm_overlap",
                                           "overlap_param_gather_with_optimizer_step",
                                           "fine_grained_activation_offloading",
                                           "moe_router_padding_for_fp8",
                                           "moe_router_padding_for_quantization",
                                           "hybrid_context_parallel"};

struct PrecisionRow {
  const char* recipe;
  const char* precision;
};
constexpr PrecisionRow kFp8[] = {{"delayed", "fp8_delayed"},
                                 {"tensorwise", "fp8_current"},
                                 {"mxfp8", "mxfp8"},
                                 {"blockwise", "fp8_current"}};

class Mapping {
 public:
  Mapping(const TrainingValues& values, const Catalogue& catalogue, const Machine& machine)
      : values_(values), catalogue_(catalogue), axes_(catalogue.axes), machine_(machine) {}

  NearestCase run() {
    for (const char* option :
         {"world_size", "data_parallel_size", "global_batch_size", "model_target"})
      result_.read.insert(option);
    graphs();
    layout();
    batches();
    model();
    precision();
    recompute();
    for (const Switch& one : kSwitches)
      if (const auto on = boolean(one.option); on && *on) keep(one.option, one.axis, true);
    for (const char* option : kNotRepresented)
      if (const auto on = boolean(option); on && *on) drop(option, "no axis represents it");
    tracker();
    dropout();
    optimizer();
    environment();
    result_.asked = case_;
    result_.lacking = catalogue_.capabilities.missing(case_, machine_);
    RunnableCase runnable = runnable_case(case_, catalogue_, machine_);
    result_.runnable = std::move(runnable.test_case);
    result_.missing = std::move(runnable.missing);
    for (Replacement& one : runnable.replaced)
      account(Mapped::Kind::replaced, std::move(one.from), std::move(one.to), std::move(one.why));
    return std::move(result_);
  }

 private:
  const Value* given(const std::string& option) {
    result_.read.insert(option);
    const auto found = values_.find(option);
    return found == values_.end() || std::holds_alternative<Unknown>(found->second) ||
                   std::holds_alternative<Absent>(found->second)
               ? nullptr
               : &found->second;
  }
  std::optional<bool> boolean(const std::string& option) {
    const auto* value = given(option);
    const auto* on = value == nullptr ? nullptr : std::get_if<bool>(value);
    return on == nullptr ? std::nullopt : std::optional(*on);
  }
  std::optional<double> number(const std::string& option) {
    const auto* value = given(option);
    if (value == nullptr) return std::nullopt;
    if (const auto* integer = std::get_if<std::int64_t>(value))
      return static_cast<double>(*integer);
    if (const auto* real = std::get_if<double>(value)) return *real;
    return std::nullopt;
  }
  std::string text(const std::string& option) {
    const auto* value = given(option);
    const auto* word = value == nullptr ? nullptr : std::get_if<std::string>(value);
    return word == nullptr ? std::string() : *word;
  }
  std::vector<std::string> list(const std::string& option) {
    const auto* value = given(option);
    const auto* words = value == nullptr ? nullptr : std::get_if<std::vector<std::string>>(value);
    return words == nullptr ? std::vector<std::string>() : *words;
  }
  std::string spelled(const std::string& option) const {
    const auto found = values_.find(option);
    return option + "=" +
           (found == values_.end()                           ? ""
            : std::holds_alternative<Unknown>(found->second) ? "?"
                                                             : value_text(found->second));
  }

  void set(const std::string& axis, Value value) {
    set_value(axes_, case_, axis, std::move(value));
  }
  std::string set_text(const std::string& axis) const {
    return axis + "=" + value_text(value_of(axes_, case_, axis));
  }
  void account(Mapped::Kind kind, std::string from, std::string to, std::string why) {
    result_.account.push_back({kind, std::move(from), std::move(to), std::move(why)});
  }
  void keep(const std::string& option, const std::string& axis, Value value) {
    set(axis, std::move(value));
    account(Mapped::Kind::kept, spelled(option), set_text(axis), "");
  }
  void shrink(const std::string& option, const std::string& axis, Value value,
              const std::string& why) {
    set(axis, std::move(value));
    account(Mapped::Kind::shrunk, spelled(option), set_text(axis), why);
  }
  void drop(const std::string& option, const std::string& why) {
    account(Mapped::Kind::dropped, spelled(option), "", why);
  }
  bool can_be(const std::string& axis, const std::string& word) const {
    const Axis& entry = axes_.at(axis, {});
    return std::find(entry.values.begin(), entry.values.end(), word) != entry.values.end();
  }

  void graphs() {
    const std::string implementation = text("cuda_graph_impl");
    if (can_be("impl", implementation)) keep("cuda_graph_impl", "impl", implementation);
    const std::vector<std::string> named = list("cuda_graph_modules");
    std::vector<std::string> modules;  // in the order of the axis
    for (const std::string& word : axes_.at("modules", {}).values)
      if (std::find(named.begin(), named.end(), word) != named.end()) modules.push_back(word);
    if (!modules.empty() && implementation != "none")
      keep("cuda_graph_modules", "modules", modules);
    else if (!named.empty())
      drop("cuda_graph_modules", implementation == "none"
                                     ? "without an implementation nothing is captured"
                                     : "older module names; `check --migrate` has today's");
    if (const std::string scope = text("inference_cuda_graph_scope"); scope == "block")
      drop("inference_cuda_graph_scope", "a training step has no inference graphs");
    if (const auto steps = number("cuda_graph_warmup_steps"); steps && implementation != "none") {
      const auto asked = static_cast<std::int64_t>(*steps);
      if (asked < 0)
        drop("cuda_graph_warmup_steps", "without a capture there is nothing to test");
      else if (asked > kMostWarmupSteps)
        shrink("cuda_graph_warmup_steps", "warmup_steps", kMostWarmupSteps,
               "everything that is initialised lazily exists by then");
      else
        keep("cuda_graph_warmup_steps", "warmup_steps", asked);
    }
    if (const std::string vision = text("vision_cuda_graph_impl"); vision == "transformer_engine") {
      vision_ = true;
      if (implementation.empty() || implementation == "none") {
        set("impl", std::string("transformer_engine"));
        set("captured_models", std::string("encoder"));
      }
    }
  }

  void layout() {
    for (const Size& one : kSizes) {
      const auto size = number(one.option);
      if (!size || *size <= 1) continue;
      const std::string_view axis = one.axis;
      // Upstream gives etp the size of tp even if the model has no experts.
      if ((axis == "ep" || axis == "etp") && !has_experts()) {
        drop(one.option, "the model has no experts");
        continue;
      }
      const auto asked = static_cast<std::int64_t>(*size);
      if (asked == kShrunkSize)
        keep(one.option, one.axis, asked);
      else
        shrink(one.option, one.axis, kShrunkSize, "two show what more ranks would");
    }
    const std::int64_t model_ranks = integer("tp") * integer("pp") * integer("cp");
    double replicas = number("data_parallel_size").value_or(0);
    if (replicas == 0) {
      const auto of = [&](const char* option) { return std::max(1.0, number(option).value_or(1)); };
      if (const auto ranks = number("world_size"))
        replicas = *ranks / (of("tensor_model_parallel_size") * of("pipeline_model_parallel_size") *
                             of("context_parallel_size"));
    }
    const std::int64_t experts = integer("ep") * integer("etp");
    // Expert groups are made of the ranks of tp, cp and dp.
    const bool needed = integer("tp") * integer("cp") % experts != 0;
    const std::string ranks = "dp=" + std::to_string(static_cast<std::int64_t>(replicas));
    if (needed) {
      set("dp",
          experts / std::max<std::int64_t>(1, std::gcd(experts, integer("tp") * integer("cp"))));
      const bool same = static_cast<double>(integer("dp")) == replicas;
      account(same ? Mapped::Kind::kept : Mapped::Kind::shrunk,
              replicas > 0 ? ranks : "dp not given", set_text("dp"),
              same ? "" : "the expert groups need these ranks");
    } else if (replicas > 1) {
      if (model_ranks * kShrunkSize <= machine_.slots) {
        set("dp", kShrunkSize);
        account(replicas == kShrunkSize ? Mapped::Kind::kept : Mapped::Kind::shrunk, ranks,
                set_text("dp"), replicas == kShrunkSize ? "" : "two show what more ranks would");
      } else {
        account(Mapped::Kind::shrunk, ranks, "dp=1",
                "this machine has " + std::to_string(machine_.slots) + " slots");
      }
    }
    exchange_of_keys();
    // A chunk of a hybrid model has a layer of both kinds.
    const std::int64_t least = integer("vpp") * integer("pp") * (hybrid() ? 2 : 1);
    if (least > 2) set("layers", least);
    if (const auto layers = number("num_layers"); layers && *layers > 0)
      account(static_cast<std::int64_t>(*layers) == integer("layers") ? Mapped::Kind::kept
                                                                      : Mapped::Kind::shrunk,
              spelled("num_layers"), set_text("layers"),
              static_cast<std::int64_t>(*layers) == integer("layers") ? ""
              : hybrid() ? "a mamba layer and another layer in each chunk"
                         : "one layer in each chunk, at least two");
    if (const auto group = number("microbatch_group_size_per_vp_stage");
        group && integer("vpp") > 1 &&
        *group > static_cast<double>(number("pipeline_model_parallel_size").value_or(1)))
      drop("microbatch_group_size_per_vp_stage",
           "the shrunk pipeline groups microbatches by its own size");
  }

  /// cp_comm_type is one type for all layers, or a list with a type for each layer.
  void exchange_of_keys() {
    std::vector<std::string> types = list("cp_comm_type");
    if (const std::string one = text("cp_comm_type"); !one.empty()) types = {one};
    if (types.empty() || types == std::vector<std::string>{"p2p"}) return;
    if (integer("cp") == 1)
      return drop("cp_comm_type", "a single context parallel rank exchanges nothing");
    const bool alike = std::all_of(types.begin(), types.end(),
                                   [&](const std::string& type) { return type == types.front(); });
    if (alike && types.front() == "p2p") return;
    if (alike && types.front() == "allgather")
      return keep("cp_comm_type", "cp_comm_type", std::string("all_gather"));
    account(Mapped::Kind::replaced, spelled("cp_comm_type"), set_text("cp_comm_type"),
            alike ? "an exchange of heads is not built yet" : "all layers have the same exchange");
  }

  bool captures_mamba() {
    const std::vector<std::string> modules = list("cuda_graph_modules");
    return std::find(modules.begin(), modules.end(), "mamba") != modules.end();
  }
  bool hybrid() {
    return captures_mamba() || boolean("is_hybrid_model").value_or(false) ||
           !text("hybrid_layer_pattern").empty() || !text("hybrid_override_pattern").empty();
  }

  void batches() {
    std::optional<double> count = number("micro_batch_count");
    std::string from = spelled("micro_batch_count");
    const auto global = number("global_batch_size"), micro = number("micro_batch_size");
    const auto replicas = number("data_parallel_size");
    if (!count && global && micro && *micro > 0) {
      const auto of = [&](const char* option) { return std::max(1.0, number(option).value_or(1)); };
      const double ranks =
          replicas ? *replicas
                   : number("world_size").value_or(0) /
                         (of("tensor_model_parallel_size") * of("pipeline_model_parallel_size") *
                          of("context_parallel_size"));
      if (ranks >= 1) {
        count = *global / (*micro * ranks);
        from = spelled("global_batch_size") + ", " + spelled("micro_batch_size");
      }
    }
    if (count) {
      auto microbatches =
          std::min(kMostMicrobatches,
                   std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(*count))));
      // Virtual stages need a multiple of the pipeline's size.
      if (microbatches == 3) microbatches = kMostMicrobatches;
      set("microbatches", microbatches);
      const bool same = *count == static_cast<double>(microbatches);
      account(same ? Mapped::Kind::kept : Mapped::Kind::shrunk, from, set_text("microbatches"),
              same ? "" : "a few microbatches suffice to accumulate gradients");
    } else if (integer("pp") > 1) {
      set("microbatches", kMostMicrobatches);
      account(Mapped::Kind::shrunk, "microbatches not given", set_text("microbatches"),
              "a pipeline needs several microbatches");
    }
    if (micro) {
      const auto asked = static_cast<std::int64_t>(*micro);
      if (asked == 1 || asked == 2)
        keep("micro_batch_size", "microbatch_size", asked);
      else if (asked > 2)
        shrink("micro_batch_size", "microbatch_size", std::int64_t{2},
               "the rows of a batch do not interact");
    }
    if (number("seq_length"))
      account(Mapped::Kind::shrunk, spelled("seq_length"), set_text("seq_length"),
              "the shapes of a graph are fixed, whatever the sequence length");
  }

  /// Whether the model has experts, but their number is unknown.
  bool some_experts() const {
    const auto found = values_.find("num_moe_experts");
    return found != values_.end() && std::holds_alternative<Unknown>(found->second);
  }
  bool has_experts() {
    const auto count = number("num_moe_experts");
    return count ? *count > 1 : some_experts() && !text("moe_token_dispatcher_type").empty();
  }

  void model() {
    const bool some = some_experts(), experts = has_experts();
    const std::string dispatcher = text("moe_token_dispatcher_type");
    if (vision_)
      keep("vision_cuda_graph_impl", "model", std::string("vlm"));
    else if (hybrid())
      keep(captures_mamba() ? "cuda_graph_modules" : "is_hybrid_model", "model",
           std::string("hybrid"));
    else if (experts)
      set("model", std::string("moe"));
    if (experts) {
      set("experts", kShrunkExperts);
      account(Mapped::Kind::shrunk, some ? "experts" : spelled("num_moe_experts"),
              set_text("experts"), "two experts for each of two ranks");
      const auto topk = number("moe_router_topk");
      set("topk",
          topk && *topk >= 1 ? std::min(kMostTopk, static_cast<std::int64_t>(*topk)) : kMostTopk);
      if (topk)
        account(*topk <= kMostTopk ? Mapped::Kind::kept : Mapped::Kind::shrunk,
                spelled("moe_router_topk"), set_text("topk"),
                *topk <= kMostTopk ? "" : "the shrunk model has four experts");
      keep("moe_token_dispatcher_type", "dispatcher",
           can_be("dispatcher", dispatcher) ? dispatcher : std::string("alltoall"));
      if (dispatcher == "flex" && !text("moe_flex_dispatcher_backend").empty())
        drop("moe_flex_dispatcher_backend",
             "the backend is a library of its own; no axis represents it");
      dispatch();
      shared_expert();
    } else if (boolean("moe_shared_expert_overlap").value_or(false)) {
      drop("moe_shared_expert_overlap", "the model has no experts");
    }
    for (const char* option :
         {"hidden_size", "ffn_hidden_size", "num_attention_heads", "padded_vocab_size",
          "vocab_size", "kv_channels", "moe_ffn_hidden_size"})
      if (number(option))
        account(Mapped::Kind::shrunk, spelled(option), "the default model",
                "the sizes of matrices do not change which kernels are captured");
    predictions();
    const auto groups = number("num_query_groups"), heads = number("num_attention_heads");
    const bool grouped =
        boolean("group_query_attention").value_or(groups && heads && *groups < *heads);
    if (grouped && groups) {
      if (hybrid() && integer("tp") * integer("cp") > 2)
        drop("num_query_groups",
             "mamba layers need a query group for each tensor and context parallel rank");
      else if (*groups == 2)
        keep("num_query_groups", "kv_groups", std::int64_t{2});
      else
        shrink("num_query_groups", "kv_groups", std::int64_t{2},
               "at least as many query groups as tp");
    }
  }

  void predictions() {
    const auto layers = number("mtp_num_layers");
    if (!layers || *layers < 1) return;
    const auto asked = static_cast<std::int64_t>(*layers);
    if (asked <= kMostPredictions)
      keep("mtp_num_layers", "mtp_num_layers", asked);
    else
      shrink("mtp_num_layers", "mtp_num_layers", kMostPredictions,
             "one prediction layer after another shows what more would");
    if (number("mtp_loss_scaling_factor"))
      account(Mapped::Kind::shrunk, spelled("mtp_loss_scaling_factor"), "0.1",
              "a factor changes no path through the code");
  }

  void shared_expert() {
    const bool overlap = boolean("moe_shared_expert_overlap").value_or(false);
    if (number("moe_shared_expert_intermediate_size").value_or(0) > 0)
      keep("moe_shared_expert_intermediate_size", "shared_expert", true);
    else if (overlap)
      keep("moe_shared_expert_overlap", "shared_expert", true);
    if (overlap) keep("moe_shared_expert_overlap", "shared_expert_overlap", true);
  }

  void dispatch() {
    const bool padded = boolean("moe_pad_expert_input_to_capacity").value_or(false);
    if (boolean("moe_paged_stash").value_or(false))
      return keep("moe_paged_stash", "dispatch", std::string("paged_stash"));
    if (const auto factor = number("moe_expert_capacity_factor"); factor && *factor >= 0 && padded)
      return keep("moe_expert_capacity_factor", "dispatch", std::string("drop_and_pad"));
    set("dispatch", std::string("dropless"));
    account(Mapped::Kind::kept, "no capacity", set_text("dispatch"), "");
    if (number("moe_expert_rank_capacity_factor"))
      drop("moe_expert_rank_capacity_factor", "without a paged stash no axis represents it");
  }

  void precision() {
    if (!text("fp4").empty()) return keep("fp4", "precision", std::string("nvfp4"));
    if (!text("fp8").empty()) {
      const std::string recipe = text("fp8_recipe");
      for (const PrecisionRow& row : kFp8)
        if (recipe == row.recipe) {
          if (recipe == "blockwise")
            return shrink("fp8_recipe", "precision", std::string(row.precision),
                          "one scale for a tensor instead of one for a block");
          return keep("fp8_recipe", "precision", std::string(row.precision));
        }
      drop("fp8", "no axis value represents this fp8 recipe");
    }
    if (boolean("bf16").value_or(false))
      keep("bf16", "precision", std::string("bf16"));
    else if (boolean("fp16").value_or(false))
      keep("fp16", "precision", std::string("fp16"));
  }

  void recompute() {
    const std::string granularity = text("recompute_granularity");
    if (granularity == "full") {
      const std::string method = text("recompute_method");
      set("recompute", std::string("full(") + (method == "block" ? "block" : "uniform") + ",1)");
      account(Mapped::Kind::shrunk,
              "recompute_granularity=full, " + spelled("recompute_method") + ", " +
                  spelled("recompute_num_layers"),
              set_text("recompute"), "one layer in each group, because the model is small");
    } else if (granularity == "selective") {
      const std::vector<std::string> named = list("recompute_modules");
      std::string words, left_out;
      const auto names = [&](const std::string& word) {
        return std::find(named.begin(), named.end(), word) != named.end();
      };
      // Recipes as data have no model sizes, but only latent attention has this projection.
      if (names("mla_up_proj") && !boolean("multi_latent_attention")) {
        set("multi_latent_attention", true);
        account(Mapped::Kind::kept, "recompute_modules=mla_up_proj",
                set_text("multi_latent_attention"), "");
      }
      const bool latents = boolean("multi_latent_attention").value_or(true);
      for (const char* word :
           {"core_attn", "mlp", "moe", "moe_act", "layernorm", "shared_experts", "mla_up_proj"})
        if (names(word) && (latents || word != std::string_view("mla_up_proj")))
          words += (words.empty() ? "" : ",") + std::string(word);
      for (const std::string& word : named)
        if (("," + words + ",").find("," + word + ",") == std::string::npos)
          left_out += (left_out.empty() ? "" : ",") + word;
      if (!words.empty()) keep("recompute_modules", "recompute", "selective(" + words + ")");
      if (!left_out.empty())
        account(Mapped::Kind::dropped, "recompute_modules=" + left_out, "",
                "the models here have no such module");
    }
  }

  // Every engine here has the RNG tracker whose state graphs can capture.
  void tracker() {
    for (const char* option : {"te_rng_tracker", "use_te_rng_tracker", "inference_rng_tracker"})
      if (boolean(option).value_or(false))
        account(Mapped::Kind::kept, spelled(option), set_text("rng_tracker"), "");
  }

  void dropout() {
    const auto attention = number("attention_dropout"), hidden = number("hidden_dropout");
    if (attention.value_or(0) > 0)
      keep("attention_dropout", "dropout", true);
    else if (hidden.value_or(0) > 0)
      keep("hidden_dropout", "dropout", true);
  }

  void optimizer() {
    const std::string name = text("optimizer");
    if (name.empty()) return;
    if (can_be("optimizer", name)) return keep("optimizer", "optimizer", name);
    shrink("optimizer", "optimizer", std::string("adam"), "the optimizer with state that is built");
  }

  void environment() {
    for (const auto& [name, value] : values_) {
      constexpr std::string_view kPrefix = "env.";
      const auto* content = std::get_if<std::string>(&value);
      if (!name.starts_with(kPrefix) || content == nullptr) continue;
      result_.read.insert(name);
      const std::string variable = name.substr(kPrefix.size());
      if (variable == "PYTORCH_CUDA_ALLOC_CONF" || variable == "PYTORCH_ALLOC_CONF") {
        std::string lower = *content;
        std::transform(lower.begin(), lower.end(), lower.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        if (lower.find("expandable_segments:true") != std::string::npos)
          keep(name, "allocator", std::string("expandable"));
        else
          drop(name, "only expandable segments are an axis");
      } else if (variable == "NCCL_GRAPH_REGISTER" && (*content == "0" || *content == "1")) {
        keep(name, "nccl_graph_register", *content);
      } else if (variable == "NCCL_ALGO" && can_be("nccl_algo", *content)) {
        keep(name, "nccl_algo", *content);
      } else if (variable == "NCCL_PROTO" && can_be("nccl_proto", *content)) {
        keep(name, "nccl_proto", *content);
      } else if (axes_.find(name) != nullptr &&
                 (variable.starts_with("NCCL_") || variable.starts_with("TORCH_NCCL_") ||
                  variable == "CUDA_DEVICE_MAX_CONNECTIONS")) {
        keep(name, name, *content);
      } else {
        drop(name, "no library in a rank here reads it");
      }
    }
    if (!values_.contains("env.CUDA_DEVICE_MAX_CONNECTIONS"))
      account(
          Mapped::Kind::shrunk, "env.CUDA_DEVICE_MAX_CONNECTIONS not given",
          "1, which the ranks here get",
          "with more queues, kernels of several streams begin in any order; pass the job's number "
          "with --env if it is another");
  }

  std::int64_t integer(const char* axis) const { return integer_of(axes_, case_, axis); }

  const TrainingValues& values_;
  const Catalogue& catalogue_;
  const AxisTable& axes_;
  const Machine& machine_;
  Case case_;
  bool vision_ = false;
  NearestCase result_;
};

}  // namespace

std::string_view mapped_text(Mapped::Kind kind) {
  switch (kind) {
    case Mapped::Kind::kept:
      return "kept";
    case Mapped::Kind::shrunk:
      return "shrunk";
    case Mapped::Kind::dropped:
      return "dropped";
    case Mapped::Kind::replaced:
      return "replaced";
  }
  return "";
}

NearestCase nearest_case(const TrainingValues& values, const Catalogue& catalogue,
                         const Machine& machine) {
  return Mapping(values, catalogue, machine).run();
}

RunnableCase through_megatron_core(const Case& asked, const Catalogue& catalogue,
                                   const Machine& machine) {
  const std::string subject = "megatron_core";
  Case through = asked;
  set_value(catalogue.axes, through, "subject", subject);
  set_value(catalogue.axes, through, "layer_spec", std::string("transformer_engine"));
  if (world_size(catalogue.axes, through) > 1)
    set_value(catalogue.axes, through, "comm", std::string("c10d"));
  Machine installed = machine;
  installed.device = "cuda";
  installed.unavailable.erase(subject);
  RunnableCase made = runnable_case(through, catalogue, installed);
  if (world_size(catalogue.axes, made.test_case) == 1)
    set_value(catalogue.axes, made.test_case, "comm", std::string("nccl"));
  return made;
}

}  // namespace graphproof::matrix
