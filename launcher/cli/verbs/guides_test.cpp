// The commands and configurations in upstream's guides, as users would paste them: what `check`
// says about each, and that each gives a case. The texts are our own. Where a command of a guide is
// not complete, the row adds what makes it a model, such as experts.
#include <gtest/gtest.h>

#include <set>
#include <span>

#include "launcher/cli/testing/command_under_test.h"
#include "matrix/dialect/command_line.h"

namespace graphproof::cli {
namespace {

using nlohmann::json;

struct Row {
  const char* name;
  const char* text;       // an object in JSON, YAML (a line ends it), or a command line
  const char* first;      // the rule that refuses it; empty: accepted
  const char* also;       // rules that are among the findings, separated by blanks
  const char* effective;  // JSON: options and their values after all rewrites
};

// Bridge's guide to CUDA graphs. Its Python assignments `cfg.a.b = value` are given as the
// configuration that they make.
constexpr Row kBridge[] = {
    {"whole iteration, local",
     R"({"model": {"cuda_graph_impl": "local", "cuda_graph_scope": ["full_iteration"],
                   "cuda_graph_warmup_steps": 3, "use_te_rng_tracker": true},
         "rng": {"te_rng_tracker": true}, "rerun_state_machine": {"check_for_nan_in_loss": false},
         "ddp": {"check_for_nan_in_grad": false}})",
     "", "R014 R024",
     R"({"cuda_graph_impl": "full_iteration", "cuda_graph_modules": [],
         "inference_cuda_graph_scope": "none", "check_for_nan_in_loss": false})"},
    {"attention of a dense model",
     R"({"model": {"cuda_graph_impl": "transformer_engine", "cuda_graph_scope": ["attn"],
                   "cuda_graph_warmup_steps": 3, "use_te_rng_tracker": true},
                   "rng": {"te_rng_tracker": true}})",
     "", "R014", R"({"cuda_graph_impl": "transformer_engine", "cuda_graph_modules": ["attn"]})"},
    {"attention and MLP of a dense model",
     R"({"model": {"cuda_graph_impl": "transformer_engine", "cuda_graph_scope": ["attn", "mlp"],
                   "cuda_graph_warmup_steps": 3, "use_te_rng_tracker": true},
                   "rng": {"te_rng_tracker": true}})",
     "", "R014", R"({"cuda_graph_modules": ["attn", "mlp"]})"},
    {"attention, router and preprocess; with experts",
     R"({"model": {"cuda_graph_impl": "transformer_engine",
                   "cuda_graph_scope": ["attn", "moe_router", "moe_preprocess"],
                   "cuda_graph_warmup_steps": 3, "use_te_rng_tracker": true,
                   "num_moe_experts": 8, "add_bias_linear": false},
                   "rng": {"te_rng_tracker": true}})",
     "", "R014", R"({"cuda_graph_modules": ["attn", "moe_router", "moe_preprocess"]})"},
    {"no tracker, which the guide calls mandatory",
     R"({"model": {"cuda_graph_impl": "transformer_engine", "cuda_graph_scope": ["attn"],
                   "_target_": "megatron.bridge.models.gpt_provider.GPTModelProvider"}})",
     "B08", "B08", R"({})"},
    {"the whole iteration with the check of losses",
     R"({"model": {"cuda_graph_impl": "local", "cuda_graph_scope": ["full_iteration"],
                   "use_te_rng_tracker": true}, "rng": {"te_rng_tracker": true},
                   "rerun_state_machine": {"check_for_nan_in_loss": true}})",
     "B07", "", R"({})"},
    {"moe together with moe_router",
     R"({"model": {"cuda_graph_impl": "transformer_engine",
                   "cuda_graph_scope": ["moe", "moe_router"], "use_te_rng_tracker": true,
                   "num_moe_experts": 8, "add_bias_linear": false},
                   "rng": {"te_rng_tracker": true}})",
     "R071", "R075", R"({})"},
    {"moe_preprocess without moe_router",
     R"({"model": {"cuda_graph_impl": "transformer_engine", "cuda_graph_scope": ["moe_preprocess"],
                   "use_te_rng_tracker": true, "num_moe_experts": 8, "add_bias_linear": false},
                   "rng": {"te_rng_tracker": true}})",
     "R072", "", R"({})"},
    {"offloading with graphs",
     R"({"model": {"cuda_graph_impl": "transformer_engine", "cuda_graph_scope": ["attn"],
                   "use_te_rng_tracker": true, "cpu_offloading": true,
                   "cpu_offloading_num_layers": 1, "num_layers": 4},
                   "rng": {"te_rng_tracker": true}})",
     "R069", "", R"({})"},
    {"full recompute with the MLP captured, as a published fine-tuning recipe met it",
     R"({"model": {"cuda_graph_impl": "transformer_engine", "cuda_graph_scope": "mlp",
                   "use_te_rng_tracker": true, "recompute_granularity": "full",
                   "recompute_method": "block", "recompute_num_layers": 5, "num_layers": 80},
                   "rng": {"te_rng_tracker": true}})",
     "R078", "", R"({"cuda_graph_modules": ["mlp"]})"},
    {"recompute of experts with the router captured",
     R"({"model": {"cuda_graph_impl": "transformer_engine",
                   "cuda_graph_scope": ["attn", "moe_router"], "use_te_rng_tracker": true,
                   "num_moe_experts": 8, "add_bias_linear": false,
                   "recompute_granularity": "selective", "recompute_modules": ["moe"]},
                   "rng": {"te_rng_tracker": true}})",
     "R079", "", R"({})"},
    {"the performance harness",
     "python scripts/performance/run_script.py -m qwen -mr qwen3_30b_a3b --task pretrain -g h100 "
     "-c bf16 -ng 16 --cuda_graph_impl transformer_engine --cuda_graph_scope "
     "attn,moe_router,moe_preprocess",
     "", "BN10 B29",
     R"({"cuda_graph_modules": ["attn", "moe_router", "moe_preprocess"], "te_rng_tracker": true,
         "use_te_rng_tracker": true})"},
};

// Megatron-LM's guide.
constexpr Row kMegatron[] = {
    {"local, whole layers", "--cuda-graph-impl local", "", "R030 R058",
     R"({"cuda_graph_modules": [], "inference_cuda_graph_scope": "layer"})"},
    {"local, the same named", "--cuda-graph-impl local --cuda-graph-modules attn mlp", "", "R058",
     R"({"cuda_graph_modules": ["attn", "mlp"]})"},
    {"local, experts",
     "--cuda-graph-impl local --cuda-graph-modules attn moe_router moe_preprocess --num-experts 8 "
     "--disable-bias-linear",
     "", "R058", R"({"cuda_graph_modules": ["attn", "moe_router", "moe_preprocess"]})"},
    {"transformer_engine, whole layers", "--cuda-graph-impl transformer_engine", "", "R058",
     R"({"cuda_graph_modules": [], "inference_cuda_graph_scope": "none"})"},
    {"transformer_engine, the same named",
     "--cuda-graph-impl transformer_engine --cuda-graph-modules attn mlp", "", "R058",
     R"({"cuda_graph_modules": ["attn", "mlp"]})"},
    {"transformer_engine, experts",
     "--cuda-graph-impl transformer_engine --cuda-graph-modules attn moe_router moe_preprocess "
     "--num-experts 8 --disable-bias-linear",
     "", "R058", R"({"cuda_graph_modules": ["attn", "moe_router", "moe_preprocess"]})"},
    {"whole iteration", "--cuda-graph-impl full_iteration --no-check-for-nan-in-loss-and-grad", "",
     "R058", R"({"cuda_graph_impl": "full_iteration", "check_for_nan_in_loss_and_grad": false})"},
    {"whole iteration with paged stash",
     "--cuda-graph-impl full_iteration --no-check-for-nan-in-loss-and-grad "
     "--moe-flex-dispatcher-backend hybridep --use-transformer-engine-op-fuser "
     "--moe-expert-rank-capacity-factor 1.5 --moe-paged-stash"
     " --num-experts 8 --disable-bias-linear --moe-token-dispatcher-type flex",
     "", "R058", R"({"cuda_graph_impl": "full_iteration", "moe_paged_stash": true})"},
    {"inference by block", "--cuda-graph-impl local --inference-cuda-graph-scope block", "", "R058",
     R"({"inference_cuda_graph_scope": "block"})"},
    {"inference by layer", "--cuda-graph-impl local --inference-cuda-graph-scope layer", "", "R058",
     R"({"inference_cuda_graph_scope": "layer"})"},
    {"inference graphs elsewhere",
     "--cuda-graph-impl transformer_engine --inference-cuda-graph-scope layer", "R032", "",
     R"({})"},
    {"no warm-up, which the guide advises against",
     "--cuda-graph-impl local --cuda-graph-warmup-steps 0", "", "",
     R"({"cuda_graph_warmup_steps": 0})"},
    {"older: enable", "--enable-cuda-graph", "", "R011", R"({"cuda_graph_impl": "local"})"},
    {"older: external", "--external-cuda-graph", "", "R012",
     R"({"cuda_graph_impl": "transformer_engine"})"},
    {"older: scope", "--cuda-graph-impl transformer_engine --cuda-graph-scope attn mlp", "", "R003",
     R"({"cuda_graph_modules": ["attn", "mlp"]})"},
    {"older: scope of the whole iteration",
     "--cuda-graph-impl local --cuda-graph-scope full_iteration "
     "--no-check-for-nan-in-loss-and-grad",
     "", "R003 R024", R"({"cuda_graph_impl": "full_iteration"})"},
    {"older: scope of inference",
     "--cuda-graph-impl local --cuda-graph-scope full_iteration_inference", "", "R026",
     R"({"cuda_graph_impl": "local", "inference_cuda_graph_scope": "block"})"},
    {"older: modules together with the scope of inference",
     "--cuda-graph-impl local --cuda-graph-scope attn moe_router moe_preprocess "
     "full_iteration_inference --num-experts 8 --disable-bias-linear",
     "", "R026",
     R"({"cuda_graph_modules": ["attn", "moe_router", "moe_preprocess"],
         "inference_cuda_graph_scope": "block"})"},
};

// A guide to CUDA graphs for PyTorch, of an older Megatron-LM.
constexpr Row kPyTorch[] = {
    {"enable with an older warm-up flag",
     "python pretrain_gpt.py --enable-cuda-graph --cuda-graph-num-warmup-steps 3", "RN18", "R011",
     R"({"cuda_graph_impl": "local"})"},
    {"enable and the whole iteration",
     "python pretrain_gpt.py --enable-cuda-graph --cuda-graph-scope full_iteration "
     "--cuda-graph-warmup-steps 1 --te-rng-tracker --no-check-for-nan-in-loss-and-grad",
     "", "R011 R003 R024",
     R"({"cuda_graph_impl": "full_iteration", "cuda_graph_warmup_steps": 1,
         "te_rng_tracker": true})"},
    {"a TransformerConfig", R"({"enable_cuda_graph": true, "cuda_graph_num_warmup_steps": 3})",
     "RN18", "R011", R"({"cuda_graph_impl": "local", "cuda_graph_warmup_steps": 3})"},
    {"the same in YAML", "enable_cuda_graph: true\ncuda_graph_num_warmup_steps: 3\n", "RN18",
     "R011", R"({"cuda_graph_impl": "local"})"},
    {"one pool of memory", R"({"enable_cuda_graph": true, "cuda_graph_use_single_mempool": true})",
     "", "R011", R"({"cuda_graph_use_single_mempool": true})"},
    {"shared buffers, a field that went",
     R"({"enable_cuda_graph": true, "cuda_graph_share_io_buffers": true})", "", "R011", R"({})"},
};

// The reference of core.transformer.cuda_graphs.
constexpr Row kReference[] = {
    {"the vision encoder's helper",
     R"({"model": {"_target_": "megatron.bridge.models.qwen_vl.Qwen3VLModelProvider",
                   "vision_cuda_graph_impl": "transformer_engine",
                   "vision_cuda_graph_scope": ["attn"], "max_vision_cuda_graph_seq_length": 4096,
                   "use_te_rng_tracker": true}, "rng": {"te_rng_tracker": true}})",
     "", "", R"({"vision_cuda_graph_impl": "transformer_engine"})"},
    {"the order of overlapped expert communication, with split weight gradients",
     "--cuda-graph-impl transformer_engine --cuda-graph-modules attn moe_router "
     "--overlap-moe-expert-parallel-comm --delay-wgrad-compute --overlap-grad-reduce --num-experts "
     "8 --disable-bias-linear"
     " --expert-model-parallel-size 2 --moe-token-dispatcher-type alltoall --bf16",
     "", "R058", R"({"delay_wgrad_compute": true})"},
};

struct Guide {
  const char* name;
  std::span<const Row> rows;
};
constexpr Guide kGuides[] = {
    {"bridge", kBridge}, {"megatron", kMegatron}, {"pytorch", kPyTorch}, {"reference", kReference}};

struct GuidesTest : CommandUnderTest {
  // The arguments that pass the row to a verb, after `verb` and its options.
  std::vector<std::string> arguments(const Row& row, std::vector<std::string> verb) const {
    const std::string text = row.text;
    if (text.front() == '{' || text.back() == '\n') {
      verb.push_back(file(text.front() == '{' ? "row.json" : "row.yaml", text));
      return verb;
    }
    verb.push_back("--");
    for (const std::string& word : dialect::shell_words(text)) verb.push_back(word);
    return verb;
  }
};

TEST_F(GuidesTest, CheckSaysOfEachWhatTheGuideSays) {
  for (const Guide& guide : kGuides)
    for (const Row& row : guide.rows) {
      const std::string name = std::string(guide.name) + ": " + row.name;
      const Printed printed = cli(arguments(row, {"check", "--json"}));
      ASSERT_TRUE(printed.exit_code == 0 || printed.exit_code == 1) << name << printed.err;
      const json verdict = json::parse(printed.out);
      const bool accepted = std::string_view(row.first).empty();
      EXPECT_EQ(verdict.at("accepted"), accepted) << name << verdict.at("findings").dump(1);
      EXPECT_EQ(printed.exit_code, accepted ? 0 : 1) << name;
      const auto found = [&](const std::string& rule) {
        for (const json& finding : verdict.at("findings"))
          if (finding.at("rule") == rule && !finding.at("unknown")) return finding;
        return json();
      };
      EXPECT_TRUE(accepted ||
                  (found(row.first).is_object() && found(row.first).at("first") == true))
          << name << verdict.at("findings").dump(1);
      std::istringstream also(row.also);
      for (std::string rule; also >> rule;)
        EXPECT_FALSE(found(rule).is_null())
            << name << " " << rule << verdict.at("findings").dump(1);
      const json wanted = json::parse(row.effective);
      for (const auto& [option, value] : wanted.items())
        EXPECT_EQ(verdict.at("effective").at(option), value) << name << " " << option;
    }
}

TEST_F(GuidesTest, EachGivesACaseAndARejectedOneSaysSoFirst) {
  for (const Guide& guide : kGuides)
    for (const Row& row : guide.rows) {
      const std::string name = std::string(guide.name) + ": " + row.name;
      const Printed printed = cli(arguments(row, {"case", "--device", "sim", "--json", "--like"}));
      ASSERT_EQ(printed.exit_code, 0) << name << printed.err;
      const json like = json::parse(printed.out);
      EXPECT_EQ(like.at("accepted"), std::string_view(row.first).empty()) << name;
      EXPECT_EQ(like.at("lacks"), json::array()) << name;
      EXPECT_TRUE(like.at("case").at("skip").is_null()) << name << like.at("case").dump(1);
      EXPECT_NE(like.at("asked").get<std::string>().find("impl="), std::string::npos) << name;
      const std::string shown = cli(arguments(row, {"case", "--device", "sim", "--like"})).out;
      EXPECT_EQ(shown.starts_with(std::string("rejected by ")),
                !std::string_view(row.first).empty())
          << name << shown;
      EXPECT_NE(shown.find("\nname       "), std::string::npos) << name;
    }
}

// Equivalences that the guides state: both spellings give the same case.
TEST_F(GuidesTest, WhatTheGuidesCallTheSameIsTheSame) {
  const std::pair<const char*, const char*> kSame[] = {
      {"--enable-cuda-graph", "--cuda-graph-impl local"},
      {"--external-cuda-graph", "--cuda-graph-impl transformer_engine"},
      {"--cuda-graph-impl local --cuda-graph-scope full_iteration "
       "--no-check-for-nan-in-loss-and-grad",
       "--cuda-graph-impl full_iteration --no-check-for-nan-in-loss-and-grad"},
      {"--cuda-graph-impl local --cuda-graph-scope full_iteration_inference",
       "--cuda-graph-impl local --inference-cuda-graph-scope block"},
      {"--cuda-graph-impl transformer_engine --cuda-graph-scope attn mlp",
       "--cuda-graph-impl transformer_engine --cuda-graph-modules attn mlp"},
  };
  const auto effective = [&](const char* line) {
    return json::parse(cli(arguments({"", line, "", "", ""}, {"check", "--json"})).out)
        .at("effective");
  };
  for (const auto& [one, other] : kSame) {
    const json left = effective(one), right = effective(other);
    for (const char* option :
         {"cuda_graph_impl", "cuda_graph_modules", "inference_cuda_graph_scope", "te_rng_tracker",
          "check_for_nan_in_loss_and_grad"})
      EXPECT_EQ(left.at(option), right.at(option)) << one;
  }
}

// No modules means the whole layer, which in a dense model is attention and MLP. The same rules
// apply, whatever else is set.
TEST_F(GuidesTest, NoModulesAreAttentionAndMlpOfADenseModel) {
  for (const char* implementation : {"local", "transformer_engine"})
    for (const char* rest :
         {"", " --bf16",
          " --recompute-granularity full --recompute-method block --recompute-num-layers 1",
          " --recompute-granularity selective --recompute-modules core_attn",
          " --recompute-granularity selective --recompute-modules mlp",
          " --tensor-model-parallel-size 2 --sequence-parallel",
          " --attention-dropout 0 --hidden-dropout 0"}) {
      const auto rules = [&](const std::string& modules) {
        const std::string line =
            std::string("--cuda-graph-impl ") + implementation + modules + rest;
        const json verdict =
            json::parse(cli(arguments({"", line.c_str(), "", "", ""}, {"check", "--json"})).out);
        std::set<std::string> refusing;
        for (const json& finding : verdict.at("findings"))
          if (finding.at("severity") == "error" && !finding.at("unknown"))
            refusing.insert(finding.at("rule"));
        return std::pair(verdict.at("accepted").get<bool>(), refusing);
      };
      EXPECT_EQ(rules(""), rules(" --cuda-graph-modules attn mlp")) << implementation << rest;
    }
}

}  // namespace
}  // namespace graphproof::cli
