#include "matrix/catalogue/capabilities.h"

#include <gtest/gtest.h>

#include "matrix/catalogue/catalogue.h"

namespace graphproof::matrix {
namespace {

class CapabilitiesTest : public testing::Test {
 protected:
  std::vector<std::string> missing(const char* name, const char* device = "sim") const {
    return catalogue_.capabilities.missing(case_from_name(catalogue_.axes, name, ""),
                                           {.device = device});
  }
  inline static const Catalogue catalogue_ = load_catalogue();  // read once, never changed
};

TEST_F(CapabilitiesTest, MissingPartIsNamedWithItsValue) {
  EXPECT_EQ(missing("comm=c10d"),
            std::vector<std::string>{"device=sim, comm=c10d: the simulated device has no NCCL, and "
                                     "so no PyTorch process group over it"});
  EXPECT_EQ(missing("model=vlm,mtp_num_layers=1,recompute=selective(moe)"),
            (std::vector<std::string>{
                "mtp_num_layers=1, model=vlm: image tokens have no embedding in the "
                "vocabulary that a prediction could begin with",
                "recompute=selective(moe), experts=0, shared_expert=false: this "
                "model has no such module, so nothing would be recomputed"}));
  EXPECT_EQ(
      missing("impl=manual,optimizer_graph=true"),
      std::vector<std::string>{
          "optimizer_graph=true, impl=manual, model=gpt: without graphs there is no optimizer "
          "graph, and a single graph of the whole step contains the optimizer already"});
  EXPECT_EQ(
      missing(
          "impl=full_iteration,model=moe,experts=4,topk=2,dispatch=dropless,dispatcher=alltoall"),
      std::vector<std::string>{
          "dispatch=dropless, dispatcher=alltoall, impl=full_iteration, modules=[]: in the middle "
          "of "
          "a layer the host reads how many tokens an expert has, which no graph can contain"});
  EXPECT_EQ(missing("model=moe,experts=4,topk=2,dispatch=paged_stash,dispatcher=flex"),
            std::vector<std::string>{
                "dispatch=paged_stash, ep=1, experts=4, topk=2: the load of experts is nearly even "
                "then, so no buffer of 1.25 times an even share overflows"});
  EXPECT_EQ(missing("ep=2,dp=2,model=moe,experts=4,topk=2,dispatch=paged_stash,dispatcher=flex"),
            std::vector<std::string>());
  EXPECT_EQ(missing("impl=local,model=moe,experts=4,topk=2,dispatch=dropless,dispatcher=flex"),
            std::vector<std::string>())
      << "no host reads a number of tokens, so a graph may hold the whole layer";
  EXPECT_EQ(missing("dp=2,etp=2,linear_bias=true,model=moe,experts=4,topk=2,dispatch=drop_and_pad,"
                    "dispatcher=alltoall"),
            std::vector<std::string>{
                "etp=2, linear_bias=true: upstream's token dispatchers do not carry a bias, and "
                "after a reduce-scatter the bias would belong to no part of an expert"});
  const std::string by_layer =
      ",dp=2,ep=2,model=moe,experts=4,topk=2,dispatch=drop_and_pad,dispatcher=alltoall,precision="
      "bf16,overlap_ep_comm=true";
  EXPECT_EQ(
      missing(("impl=local,modules=[attn]" + by_layer).c_str()),
      std::vector<std::string>{
          "overlap_ep_comm=true, impl=local: upstream's schedule calls the parts of a layer "
          "without the call that local graphs replace, so every layer would silently run eagerly"});
  EXPECT_EQ(missing(("impl=callables,modules=[attn]" + by_layer).c_str()),
            std::vector<std::string>{"overlap_ep_comm=true, impl=callables: a graphed callable has "
                                     "one set of static tensors, and with this schedule its second "
                                     "forward pass comes before the backward pass of its first"});
  for (const char* name : {"impl=manual,steps=3", "impl=full_iteration,warmup_steps=3,steps=4",
                           "impl=local,steps=2"}) {
    const auto lacking = missing(name);
    ASSERT_EQ(lacking.size(), 1u) << name;
    EXPECT_NE(lacking[0].find(
                  "a graph that is replayed only once does not show values that its capture froze"),
              std::string::npos)
        << lacking[0];
  }
  for (const char* name : {"impl=local,layers=4,first_last_layers_bf16=true",
                           "impl=local,fp8_weights=true,first_last_layers_bf16=true"})
    EXPECT_EQ(missing(name).size(), 1u) << name;
}

TEST_F(CapabilitiesTest, TodaysCasesMissNothing) {
  for (const char* name :
       {"default",
        "impl=manual,steps=4",
        "impl=local,steps=3",
        "steps=2",
        "impl=full_iteration,tp=2,dp=2,microbatches=2,dropout=true,linear_bias=true,capture_mode="
        "global,autograd_threads=on",
        "impl=local,normalization=LayerNorm,activation=swiglu,position_embedding=learned_absolute,"
        "tied_embeddings=true",
        "impl=full_iteration,pp=2,tp=2,sequence_parallel=true,microbatches=4,tied_embeddings=true",
        "impl=local,pp=2,vpp=2,layers=4,microbatches=4,microbatch_group=2",
        "impl=manual,optimizer=adam,precision=bf16,recompute=selective(core_attn),microbatches=4",
        "impl=transformer_engine,modules=[attn,moe_router,moe_preprocess],dp=2,ep=2,model=moe,"
        "experts=4,topk=2,dispatch=dropless,dispatcher=alltoall",
        "cp=2,tp=2,sequence_parallel=true,ep=2,model=moe,experts=4,topk=2,dispatch=dropless,"
        "dispatcher=allgather",
        "impl=full_iteration,tp=2,cp=2,sequence_parallel=true,etp=2,model=moe,experts=4,topk=2,"
        "dispatch=drop_and_pad,dispatcher=alltoall,router_aux_loss=true,precision=fp16",
        "impl=local,modules=[attn,mamba],pp=2,layers=4,microbatches=2,model=hybrid,dropout=true",
        "impl=transformer_engine,dp=2,ep=2,model=hybrid,experts=4,topk=2,dispatch=drop_and_pad,"
        "dispatcher=alltoall",
        "impl=transformer_engine,modules=[attn],cp=2,tp=2,sequence_parallel=true,packed=true",
        "impl=local,modules=[mamba],cp=2,tp=2,sequence_parallel=true,model=hybrid,packed=true",
        "packed=true,position_embedding=learned_absolute",
        "impl=manual,tp=2,cp=2,sequence_parallel=true,etp=2,ep=2,model=moe,experts=4,topk=2,"
        "dispatch=drop_and_pad,dispatcher=alltoall,distributed_optimizer=true,clip_grad=true",
        "impl=local,cp=2,dropout=true",
        "impl=callables,cp=2,cp_comm_type=all_gather,tp=2,sequence_parallel=true",
        "impl=full_iteration,pp=2,recompute=full(block,1),microbatches=4",
        "impl=local,pp=2,recompute=selective(core_attn),microbatches=4",
        "impl=transformer_engine,pp=2,dp=2,ep=2,model=moe,experts=4,topk=2,dispatch=drop_and_pad,"
        "dispatcher=alltoall,microbatches=4",
        "impl=manual,recompute=full(uniform,2),dropout=true",
        "impl=local,modules=[moe_router,moe_preprocess],recompute=selective(moe),model=moe,experts="
        "4,topk=2,dispatch=dropless,dispatcher=alltoall",
        "impl=local,recompute=selective(mlp,layernorm)",
        "impl=manual,precision=fp16,clip_grad=true,weight_decay=true",
        "impl=local,dp=2,overlap_grad_reduce=true,nan_check_loss=true",
        "impl=callables,tp=2,fp8_weights=true",
        "impl=transformer_engine,pp=2,vpp=2,layers=4,microbatches=4,fp8_weights=true,first_last_"
        "layers_bf16=true",
        "rng_tracker=plain,dropout=true",
        "impl=local,dp=2,distributed_optimizer=true,optimizer=adam,precision=bf16",
        "impl=callables,schedule=resume,dropout=true",
        "impl=manual,dp=2,distributed_optimizer=true,weight_decay=true",
        "impl=local,dp=2,distributed_optimizer=true,overlap_grad_reduce=true,overlap_param_gather="
        "true",
        "impl=transformer_engine,pp=2,dp=2,microbatches=4,distributed_optimizer=true,tied_"
        "embeddings=true",
        "impl=full_iteration,optimizer_graph=true,schedule=train-eval-train",
        "impl=local,optimizer_graph=true,optimizer=adam",
        "impl=full_iteration,pp=2,microbatches=4,precision=fp16,clip_grad=true",
        "impl=local,pp=2,microbatches=2,nan_check_loss=true,nan_check_grad=true",
        "impl=transformer_engine,dp=2,distributed_optimizer=true,overlap_grad_reduce=true",
        "impl=manual,dp=2,ep=2,model=moe,experts=4,topk=2,dispatch=drop_and_pad,dispatcher="
        "alltoall,shared_expert=true",
        "impl=full_iteration,dp=2,ep=2,model=moe,experts=4,topk=2,dispatch=drop_and_pad,dispatcher="
        "alltoall,precision=bf16,overlap_ep_comm=true,delay_wgrad=true",
        "impl=manual,dp=2,ep=2,model=moe,experts=4,topk=2,dispatch=drop_and_pad,dispatcher="
        "alltoall,precision=bf16,overlap_ep_comm=true"})
    EXPECT_TRUE(missing(name).empty()) << name;
}

TEST_F(CapabilitiesTest, ComputeSanitizerNeedsAGpuOneRankAndAProgramThatIsNewEnough) {
  const auto on_cuda = [&](const std::string& name, const std::string& version) {
    Machine machine{.device = "cuda"};
    if (!version.empty()) machine.stack["compute_sanitizer"] = version;
    return catalogue_.capabilities.missing(case_from_name(catalogue_.axes, name, ""), machine);
  };
  EXPECT_EQ(missing("sanitizer=memcheck"),
            std::vector<std::string>{
                "device=sim, sanitizer=memcheck: the simulated device computes on the host, and "
                "compute-sanitizer sees only what runs on a GPU"});
  for (const char* tool : {"memcheck", "racecheck", "initcheck", "synccheck"})
    EXPECT_TRUE(on_cuda("impl=manual,sanitizer=" + std::string(tool), "2025.3.1.0").empty());
  EXPECT_TRUE(on_cuda("impl=manual", "none").empty()) << "a case without it";
  for (const char* version : {"2021.3", "none", ""}) {
    const auto lacking = on_cuda("sanitizer=memcheck", version);
    ASSERT_EQ(lacking.size(), 1u) << version;
    EXPECT_NE(lacking[0].find("2022.4) or newer is not in PATH"), std::string::npos) << lacking[0];
  }
  for (const char* other : {"tp=2", "dp=2", "allocator=expandable", "soak_steps=400",
                            "memory_limit=graph_peak <= 2.0 * eager_peak"})
    EXPECT_EQ(on_cuda("impl=manual,sanitizer=memcheck," + std::string(other), "2025.3.1.0").size(),
              1u)
        << other;
}

TEST_F(CapabilitiesTest, APartThatOneDeviceLacksIsMissingOnlyThere) {
  EXPECT_EQ(missing("nccl_algo=Ring").size(), 1u);
  EXPECT_TRUE(missing("nccl_algo=Ring", "cuda").empty());
  EXPECT_EQ(missing("allocator=expandable").size(), 1u);
  EXPECT_TRUE(missing("allocator=expandable", "cuda").empty());
  for (const char* name :
       {"impl=none,tp=2,comm=c10d",
        "impl=full_iteration,dp=2,comm=c10d,overlap_grad_reduce=true,warmup_steps=11,steps=14",
        "impl=local,pp=2,comm=c10d,microbatches=4",
        "impl=transformer_engine,modules=[attn],cp=2,comm=c10d",
        "impl=manual,dp=2,ep=2,comm=c10d,model=moe,experts=4,topk=2,dispatch=drop_and_pad,"
        "dispatcher=alltoall",
        "impl=local,dp=2,comm=c10d,precision=bf16,distributed_optimizer=true,overlap_grad_reduce="
        "true"})
    EXPECT_TRUE(missing(name, "cuda").empty()) << name;
  EXPECT_EQ(missing("dp=2,comm=c10d,precision=bf16,overlap_grad_reduce=true", "cuda"),
            std::vector<std::string>{
                "comm=c10d, overlap_grad_reduce=true, distributed_optimizer=false, "
                "precision=bf16, experts=0, pp=1, grad_accumulation_fusion=false: "
                "PyTorch's DDP reducer expects one backward pass in each step that produces every "
                "gradient, with the type of its parameter and reduced over one group"});
}

}  // namespace
}  // namespace graphproof::matrix
