#include "suites/case/step_config.h"

#include <gtest/gtest.h>

#include "matrix/catalogue/catalogue.h"

namespace graphproof::suites {
namespace {

class StepConfigTest : public testing::Test {
 protected:
  StepConfig config_of(const char* name, fixtures::Rank place) {
    return step_config(catalogue_.axes, matrix::case_from_name(catalogue_.axes, name, "test"),
                       place, 7);
  }
  std::string refusal(const char* name, fixtures::Rank place) {
    try {
      config_of(name, place);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }
  const matrix::Catalogue catalogue_ = matrix::load_catalogue();
};

TEST_F(StepConfigTest, TakesEverySizeFromItsAxis) {
  const StepConfig config =
      config_of("impl=manual,tp=2,dp=2,microbatches=3,layers=4,hidden=128,dropout=true,fault=M23",
                {.world_size = 4, .rank = 3, .local_rank = 3, .from = "test"});
  EXPECT_EQ(config.engine.impl, "manual");
  EXPECT_EQ(config.fault, fixtures::Fault::learning_rate_by_value);
  EXPECT_EQ(config.model.layers, 4);
  EXPECT_EQ(config.model.hidden, 128);
  EXPECT_EQ(config.model.ffn, 4 * 128);
  EXPECT_EQ(config.model.kv_groups, config.model.heads);
  EXPECT_DOUBLE_EQ(config.model.dropout, 0.1);
  EXPECT_EQ(config.seed, 7u);
  EXPECT_TRUE(config.graphs());
}

TEST_F(StepConfigTest, TakesEachPartOfAGptFromItsAxis) {
  const workloads::ModelConfig plain = config_of("default", {}).model;
  EXPECT_EQ(plain.normalization, workloads::Normalization::RMSNorm);
  EXPECT_EQ(plain.activation, workloads::Activation::gelu);
  EXPECT_EQ(plain.position_embedding, workloads::PositionEmbedding::rope);
  EXPECT_FALSE(plain.tied_embeddings);
  const workloads::ModelConfig other = config_of(
                                           "normalization=LayerNorm,activation=swiglu,position_"
                                           "embedding=learned_absolute,tied_embeddings=true",
                                           {})
                                           .model;
  EXPECT_EQ(other.normalization, workloads::Normalization::LayerNorm);
  EXPECT_EQ(other.activation, workloads::Activation::swiglu);
  EXPECT_EQ(other.position_embedding, workloads::PositionEmbedding::learned_absolute);
  EXPECT_TRUE(other.tied_embeddings);
}

TEST_F(StepConfigTest, GivesModelVlmTheEncoderThatItsAxesName) {
  EXPECT_EQ(config_of("default", {}).model.encoder_layers, 0);
  const StepConfig config = config_of(
      "model=vlm,encoder_layers=3,images=2,image_counts=late,vision_seq_length=20,"
      "freeze_vision_model=true,impl=local,captured_models=decoder",
      {});
  EXPECT_EQ(config.engine.captured_models, engines::CapturedModels::decoder);
  const workloads::ModelConfig& encoder = config.model;
  EXPECT_EQ(encoder.encoder_layers, 3);
  EXPECT_EQ(encoder.images, 2);
  EXPECT_EQ(encoder.image_counts, workloads::ImageCounts::late);
  EXPECT_EQ(encoder.encoder_length(), 20);
  EXPECT_TRUE(encoder.freeze_vision_model);
  EXPECT_EQ(config_of("model=vlm,images=2", {}).model.encoder_length(), 2 * 2 * 4);
  EXPECT_EQ(config_of("model=vlm,vision_length=encoder", {}).model.encoder_length(), 4096);
  EXPECT_EQ(
      config_of("model=vlm,vision_length=encoder,vision_positions=100,vision_merge_size=2", {})
          .model.encoder_length(),
      25);
}

TEST_F(StepConfigTest, TakesTolerancesAndTheKernelsThatNeedThem) {
  const StepConfig plain = config_of("tp=1", {});
  EXPECT_TRUE(plain.tolerances.empty());
  EXPECT_TRUE(plain.deterministic_algorithms);
  EXPECT_EQ(plain.model.embedding_gradient, workloads::EmbeddingGradient::index_put);
  EXPECT_EQ(plain.model.attention_kernel, workloads::AttentionKernel::math);
  const StepConfig other = config_of(
      "embedding_gradient=index_add,attention_kernel=flash,deterministic_algorithms=off,"
      "tolerance=\"losses: rtol 0.01 atol 0\"",
      {});
  EXPECT_EQ(other.tolerances, (matrix::Tolerances{{"losses", {.rtol = 0.01, .atol = 0}}}));
  EXPECT_FALSE(other.deterministic_algorithms);
  EXPECT_EQ(other.model.embedding_gradient, workloads::EmbeddingGradient::index_add);
  EXPECT_EQ(other.model.attention_kernel, workloads::AttentionKernel::flash);
}

TEST_F(StepConfigTest, PutsTensorParallelRanksNextToEachOther) {
  for (int rank = 0; rank < 4; ++rank) {
    const auto layout =
        config_of("tp=2,dp=2", {.world_size = 4, .rank = rank, .local_rank = rank, .from = "test"})
            .layout;
    EXPECT_EQ(layout.dp_rank * 2 + layout.tp_rank, rank);
    EXPECT_EQ(layout.tp_rank, rank % 2);
  }
}

TEST_F(StepConfigTest, SplitsSequencesOverTensorParallelRanksAndNotInTheSingleRankReference) {
  const StepConfig config = config_of(
      "tp=2,sequence_parallel=true", {.world_size = 2, .rank = 1, .local_rank = 1, .from = "test"});
  EXPECT_EQ(config.layout.sequence_parts(), 2);
  EXPECT_EQ(config_of("tp=2", {.world_size = 2, .rank = 1, .local_rank = 1, .from = "test"})
                .layout.sequence_parts(),
            1);
  EXPECT_EQ(single_rank(config).layout.sequence_parts(), 1);
}

TEST_F(StepConfigTest, PutsPipelineStagesInOrderWithAGroupForEachDirectedEdge) {
  for (int rank = 0; rank < 4; ++rank) {
    const auto layout =
        config_of("tp=2,pp=2,tied_embeddings=true",
                  {.world_size = 4, .rank = rank, .local_rank = rank, .from = "test"})
            .layout;
    EXPECT_EQ(layout.pp_rank, rank / 2);
    EXPECT_EQ(layout.tp_rank, rank % 2);
    EXPECT_EQ(layout.dp_rank, 0);
    const auto groups = process_groups(layout);
    ASSERT_EQ(groups.size(), 5u);
    EXPECT_EQ(groups[0], (comm::GroupLayout{.name = "tp", .ranks = {{0, 1}, {2, 3}}}));
    EXPECT_EQ(groups[2], (comm::GroupLayout{
                             .name = "pp.0>1", .ranks = {{0, 2}, {1, 3}}, .point_to_point = true}));
    EXPECT_EQ(groups[3], (comm::GroupLayout{
                             .name = "pp.1>0", .ranks = {{2, 0}, {3, 1}}, .point_to_point = true}));
    EXPECT_EQ(groups[4], (comm::GroupLayout{.name = "embd", .ranks = {{0, 2}, {1, 3}}}));
  }
  const auto four = process_groups({.pp = 4});
  ASSERT_EQ(four.size(), 2u + 6u) << "without tied embeddings there is no embedding group";
  EXPECT_EQ(four[4],
            (comm::GroupLayout{.name = "pp.1>2", .ranks = {{1, 2}}, .point_to_point = true}));
  EXPECT_EQ(process_groups({.pp = 4, .vpp = 2}).size(), 2u + 8u)
      << "with chunks the last stage sends to the first one";
}

TEST_F(StepConfigTest, GivesStagesTheirChunksOfLayersInTurnAndTheSingleRankAll) {
  const StepConfig config =
      config_of("pp=2,vpp=2,layers=8,microbatches=4,microbatch_group=2",
                {.world_size = 2, .rank = 1, .local_rank = 1, .from = "test"});
  std::vector<std::int64_t> held, places;
  for (std::int64_t layer = 0; layer < 8; ++layer)
    if (config.layout.holds(config.model, layer)) {
      held.push_back(layer);
      places.push_back(config.layout.place(config.model, layer));
    }
  EXPECT_EQ(held, (std::vector<std::int64_t>{2, 3, 6, 7}));
  EXPECT_EQ(places, (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(config.layout.first_layer(config.model, 1), 6);
  EXPECT_EQ(config.layout.microbatch_group, 2);
  EXPECT_EQ(single_rank(config).layout.vpp, 1);
  EXPECT_EQ(single_rank(config).layout.stage_layers(config.model), 8);
}

TEST_F(StepConfigTest, PutsTheEncodersLayersOnTheFirstStageInFrontOfItsFirstChunk) {
  for (int rank = 0; rank < 2; ++rank) {
    const StepConfig config = config_of(
        "pp=2,vpp=2,layers=4,microbatches=4,model=vlm,encoder_layers=3,"
        "precision=fp8_delayed,first_last_layers_bf16=true",
        {.world_size = 2, .rank = rank, .local_rank = rank, .from = "test"});
    for (std::int64_t layer = 4; layer < 7; ++layer) {
      EXPECT_EQ(config.layout.holds(config.model, layer), rank == 0) << layer;
      EXPECT_EQ(config.layout.chunk_of(config.model, layer), 0) << layer;
      EXPECT_EQ(config.layout.place(config.model, layer), 2 + layer - 4) << layer;
      EXPECT_EQ(config.model.uses_fp8(layer), layer == 5) << layer;
    }
  }
}

TEST_F(StepConfigTest, PlacesCommunicationBuffersByTheNumberOfTheRank) {
  using workloads::BufferPlacement;
  for (int rank = 0; rank < 4; ++rank) {
    const auto placement = [&](const char* name) {
      return config_of(name, {.world_size = 4, .rank = rank, .local_rank = rank, .from = "test"})
          .layout.placement;
    };
    EXPECT_EQ(placement("tp=2,dp=2"), BufferPlacement::by_allocator);
    EXPECT_EQ(placement("tp=2,dp=2,placement=per_rank"),
              rank % 2 == 0 ? BufferPlacement::at_border : BufferPlacement::across_border);
  }
}

TEST_F(StepConfigTest, PutsPredictionLayersOnTheLastStageAfterItsOthersWithAnEmbedding) {
  for (int rank = 0; rank < 2; ++rank) {
    const StepConfig config =
        config_of("pp=2,vpp=2,layers=4,microbatches=4,multi_latent_attention=true,mtp_num_layers=2",
                  {.world_size = 2, .rank = rank, .local_rank = rank, .from = "test"});
    EXPECT_TRUE(config.model.multi_latent_attention);
    EXPECT_EQ(config.layout.mtp_layers(config.model), rank == 1 ? 2 : 0);
    EXPECT_EQ(config.layout.holds(config.model, 4), rank == 1);
    EXPECT_EQ(config.layout.place(config.model, 5), 3);
    EXPECT_EQ(config.layout.chunk_of(config.model, 5), 1);
    EXPECT_EQ(config.layout.expert_layers(config.model), rank == 1 ? 4 : 2);
    EXPECT_EQ(config.layout.embedding_group, "embd");
    EXPECT_EQ(config.model.layer_name(5), "mtp.layers.1");
    EXPECT_FALSE(config.model.mamba(4));
  }
}

TEST_F(StepConfigTest, OfTheSingleRankReferenceCoversTheGlobalBatchWithoutFaultOrDropout) {
  const StepConfig single =
      single_rank(config_of("impl=full_iteration,tp=2,dp=2,microbatches=3,dropout=true,fault=M26",
                            {.world_size = 4, .rank = 1, .local_rank = 1, .from = "test"}));
  EXPECT_EQ(single.model.microbatches, 6);
  EXPECT_EQ(single.layout.tp * single.layout.dp, 1);
  EXPECT_EQ(single.model.dropout, 0);
  EXPECT_EQ(single.fault, fixtures::Fault::none);
  EXPECT_FALSE(single.graphs());
}

TEST_F(StepConfigTest, RefusesAWorldOfAnotherSizeThanTheLayout) {
  const std::string message = refusal("tp=2", {});
  EXPECT_NE(message.find("got 1 ranks; want tp * cp * dp * pp = 2"), std::string::npos) << message;
  EXPECT_NE(message.find("next: "), std::string::npos);
}

TEST_F(StepConfigTest, RefusesAnAxisThatItWouldIgnore) {
  const std::string message = refusal("share_io_buffers=true", {});
  EXPECT_NE(message.find("axis share_io_buffers; got true; want its default"), std::string::npos)
      << message;
}

TEST_F(StepConfigTest, LeavesToTheLauncherWhatTheRankIsStartedUnder) {
  EXPECT_EQ(config_of("impl=manual,sanitizer=memcheck", {}).engine.impl, "manual");
}

TEST_F(StepConfigTest, KnowsTheValuesOfThePrecisionAxisByTheirNames) {
  EXPECT_EQ(config_of("precision=mxfp8", {}).model.precision, workloads::Precision::mxfp8);
  EXPECT_EQ(config_of("precision=nvfp4", {}).model.precision, workloads::Precision::nvfp4);
}

TEST_F(StepConfigTest, APagedStashIsADroplessDispatchWithTheFlexDispatcher) {
  const std::string experts = "dp=2,ep=2,model=moe,experts=4,topk=2,";
  const auto model = [&](const std::string& dispatch) {
    return config_of((experts + dispatch).c_str(),
                     {.world_size = 2, .rank = 0, .local_rank = 0, .from = "test"})
        .model;
  };
  const auto alltoall = model("dispatch=dropless,dispatcher=alltoall"),
             flex = model("dispatch=dropless,dispatcher=flex"),
             stash = model("dispatch=paged_stash,dispatcher=flex");
  EXPECT_TRUE(alltoall.dropless && flex.dropless && stash.dropless);
  EXPECT_TRUE(!alltoall.flex && flex.flex && stash.flex);
  EXPECT_TRUE(!alltoall.paged_stash && !flex.paged_stash && stash.paged_stash);
}

TEST_F(StepConfigTest, PutsExpertParallelRanksNextToEachOtherAmongTheDataParallelOnes) {
  const char* name =
      "dp=4,ep=2,model=moe,experts=4,topk=2,dispatch=drop_and_pad,dispatcher=alltoall,shared_"
      "expert=true,"
      "precision=bf16,optimizer=adam,recompute=selective(core_attn)";
  for (int rank = 0; rank < 4; ++rank) {
    const StepConfig config =
        config_of(name, {.world_size = 4, .rank = rank, .local_rank = rank, .from = "test"});
    EXPECT_EQ(config.layout.ep, 2);
    EXPECT_EQ(config.layout.ep_rank, rank % 2);
    EXPECT_EQ(config.layout.edp_group, "edp");
    const auto groups = process_groups(config.layout);
    ASSERT_EQ(groups.size(), 4u);
    EXPECT_EQ(groups[2],
              (comm::GroupLayout{.name = "ep", .ranks = {{0, 1}, {2, 3}}, .point_to_point = true}));
    EXPECT_EQ(groups[3], (comm::GroupLayout{.name = "edp", .ranks = {{0, 2}, {1, 3}}}));
    EXPECT_EQ(config.model.experts, 4);
    EXPECT_EQ(config.model.topk, 2);
    EXPECT_TRUE(config.model.shared_expert);
    EXPECT_TRUE(config.model.recompute.of(workloads::RecomputedPart::core_attn));
    EXPECT_EQ(config.model.precision, workloads::Precision::bf16);
    EXPECT_EQ(config.model.optimizer, workloads::OptimizerKind::adam);
    EXPECT_EQ(single_rank(config).layout.ep, 1);
    EXPECT_EQ(single_rank(config).model.experts, 4);
    EXPECT_EQ(single_rank(config).model.precision, workloads::Precision::bf16);
    StepConfig cut = config;
    cut.layout.etp = 2;
    EXPECT_EQ(single_rank(cut).model.precision, workloads::Precision::fp32);
    StepConfig two_steps = config;
    two_steps.model.distributed_optimizer = true;
    EXPECT_EQ(single_rank(two_steps).model.precision, workloads::Precision::fp32);
  }
  EXPECT_EQ(process_groups({.tp = 2, .dp = 1}).size(), 2u)
      << "without split experts there are no expert groups";
}

TEST_F(StepConfigTest, SharesExpertsWithTensorParallelRanksThatHaveOtherTokens) {
  const StepConfig config = config_of(
      "tp=2,dp=2,sequence_parallel=true,model=moe,experts=4,topk=2,dispatch=dropless,dispatcher="
      "allgather",
      {.world_size = 4, .rank = 3, .local_rank = 3, .from = "test"});
  EXPECT_TRUE(config.model.dropless);
  EXPECT_TRUE(config.model.gather_tokens);
  EXPECT_EQ(process_groups(config.layout).back(),
            (comm::GroupLayout{.name = "edp", .ranks = {{0, 1, 2, 3}}}));
}

TEST_F(StepConfigTest,
       ExpertsAreCutOverNeighboursAndComparedInSinglePrecisionWithOneRankThatCountsCapacityAlike) {
  for (int rank = 0; rank < 4; ++rank) {
    const StepConfig config = config_of(
        "tp=2,cp=2,ep=2,etp=2,sequence_parallel=true,model=moe,experts=4,topk=2,dispatch=drop_and_"
        "pad,"
        "dispatcher=alltoall,precision=bf16",
        {.world_size = 4, .rank = rank, .local_rank = rank, .from = "test"});
    EXPECT_EQ(config.layout.ep_rank * 2 + config.layout.etp_rank, rank);
    const auto groups = process_groups(config.layout);
    ASSERT_EQ(groups.size(), 7u);
    EXPECT_EQ(groups[4],
              (comm::GroupLayout{.name = "ep", .ranks = {{0, 2}, {1, 3}}, .point_to_point = true}));
    EXPECT_EQ(groups[5], (comm::GroupLayout{.name = "etp", .ranks = {{0, 1}, {2, 3}}}));
    const workloads::ModelConfig single = single_rank(config).model;
    EXPECT_EQ(single.capacity_cp, 2);
    EXPECT_EQ(single.capacity_parts, 2);
    EXPECT_EQ(single.precision, workloads::Precision::fp32);
  }
}

TEST_F(StepConfigTest, AutocastIsComparedWithASingleRankInAutocastExceptWhereRoundingsMoveTokens) {
  const fixtures::Rank first{.world_size = 2, .rank = 0, .local_rank = 0, .from = "test"};
  const StepConfig dense = config_of("tp=2,autocast=bf16,autocast_cache=true", first);
  EXPECT_TRUE(dense.model.autocast);
  EXPECT_TRUE(dense.model.autocast_cache);
  EXPECT_EQ(dense.model.precision, workloads::Precision::fp32);
  EXPECT_TRUE(single_rank(dense).model.autocast);
  const StepConfig experts = config_of(
      "tp=2,sequence_parallel=true,model=moe,experts=4,topk=2,dispatch=drop_and_pad,"
      "dispatcher=alltoall,autocast=bf16",
      first);
  EXPECT_TRUE(experts.model.autocast);
  EXPECT_FALSE(single_rank(experts).model.autocast);
}

TEST_F(StepConfigTest, PutsContextParallelRanksBetweenTensorAndDataParallelOnes) {
  for (int rank = 0; rank < 8; ++rank) {
    const StepConfig config =
        config_of("tp=2,cp=2,dp=2,cp_comm_type=all_gather",
                  {.world_size = 8, .rank = rank, .local_rank = rank, .from = "test"});
    const workloads::Layout& layout = config.layout;
    EXPECT_EQ((layout.dp_rank * 2 + layout.cp_rank) * 2 + layout.tp_rank, rank);
    EXPECT_EQ(layout.replicas(), 4);
    EXPECT_EQ(layout.replica_group(), "dp_cp");
    EXPECT_EQ(layout.own_length(config.model), config.model.seq_length / 2);
    EXPECT_EQ(layout.cp_comm_type, workloads::CpCommType::all_gather);
    const auto groups = process_groups(layout);
    ASSERT_EQ(groups.size(), 4u);
    EXPECT_EQ(groups[1],
              (comm::GroupLayout{.name = "dp", .ranks = {{0, 4}, {1, 5}, {2, 6}, {3, 7}}}));
    EXPECT_EQ(groups[2], (comm::GroupLayout{.name = "cp",
                                            .ranks = {{0, 2}, {1, 3}, {4, 6}, {5, 7}},
                                            .point_to_point = true}));
    EXPECT_EQ(groups[3],
              (comm::GroupLayout{.name = "dp_cp", .ranks = {{0, 2, 4, 6}, {1, 3, 5, 7}}}));
    EXPECT_EQ(single_rank(config).layout.cp, 1);
  }
  const StepConfig staged =
      config_of("cp=2,pp=2", {.world_size = 4, .rank = 3, .local_rank = 3, .from = "test"});
  EXPECT_EQ(staged.layout.pp_rank, 1);
  EXPECT_EQ(staged.layout.cp_rank, 1);
  EXPECT_EQ(staged.layout.cp_comm_type, workloads::CpCommType::p2p);
  EXPECT_EQ(
      process_groups(staged.layout).back(),
      (comm::GroupLayout{.name = "pp.1>0", .ranks = {{2, 0}, {3, 1}}, .point_to_point = true}));
  for (const char* name : {"cp=2,pp=2,clip_grad=true", "cp=2,pp=2,precision=fp16"})
    EXPECT_EQ(
        process_groups(
            config_of(name, {.world_size = 4, .rank = 3, .local_rank = 3, .from = "test"}).layout)
            .back(),
        (comm::GroupLayout{.name = "pp", .ranks = {{0, 2}, {1, 3}}}))
        << name;
}

TEST_F(StepConfigTest, TakesWhatIsRecomputedFromItsAxis) {
  using workloads::RecomputedPart;
  const auto of = [&](const char* name) { return config_of(name, {}).model.recompute; };
  EXPECT_FALSE(of("default").any());
  EXPECT_EQ(of("recompute=selective(core_attn,mlp,layernorm)").parts,
            (std::vector{RecomputedPart::core_attn, RecomputedPart::mlp,
                         RecomputedPart::attention_norm, RecomputedPart::mlp_norm}));
  EXPECT_EQ(of("recompute=full(block,3)").recomputed_layers(4), 3);
  EXPECT_EQ(of("recompute=full(block,3)").recomputed_layers(2), 2);
  EXPECT_EQ(of("recompute=full(uniform,2)").recomputed_layers(4), 4);
  const std::string experts =
      "recompute=selective(moe),model=moe,experts=4,topk=2,dispatch=dropless,dispatcher=alltoall";
  EXPECT_FALSE(of(experts.c_str()).after_router);
  EXPECT_TRUE(
      of(("impl=local,modules=[moe_router,moe_preprocess]," + experts).c_str()).after_router);
  EXPECT_EQ(of("recompute=full(uniform,2)").layers, 2);
}

TEST_F(StepConfigTest, TakesHowItIsTrainedFromItsAxes) {
  const workloads::ModelConfig plain = config_of("default", {}).model;
  EXPECT_FALSE(plain.clip_grad || plain.weight_decay || plain.nan_check_loss ||
               plain.nan_check_grad || plain.overlap_grad_reduce);
  const StepConfig config = config_of(
      "precision=fp16,clip_grad=true,weight_decay=true,nan_check_grad=true,overlap_grad_reduce="
      "true,dp=2",
      {.world_size = 2, .rank = 1, .local_rank = 1, .from = "test"});
  EXPECT_EQ(config.model.precision, workloads::Precision::fp16);
  EXPECT_EQ(config.model.loss_scaling, workloads::LossScaling::dynamic);
  EXPECT_TRUE(config.model.clip_grad && config.model.weight_decay && config.model.nan_check_grad &&
              config.model.overlap_grad_reduce);
  EXPECT_FALSE(config.model.nan_check_loss || config.model.distributed_optimizer);
  const StepConfig split = config_of(
      "distributed_optimizer=true,overlap_param_gather=true,overlap_grad_reduce=true,dp=2",
      {.world_size = 2, .rank = 1, .local_rank = 1, .from = "test"});
  EXPECT_TRUE(split.model.distributed_optimizer && split.model.overlap_param_gather);
  const StepConfig resumed = config_of("impl=manual,schedule=resume", {});
  EXPECT_EQ(resumed.schedule, Schedule::resume);
  EXPECT_EQ(config.schedule, Schedule::train);
  EXPECT_EQ(resumed.resume_step(), 2) << "two of five steps are warm-up and one is replayed";
  EXPECT_EQ(config_of("impl=local,schedule=resume", {}).resume_step(), 3);
  const StepConfig apart =
      config_of("impl=manual,schedule=resume,resume_in=new_process,steps=7", {});
  EXPECT_TRUE(apart.resumes_in_new_process);
  EXPECT_FALSE(resumed.resumes_in_new_process);
  EXPECT_EQ(apart.resume_step(), 3) << "two of seven steps are warm-up, and two are replayed";
  const StepConfig evaluated = config_of("impl=local,schedule=train-eval-train,warmup_steps=3", {});
  EXPECT_EQ(evaluated.schedule, Schedule::train_eval_train);
  EXPECT_EQ(evaluated.evaluation_step(), 2) << "after one replayed step";
  EXPECT_EQ(evaluated.evaluations(), 5);
  EXPECT_FALSE(evaluated.decoding || evaluated.rolls_out_after(2));
  const StepConfig rolled_out = config_of(
      "impl=local,inference_scope=layer,microbatch_size=4,schedule=train-rollout-train,"
      "prefill_chunk=3",
      {});
  EXPECT_EQ(rolled_out.schedule, Schedule::train_rollout_train);
  EXPECT_FALSE(rolled_out.rolls_out_after(0)) << "it is not replayed";
  EXPECT_TRUE(rolled_out.rolls_out_after(1));
  ASSERT_TRUE(rolled_out.decoding);
  EXPECT_EQ(rolled_out.decoding->requests.steps, 48);
  EXPECT_EQ(rolled_out.decoding->requests.chunk, 3);
  EXPECT_EQ(config_of("precision=fp16,loss_scale=static", {}).model.loss_scaling,
            workloads::LossScaling::static_);
  EXPECT_EQ(single_rank(config).model.loss_scaling, workloads::LossScaling::static_);
}

TEST_F(StepConfigTest,
       RanksOfAStageFindTheLargestElementsOfDelayedFp8TogetherAndAreComparedInFp32) {
  const fixtures::Rank place{.world_size = 4, .rank = 3, .local_rank = 3, .from = "test"};
  const StepConfig delayed = config_of("tp=2,pp=2,precision=fp8_delayed", place);
  EXPECT_EQ(single_rank(delayed).model.precision, workloads::Precision::fp32);
  const auto groups = process_groups(delayed.layout);
  const auto amax = std::ranges::find(groups, delayed.layout.amax_group, &comm::GroupLayout::name);
  ASSERT_NE(amax, groups.end());
  EXPECT_EQ(amax->ranks, (std::vector<std::vector<int>>{{0, 1}, {2, 3}}));
  EXPECT_EQ(config_of("tp=2,pp=2,precision=fp8_current", place).layout.amax_group, "");
  EXPECT_EQ(config_of("precision=fp8_delayed", {}).layout.amax_group, "");
  for (const char* blocks : {"tp=2,pp=2,precision=mxfp8", "tp=2,pp=2,precision=nvfp4"}) {
    EXPECT_EQ(config_of(blocks, place).layout.amax_group, "") << blocks;
    EXPECT_EQ(single_rank(config_of(blocks, place)).model.precision, workloads::Precision::fp32);
  }
}

TEST_F(StepConfigTest, TheSecondStepOfAHybridModelIsComparedInFp32) {
  const fixtures::Rank place{.world_size = 2, .rank = 1, .local_rank = 1, .from = "test"};
  const auto precision = [&](const char* name) {
    return single_rank(config_of(name, place)).model.precision;
  };
  EXPECT_EQ(precision("dp=2,precision=bf16,model=hybrid,distributed_optimizer=true"),
            workloads::Precision::fp32);
  EXPECT_EQ(precision("dp=2,precision=bf16,model=hybrid"), workloads::Precision::bf16);
  EXPECT_EQ(precision("dp=2,precision=bf16,distributed_optimizer=true"),
            workloads::Precision::bf16);
}

TEST_F(StepConfigTest, TheSingleRankReferenceRoundsWeightsWithTheScalesOfTheRanks) {
  EXPECT_FALSE(config_of("default", {}).model.fp8_weights);
  const StepConfig config =
      config_of("tp=2,layers=3,fp8_weights=true,first_last_layers_bf16=true",
                {.world_size = 2, .rank = 1, .local_rank = 1, .from = "test"});
  EXPECT_EQ(config.model.fp8_parts, 1);
  EXPECT_EQ(single_rank(config).model.fp8_parts, 2);
  EXPECT_EQ(single_rank(config).model.fp8_expert_parts, 1);
  for (const auto& [layer, rounds] : {std::pair{0, false}, std::pair{1, true}, std::pair{2, false}})
    EXPECT_EQ(single_rank(config).model.uses_fp8(layer), rounds) << layer;
}

}  // namespace
}  // namespace graphproof::suites
