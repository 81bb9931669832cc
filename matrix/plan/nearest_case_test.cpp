#include "matrix/plan/nearest_case.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "matrix/testing/loaded_catalogue.h"

namespace graphproof::matrix {
namespace {

Value number(std::int64_t value) { return value; }
Value word(const char* value) { return std::string(value); }

NearestCase nearest(const TrainingValues& values, std::int64_t slots = 4) {
  return nearest_case(values, catalogue(), {.device = "sim", .slots = slots, .stack = {}});
}

std::string accounted(const NearestCase& made, Mapped::Kind kind, const std::string& part) {
  for (const Mapped& one : made.account)
    if (one.kind == kind && (one.from + " -> " + one.to).find(part) != std::string::npos)
      return one.why + "|";
  return "";
}

TEST(NearestCaseTest, SizesAboveOneBecomeTwoAndSizesOfOneStay) {
  const NearestCase made = nearest({{"cuda_graph_impl", word("local")},
                                    {"tensor_model_parallel_size", number(8)},
                                    {"pipeline_model_parallel_size", number(1)},
                                    {"world_size", number(64)}});
  EXPECT_EQ(case_name(catalogue().axes, made.asked), "impl=local,tp=2,dp=2");
  EXPECT_NE(accounted(made, Mapped::Kind::shrunk, "tensor_model_parallel_size=8 -> tp=2"), "");
  EXPECT_NE(accounted(made, Mapped::Kind::shrunk, "dp=8 -> dp=2"), "");
  EXPECT_EQ(made.runnable, made.asked);
  EXPECT_TRUE(made.missing.empty());
}

TEST(NearestCaseTest, ADenseModelHasNoExpertGroupsThoughUpstreamGivesEtpTheSizeOfTp) {
  const NearestCase made = nearest({{"cuda_graph_impl", word("local")},
                                    {"tensor_model_parallel_size", number(2)},
                                    {"expert_tensor_parallel_size", number(2)}});
  EXPECT_EQ(case_name(catalogue().axes, made.asked), "impl=local,tp=2");
  EXPECT_NE(accounted(made, Mapped::Kind::dropped, "expert_tensor_parallel_size=2"), "");
  EXPECT_FALSE(
      catalogue().rules.refusal(made.runnable, {.device = "sim", .slots = 4, .stack = {}}));
}

TEST(NearestCaseTest, DataParallelRanksGiveWayToTheSlotsUnlessExpertGroupsNeedThem) {
  const TrainingValues dense{{"cuda_graph_impl", word("local")},
                             {"tensor_model_parallel_size", number(8)},
                             {"world_size", number(64)}};
  EXPECT_EQ(case_name(catalogue().axes, nearest(dense, 2).asked), "impl=local,tp=2");
  const NearestCase experts = nearest({{"num_moe_experts", number(64)},
                                       {"moe_token_dispatcher_type", word("alltoall")},
                                       {"expert_model_parallel_size", number(8)}},
                                      2);
  EXPECT_EQ(integer_of(catalogue().axes, experts.asked, "ep"), 2);
  EXPECT_EQ(integer_of(catalogue().axes, experts.asked, "dp"), 2);
}

TEST(NearestCaseTest, MissingFeaturesAreGivenUpAloneOrTogetherAndNamed) {
  const NearestCase made = nearest({{"cuda_graph_impl", word("full_iteration")},
                                    {"overlap_grad_reduce", true},
                                    {"overlap_param_gather", true},
                                    {"fp8", word("hybrid")},
                                    {"fp8_recipe", word("mxfp8")}});
  EXPECT_EQ(text_of(catalogue().axes, made.asked, "precision"), "mxfp8");
  EXPECT_TRUE(made.missing.empty());
  EXPECT_FALSE(made.lacking.empty());
  for (const Mapped& one : made.account)
    EXPECT_EQ(one.why.empty(), one.kind == Mapped::Kind::kept) << one.from;
  EXPECT_TRUE(catalogue()
                  .capabilities.missing(made.runnable, {.device = "sim", .slots = 4, .stack = {}})
                  .empty());
  EXPECT_EQ(text_of(catalogue().axes, made.runnable, "impl"), "full_iteration");
}

TEST(NearestCaseTest, AHybridModelWithoutItsMambaLayersKeepsTheOtherModules) {
  const NearestCase made =
      nearest({{"cuda_graph_impl", word("local")},
               {"cuda_graph_modules", std::vector<std::string>{"mamba", "attn"}}});
  EXPECT_EQ(text_of(catalogue().axes, made.asked, "model"), "hybrid");
  if (!made.lacking.empty()) {
    EXPECT_EQ(case_name(catalogue().axes, made.runnable), "impl=local,modules=[attn]");
    EXPECT_NE(accounted(made, Mapped::Kind::replaced, "model=hybrid"), "");
  }
}

TEST(NearestCaseTest, GraphsOfAVisionEncoderAloneStayThat) {
  const auto asked = [](const char* decoder) {
    return nearest({{"cuda_graph_impl", word(decoder)},
                    {"vision_cuda_graph_impl", word("transformer_engine")}});
  };
  EXPECT_EQ(case_name(catalogue().axes, asked("none").runnable),
            "impl=transformer_engine,model=vlm,captured_models=encoder");
  EXPECT_EQ(case_name(catalogue().axes, asked("transformer_engine").runnable),
            "impl=transformer_engine,model=vlm");
}

TEST(NearestCaseTest, KeysAreExchangedAsAskedWhereThatIsBuilt) {
  const auto asked = [](Value type, std::int64_t cp = 2) {
    return nearest({{"cuda_graph_impl", word("local")},
                    {"context_parallel_size", number(cp)},
                    {"cp_comm_type", std::move(type)}});
  };
  EXPECT_EQ(case_name(catalogue().axes, asked(std::vector<std::string>{"allgather"}).asked),
            "impl=local,cp=2,cp_comm_type=all_gather");
  EXPECT_EQ(case_name(catalogue().axes, asked(std::vector<std::string>{"p2p", "p2p"}).asked),
            "impl=local,cp=2");
  EXPECT_EQ(
      accounted(asked(word("a2a")), Mapped::Kind::replaced, "cp_comm_type=a2a -> cp_comm_type=p2p"),
      "an exchange of heads is not built yet|");
  EXPECT_EQ(accounted(asked(std::vector<std::string>{"p2p", "allgather"}), Mapped::Kind::replaced,
                      "-> cp_comm_type=p2p"),
            "all layers have the same exchange|");
  EXPECT_EQ(accounted(asked(word("allgather"), 1), Mapped::Kind::dropped, "cp_comm_type=allgather"),
            "a single context parallel rank exchanges nothing|");
}

TEST(NearestCaseTest, AHybridModelHasBothKindsOfLayersInEachChunkAndAGroupForEachRank) {
  const NearestCase made = nearest({{"cuda_graph_impl", word("local")},
                                    {"is_hybrid_model", true},
                                    {"pipeline_model_parallel_size", number(4)},
                                    {"num_layers", number(52)}});
  EXPECT_EQ(case_name(catalogue().axes, made.asked),
            "impl=local,pp=2,microbatches=4,model=hybrid,layers=4");
  EXPECT_EQ(accounted(made, Mapped::Kind::shrunk, "num_layers=52 -> layers=4"),
            "a mamba layer and another layer in each chunk|");
  const NearestCase wide = nearest({{"is_hybrid_model", true},
                                    {"tensor_model_parallel_size", number(2)},
                                    {"context_parallel_size", number(2)},
                                    {"num_attention_heads", number(32)},
                                    {"num_query_groups", number(8)}});
  EXPECT_FALSE(catalogue().rules.refusal(wide.runnable, {.device = "sim", .slots = 4, .stack = {}}))
      << case_name(catalogue().axes, wide.runnable);
}

TEST(NearestCaseTest, ACaseThatARuleRefusesStaysAsItIs) {
  const NearestCase made = nearest(
      {{"cuda_graph_impl", word("full_iteration")}, {"check_for_nan_in_loss_and_grad", true}});
  EXPECT_EQ(made.runnable, made.asked);
  EXPECT_EQ(catalogue().rules.refusal(made.runnable, {}).value().rule, "R035");
}

TEST(NearestCaseTest, SwitchesWithoutAnAxisAreDroppedAndReported) {
  const NearestCase made =
      nearest({{"use_megatron_fsdp", true},
               {"recompute_granularity", word("selective")},
               {"recompute_modules", std::vector<std::string>{"core_attn", "gdp_qkv"}},
               {"env.NVTE_FUSED_ATTN", word("1")},
               {"env.NCCL_MAX_NCHANNELS", word("4")}});
  EXPECT_EQ(accounted(made, Mapped::Kind::dropped, "use_megatron_fsdp"), "no axis represents it|");
  EXPECT_EQ(accounted(made, Mapped::Kind::dropped, "gdp_qkv"),
            "the models here have no such module|");
  EXPECT_NE(accounted(made, Mapped::Kind::dropped, "env.NVTE_FUSED_ATTN"), "");
  EXPECT_EQ(text_of(catalogue().axes, made.asked, "recompute"), "selective(core_attn)");
  EXPECT_EQ(text_of(catalogue().axes, made.asked, "env.NCCL_MAX_NCHANNELS"), "4");
  EXPECT_TRUE(made.read.count("use_megatron_fsdp"));
}

TEST(NearestCaseTest, LatentAttentionAndPredictionLayersAreKept) {
  const std::vector<std::string> up_proj{"mla_up_proj"};
  const NearestCase deep = nearest({{"cuda_graph_impl", word("transformer_engine")},
                                    {"multi_latent_attention", true},
                                    {"mtp_num_layers", number(1)},
                                    {"mtp_loss_scaling_factor", 0.3},
                                    {"recompute_granularity", word("selective")},
                                    {"recompute_modules", up_proj}});
  EXPECT_EQ(case_name(catalogue().axes, deep.runnable),
            "impl=transformer_engine,recompute=selective(mla_up_proj),"
            "multi_latent_attention=true,mtp_num_layers=1");
  EXPECT_EQ(accounted(deep, Mapped::Kind::shrunk, "mtp_loss_scaling_factor"),
            "a factor changes no path through the code|");
  EXPECT_EQ(case_name(catalogue().axes, nearest({{"mtp_num_layers", number(5)}}).asked),
            "mtp_num_layers=2");
  // A published recipe names the module alone.
  const NearestCase recipe =
      nearest({{"recompute_granularity", word("selective")}, {"recompute_modules", up_proj}});
  EXPECT_EQ(case_name(catalogue().axes, recipe.asked),
            "recompute=selective(mla_up_proj),multi_latent_attention=true");
  const NearestCase other = nearest({{"recompute_granularity", word("selective")},
                                     {"recompute_modules", up_proj},
                                     {"multi_latent_attention", false}});
  EXPECT_EQ(case_name(catalogue().axes, other.asked), "default");
  // Megatron-Core has latents too, in Transformer Engine's layers.
  const RunnableCase through = through_megatron_core(
      recipe.asked, catalogue(), {.device = "cuda", .slots = 4, .stack = {{"sm", "90"}}});
  EXPECT_EQ(text_of(catalogue().axes, through.test_case, "recompute"), "selective(mla_up_proj)");
  EXPECT_NE(case_name(catalogue().axes, through.test_case).find("multi_latent_attention=true"),
            std::string::npos);
}

TEST(NearestCaseTest, ReportsTheHardwareQueuesOfTheCaseIfTheJobDoesNotSetThem) {
  EXPECT_TRUE(
      accounted(nearest({}), Mapped::Kind::shrunk, "env.CUDA_DEVICE_MAX_CONNECTIONS not given")
          .starts_with("with more queues"));
  const NearestCase given = nearest({{"env.CUDA_DEVICE_MAX_CONNECTIONS", word("32")}});
  EXPECT_EQ(accounted(given, Mapped::Kind::shrunk, "env.CUDA_DEVICE_MAX_CONNECTIONS not given"),
            "");
  EXPECT_EQ(text_of(catalogue().axes, given.asked, "env.CUDA_DEVICE_MAX_CONNECTIONS"), "32");
}

TEST(NearestCaseTest, MicrobatchesComeFromTheBatchSizes) {
  TrainingValues values{{"global_batch_size", number(32)},
                        {"micro_batch_size", number(4)},
                        {"world_size", number(2)}};
  EXPECT_EQ(integer_of(catalogue().axes, nearest(values).asked, "microbatches"), 4);
  EXPECT_EQ(integer_of(catalogue().axes, nearest(values).asked, "microbatch_size"), 2);
  values["global_batch_size"] = number(16);
  EXPECT_EQ(integer_of(catalogue().axes, nearest(values).asked, "microbatches"), 2);
  values.erase("world_size");
  EXPECT_EQ(integer_of(catalogue().axes, nearest(values).asked, "microbatches"), 1)
      << "how many replicas share the batch was not given";
}

TEST(NearestCaseTest, EveryNameOfTheTablesIsAnAxisValue) {
  // Every switch and size is set once: an axis or value that does not exist would throw.
  TrainingValues all{{"cuda_graph_impl", word("transformer_engine")},
                     {"num_moe_experts", number(8)},
                     {"moe_token_dispatcher_type", word("flex")},
                     {"fp4", word("e2m1")}};
  for (const char* option :
       {"sequence_parallel", "moe_shared_expert_overlap", "optimizer_cuda_graph",
        "use_distributed_optimizer", "gradient_accumulation_fusion", "delay_wgrad_compute",
        "overlap_moe_expert_parallel_comm", "overlap_grad_reduce", "overlap_param_gather",
        "check_for_nan_in_loss_and_grad", "check_for_nan_in_loss", "check_for_nan_in_grad",
        "cpu_offloading", "add_qkv_bias", "add_bias_linear", "enable_offline_packing",
        "rl_use_sequence_packing", "moe_paged_stash", "group_query_attention"})
    all[option] = true;
  for (const char* option :
       {"tensor_model_parallel_size", "pipeline_model_parallel_size",
        "virtual_pipeline_model_parallel_size", "context_parallel_size",
        "expert_model_parallel_size", "expert_tensor_parallel_size", "num_query_groups"})
    all[option] = number(4);
  const NearestCase made = nearest(all, 64);
  for (const char* axis : {"tp", "pp", "vpp", "cp", "ep", "etp", "kv_groups"})
    EXPECT_EQ(integer_of(catalogue().axes, made.asked, axis), 2) << axis;
  EXPECT_EQ(text_of(catalogue().axes, made.asked, "dispatch"), "paged_stash");
  EXPECT_EQ(text_of(catalogue().axes, made.asked, "precision"), "nvfp4");
}

}  // namespace
}  // namespace graphproof::matrix
