// The reduction of the ranks' gradients to those of the global batch, with and without overlap, and
// the optimizer after it. Started by mpirun with several ranks; each test runs on every layout that
// fits.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "fixtures/comm/collectives.h"
#include "fixtures/device/error.h"
#include "workloads/faults/plant.h"
#include "workloads/testing/ranks_under_test.h"
#include "workloads/testing/spread.h"
#include "workloads/testing/twin_steps.h"
#include "workloads/training/gradient_clip.h"

namespace graphproof::engines::reduction_test {
namespace {

using fixtures::Fault;

using workloads::Layout;
using workloads::ModelConfig;
using workloads::on_host;

/// For spread().
const auto kDataParallelLayouts = [](const auto&, auto visit) {
  ranks->for_each_layout([&](const Layout& layout) {
    if (layout.dp > 1) visit(layout);
  });
};

/// A training step on its own stream, after some updates.
struct StepAfterUpdates {
  StepAfterUpdates(const ModelConfig& config, const Layout& layout, Fault fault = Fault::none,
                   std::int64_t steps = 2)
      : stream(workloads::device_under_test().stream_from_pool()),
        guard(stream),
        step(config, layout, workloads::device_under_test(), 1, faults::plant(fault)) {
    step.learning_rate(0.1);
    for (std::int64_t i = 0; i < steps; ++i) {
      step.forward_backward(
          make_batch(config, layout, 1, i, workloads::device_under_test().torch_device()));
      step.optimizer_step();
    }
  }
  float state(const std::string& name) {
    for (const auto& tensor : step.optimizer_state())
      if (tensor.name == name) return on_host(tensor.tensor)[0];
    ADD_FAILURE() << "no " << name;
    return 0;
  }
  c10::Stream stream;
  c10::StreamGuard guard;
  workloads::TrainStep step;
};

TEST(GradientReduction, OverlappedInBucketsHasTheBitsOfOneReductionAfterBackward) {
  for (const ModelConfig& config :
       {ModelConfig{.seq_length = 8, .microbatches = 2, .linear_bias = true},
        ModelConfig{.seq_length = 8, .microbatches = 1, .tied_embeddings = true},
        ModelConfig{.seq_length = 8, .microbatches = 2, .grad_accumulation_fusion = true}})
    ranks->for_each_layout([&](const Layout& layout) {
      StepAfterUpdates after(config, layout);
      ModelConfig overlapped = config;
      overlapped.overlap_grad_reduce = true;
      StepAfterUpdates overlapped_step(overlapped, layout);
      for (std::size_t i = 0; i < after.step.gradients().size(); ++i) {
        EXPECT_EQ(on_host(overlapped_step.step.gradients()[i].tensor),
                  on_host(after.step.gradients()[i].tensor))
            << after.step.gradients()[i].name;
        EXPECT_EQ(on_host(overlapped_step.step.parameters()[i].tensor),
                  on_host(after.step.parameters()[i].tensor));
      }
      EXPECT_FALSE(after.step.reduction().overlapped());
      EXPECT_EQ(overlapped_step.step.reduction().overlapped(),
                static_cast<std::int64_t>(overlapped_step.step.reduction().buckets()));
    });
}

/// `layout` with axis placement per_rank.
Layout placed_per_rank(Layout layout) {
  const int rank = layout.dp_rank * layout.tp + layout.tp_rank;
  layout.placement = rank % 2 == 0 ? workloads::BufferPlacement::at_border
                                   : workloads::BufferPlacement::across_border;
  return layout;
}

TEST(GradientReduction, HasTheSameBitsWhereverBuffersLieAndReplaysThemThere) {
  for (const char* impl : {"manual", "full_iteration", "local", "transformer_engine"})
    for (const bool distributed : {false, true})
      ranks->for_each_layout([&](const Layout& layout) {
        if (distributed && layout.dp == 1) return;
        SCOPED_TRACE(std::string(impl) + (distributed ? ", distributed optimizer" : ""));
        const ModelConfig config{.hidden = 32,
                                 .ffn = 64,
                                 .seq_length = 8,
                                 .microbatches = 2,
                                 .distributed_optimizer = distributed};
        const Layout placed = placed_per_rank(layout);
        const bool odd = placed.placement == workloads::BufferPlacement::across_border;
        TwinSteps twins(config, placed, {.impl = impl, .warmup_steps = 2});
        TwinSteps elsewhere(config, layout, {.impl = impl, .warmup_steps = 2});
        for (std::int64_t i = 0; i < 4; ++i) {
          EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
          EXPECT_EQ(difference(elsewhere.step(i)), "") << "step " << i;
        }
        EXPECT_EQ(difference(fixtures::compare(elsewhere.graph->outputs(), twins.graph->outputs())),
                  "");
        const auto& buffers = twins.graph_step().placed_buffers();
        EXPECT_EQ(buffers.size(), distributed ? 2u : 1u);
        for (const auto& buffer : buffers) EXPECT_EQ(buffer.place.offset > 0, odd);
        EXPECT_TRUE(elsewhere.graph_step().placed_buffers().empty());
        EXPECT_EQ(twins.witness.reports.front().pool_offset, odd ? 3 * 512 : 512);
        EXPECT_EQ(elsewhere.witness.reports.front().pool_offset, std::nullopt);
        EXPECT_TRUE(twins.witness.moved_tensors.empty());
        twins.graph->drop_graphs();
        elsewhere.graph->drop_graphs();
      });
}

TEST(GradientReduction, M413ReducesOtherMemoryThanTheGradientsOfOddRanks) {
  ranks->for_each_layout([&](const Layout& layout) {
    if (layout.tp > 1 || layout.dp == 1) return;
    const ModelConfig config{.hidden = 32, .ffn = 64, .seq_length = 8, .microbatches = 2};
    for (const bool moved : {false, true}) {
      const Layout placed = moved ? placed_per_rank(layout) : layout;
      TwinSteps twins(config, placed, {.impl = "full_iteration", .warmup_steps = 2},
                      Fault::gradients_reduced_at_one_offset);
      std::vector<bool> equal;
      for (std::int64_t i = 0; i < 4; ++i) equal.push_back(twins.step(i).equal);
      EXPECT_EQ(equal, (std::vector<bool>{true, true, !moved, !moved}));
      twins.graph->drop_graphs();
    }
  });
}

TEST(GradientReduction, M414PlacesTheBuffersOfAllRanksAlike) {
  ranks->for_each_layout([&](const Layout& layout) {
    const ModelConfig config{.hidden = 32, .ffn = 64, .seq_length = 8, .microbatches = 2};
    StepAfterUpdates ran(config, placed_per_rank(layout), Fault::buffers_placed_alike);
    EXPECT_EQ(ran.step.placed_buffers().at(0).place.offset, 0);
  });
}

TEST(GradientReduction, TheHostChecksGradientsThatNoReductionWrites) {
  for (const bool overlapped : {false, true})
    for (const bool distributed : {false, true})
      ranks->for_each_layout([&](const Layout& layout) {
        workloads::device_under_test().synchronize();
        (void)workloads::device_under_test().take_races();
        StepAfterUpdates ran({.seq_length = 8,
                              .microbatches = 2,
                              .nan_check_grad = true,
                              .overlap_grad_reduce = overlapped,
                              .distributed_optimizer = distributed},
                             layout, Fault::none, 3);
        EXPECT_EQ(ran.step.host_checks().gradients_checked(), 3) << "every element in each step";
        EXPECT_EQ(workloads::device_under_test().take_races().value_or(capture::Races{}).count, 0);
      });
}

TEST(GradientReduction, OnPipelineStagesHasTheSameBitsOverlappedAndWithTheDistributedOptimizer) {
  for (const int vpp : {1, 2})
    ranks->for_each_pipeline_layout(vpp, [&](const Layout& layout) {
      if (layout.dp == 1) return;
      const ModelConfig config{.layers = 4,
                               .hidden = 32,
                               .ffn = 64,
                               .seq_length = 8,
                               .microbatches = 4,
                               .tied_embeddings = vpp == 1};
      ModelConfig overlapped = config;
      overlapped.overlap_grad_reduce = true;
      ModelConfig split = overlapped;
      split.distributed_optimizer = split.overlap_param_gather = true;
      StepAfterUpdates after(config, layout), overlapped_step(overlapped, layout),
          own(split, layout);
      own.step.gather_gradients();
      for (std::size_t i = 0; i < after.step.gradients().size(); ++i) {
        const auto want = on_host(after.step.gradients()[i].tensor);
        EXPECT_EQ(on_host(overlapped_step.step.gradients()[i].tensor), want)
            << after.step.gradients()[i].name;
        EXPECT_EQ(on_host(own.step.gradients()[i].tensor), want) << after.step.gradients()[i].name;
      }
    });
}

TEST(GradientReduction, OverlappedIsReplayedBitForBitUnderEveryEngine) {
  const ModelConfig config{.seq_length = 8,
                           .microbatches = 2,
                           .dropout = 0.1,
                           .overlap_grad_reduce = true,
                           .grad_accumulation_fusion = true};
  const std::vector<EngineConfig> engines = {
      {.impl = "manual", .warmup_steps = 1},
      {.impl = "full_iteration", .warmup_steps = 1},
      {.impl = "local", .warmup_steps = 1},
      {.impl = "local", .modules = {workloads::ModuleKind::attn}, .warmup_steps = 1},
      {.impl = "transformer_engine", .warmup_steps = 1},
      {.impl = "callables", .modules = {workloads::ModuleKind::mlp}, .warmup_steps = 1}};
  spread(engines, kDataParallelLayouts, [&](const EngineConfig& engine, const Layout& layout) {
    TwinSteps twins(config, layout, engine);
    for (std::int64_t i = 0; i < 3; ++i)
      EXPECT_EQ(difference(twins.step(i)), "") << engine.impl << " step " << i;
    EXPECT_EQ(twins.witness.canaries, 0) << engine.impl;
    twins.graph->drop_graphs();
  });
}

TEST(GradientReduction, FaultM11LeavesTheSideStreamUnjoinedAndTheCaptureIsRefused) {
  ranks->for_each_layout([&](const Layout& layout) {
    if (layout.dp == 1) return;
    TwinSteps twins({.microbatches = 1, .overlap_grad_reduce = true}, layout,
                    {.impl = "full_iteration", .warmup_steps = 1},
                    Fault::gradient_stream_not_joined);
    twins.step(0);
    try {
      twins.graph->step(twins.batch(1), 0.1);
      ADD_FAILURE() << "captured";
    } catch (const capture::DeviceError& error) {
      EXPECT_EQ(error.code, 904) << error.what();
    }
  });
}

// ---- the distributed optimizer

ModelConfig distributed_optimizer(ModelConfig config) {
  config.distributed_optimizer = true;
  return config;
}
ModelConfig distributed(ModelConfig config) {
  config.seq_length = 8;
  return distributed_optimizer(std::move(config));
}

std::vector<ModelConfig> distributed_models() {
  using workloads::OptimizerKind;
  using workloads::Precision;
  return {distributed({.microbatches = 2}),
          distributed(
              {.microbatches = 1, .optimizer = OptimizerKind::adam, .overlap_grad_reduce = true}),
          distributed({.microbatches = 1,
                       .precision = Precision::bf16,
                       .optimizer = OptimizerKind::adam,
                       .weight_decay = true}),
          distributed({.microbatches = 1,
                       .precision = Precision::fp16,
                       .loss_scaling = workloads::LossScaling::static_,
                       .overlap_grad_reduce = true,
                       .overlap_param_gather = true})};
}

/// Compares the gradients that both used in their last step, and the gathered parameters.
void expect_equal_bits(StepAfterUpdates& split, StepAfterUpdates& whole, bool gathered) {
  split.step.gather_gradients();
  for (std::size_t i = 0; i < whole.step.gradients().size(); ++i) {
    EXPECT_EQ(on_host(split.step.gradients()[i].tensor), on_host(whole.step.gradients()[i].tensor))
        << whole.step.gradients()[i].name;
    if (gathered) {
      EXPECT_EQ(on_host(split.step.parameters()[i].tensor),
                on_host(whole.step.parameters()[i].tensor))
          << whole.step.parameters()[i].name;
    }
  }
}

TEST(DistributedOptimizer, TrainsWithTheBitsOfTheWholeOneAndKeepsItsShareOfTheState) {
  const auto elements = [](const StepAfterUpdates& ran) {
    std::int64_t sum = 0;
    for (const auto& updated : ran.step.updated()) sum += updated.moved.tensor.numel();
    return sum;
  };
  for (const ModelConfig& config : distributed_models())
    ranks->for_each_layout([&](const Layout& layout) {
      ModelConfig plain = config;
      plain.distributed_optimizer = plain.overlap_param_gather = false;
      StepAfterUpdates whole(plain, layout), split(config, layout);
      expect_equal_bits(split, whole, /*gathered=*/!config.overlap_param_gather);
      at::Tensor own = at::full({1}, elements(split), at::kLong);
      EXPECT_EQ(on_host(comm::all_reduce_(own.to(at::kDouble), layout.dp_group))[0],
                elements(whole))
          << "every element has one owner";
      if (layout.dp > 1) {
        EXPECT_LE(elements(split), elements(whole) / layout.dp +
                                       workloads::ParameterBuffer::kAlignmentElements * 64);
      }
    });
}

TEST(DistributedOptimizer, OfExpertsSplitsThemAmongTheRanksThatHoldThem) {
  const ModelConfig config = distributed(
      {.microbatches = 1, .experts = 4, .topk = 2, .optimizer = workloads::OptimizerKind::adam});
  ranks->for_each_expert_layout([&](const Layout& layout) {
    ModelConfig plain = config;
    plain.distributed_optimizer = false;
    StepAfterUpdates whole(plain, layout), split(config, layout);
    expect_equal_bits(split, whole, /*gathered=*/true);
  });
}

TEST(DistributedOptimizer,
     OfExpertsThatTensorAndContextParallelRanksCutOrCopyHasTheBitsOfTheWholeOne) {
  ModelConfig config = distributed(
      {.microbatches = 1, .experts = 4, .topk = 2, .optimizer = workloads::OptimizerKind::adam});
  config.clip_grad = true;
  ranks->for_each_split_expert_layout([&](const Layout& layout, const std::string& name) {
    if (layout.replicas() == 1) return;
    SCOPED_TRACE(name);
    ModelConfig plain = config;
    plain.clip_grad = plain.distributed_optimizer = false;
    ModelConfig unclipped = config;
    unclipped.clip_grad = false;
    StepAfterUpdates whole(plain, layout), split(unclipped, layout);
    expect_equal_bits(split, whole, /*gathered=*/true);
    plain.clip_grad = true;
    StepAfterUpdates clipped(plain, layout, Fault::none, 1),
        split_clipped(config, layout, Fault::none, 1);
    // Squares are summed in another order, in fp64.
    EXPECT_NEAR(split_clipped.state("state:clip.norm"), clipped.state("state:clip.norm"),
                1e-6 * clipped.state("state:clip.norm"));
  });
}

TEST(DistributedOptimizer, IsReplayedBitForBitUnderEveryEngine) {
  struct Row {
    const char* impl;
    bool gathered_late;
  };
  const std::vector<Row> rows = {{"manual", false},  {"local", false},
                                 {"manual", true},   {"full_iteration", true},
                                 {"local", true},    {"transformer_engine", true},
                                 {"callables", true}};
  spread(rows, kDataParallelLayouts, [&](const Row& row, const Layout& layout) {
    ModelConfig config = distributed({.microbatches = 1,
                                      .optimizer = workloads::OptimizerKind::adam,
                                      .overlap_grad_reduce = true});
    config.overlap_param_gather = row.gathered_late;
    TwinSteps twins(config, layout, {.impl = row.impl, .warmup_steps = 1});
    for (std::int64_t i = 0; i < 3; ++i)
      EXPECT_EQ(difference(twins.step(i)), "") << row.impl << " step " << i;
    EXPECT_EQ(twins.witness.canaries, 0) << row.impl;
    EXPECT_TRUE(twins.witness.moved_tensors.empty()) << row.impl;
    twins.graph->drop_graphs();
  });
}

TEST(DistributedOptimizer, FaultM92LeavesOldParametersOfOtherRanks) {
  const ModelConfig config = distributed({.microbatches = 1});
  ranks->for_each_layout([&](const Layout& layout) {
    if (layout.dp == 1) return;
    StepAfterUpdates sound(config, layout), faulty(config, layout, Fault::last_bucket_not_gathered);
    bool differs = false;
    for (std::size_t i = 0; i < sound.step.parameters().size(); ++i)
      differs |=
          on_host(sound.step.parameters()[i].tensor) != on_host(faulty.step.parameters()[i].tensor);
    EXPECT_TRUE(differs);
  });
}

TEST(DistributedOptimizer, FaultM93ReplaysWithTheParametersOfTheCapture) {
  ModelConfig config = distributed({.microbatches = 1, .overlap_grad_reduce = true});
  config.overlap_param_gather = true;
  ranks->for_each_layout([&](const Layout& layout) {
    if (layout.dp == 1) return;
    TwinSteps twins(config, layout, {.impl = "local", .warmup_steps = 1},
                    Fault::gather_hooks_not_called);
    EXPECT_TRUE(twins.step(0).equal) << "recorded, not replayed";
    EXPECT_FALSE(twins.step(1).equal);
    twins.graph->drop_graphs();
  });
}

TEST(GradientClip, NormIsThatOfTheSingleRankModelInEveryLayout) {
  const ModelConfig config{
      .microbatches = 2, .qkv_bias = true, .linear_bias = true, .clip_grad = true};
  ranks->for_each_layout([&](const Layout& layout) {
    ModelConfig all = config;
    all.microbatches *= layout.dp;
    StepAfterUpdates parallel(config, layout), single(all, {}),
        faulty(config, layout, Fault::clip_norm_counts_replicas),
        split(distributed_optimizer(config), layout);
    const double norm = single.state("state:clip.norm");
    EXPECT_GT(norm, workloads::kLargestGradientNorm) << "nothing would be clipped";
    // Its operands are reordered fp32 sums; the norm itself is summed in fp64.
    EXPECT_NEAR(parallel.state("state:clip.norm"), norm, 1e-4 * norm);
    EXPECT_NEAR(split.state("state:clip.norm"), norm, 1e-4 * norm)
        << "of parts that other ranks own";
    EXPECT_EQ(std::abs(faulty.state("state:clip.norm") - norm) > 1e-3 * norm, layout.tp > 1)
        << Fault::clip_norm_counts_replicas;
  });
}

ModelConfig of_all_stages(const ModelConfig& config, const Layout& layout) {
  ModelConfig all = config;
  all.microbatches *= layout.dp;
  return all;
}

TEST(GradientClip, NormIsThatOfAllStagesOfAPipelineAndM110ThatOfEach) {
  for (const bool tied : {false, true}) {
    const ModelConfig config{.layers = 4,
                             .hidden = 32,
                             .ffn = 64,
                             .seq_length = 8,
                             .microbatches = 2,
                             .tied_embeddings = tied,
                             .clip_grad = true};
    ranks->for_each_pipeline_layout(/*vpp=*/1, [&](const Layout& layout) {
      StepAfterUpdates parallel(config, layout), single(of_all_stages(config, layout), {}),
          faulty(config, layout, Fault::clip_by_norm_of_one_stage);
      const double norm = single.state("state:clip.norm");
      EXPECT_GT(norm, workloads::kLargestGradientNorm) << "nothing would be clipped";
      EXPECT_NEAR(parallel.state("state:clip.norm"), norm, 1e-4 * norm) << "tied " << tied;
      EXPECT_LT(faulty.state("state:clip.norm"), norm * (1 - 1e-3))
          << Fault::clip_by_norm_of_one_stage;
    });
  }
}

TEST(LossScale, IsTheSameOnEveryStageOfAPipelineUnderEveryEngine) {
  const ModelConfig config{.layers = 4,
                           .hidden = 32,
                           .ffn = 64,
                           .seq_length = 8,
                           .microbatches = 2,
                           .precision = workloads::Precision::fp16,
                           .clip_grad = true};
  constexpr std::int64_t kSteps = 5;  // some skipped and some taken
  const auto stages = [](const auto&, auto visit) {
    ranks->for_each_pipeline_layout(/*vpp=*/1, [&](const Layout& layout) {
      if (layout.tp == 1) visit(layout);
    });
  };
  spread(std::vector{"manual", "local", "transformer_engine"}, stages,
         [&](const char* impl, const Layout& layout) {
           TwinSteps twins(config, layout, {.impl = impl, .warmup_steps = 1});
           for (std::int64_t i = 0; i < kSteps; ++i)
             EXPECT_EQ(difference(twins.step(i)), "") << impl << " step " << i;
           twins.graph->drop_graphs();
           std::map<std::string, at::Tensor> state;
           for (const auto& tensor : twins.graph_step().optimizer_state())
             state[tensor.name] = tensor.tensor;
           EXPECT_GT(on_host(state.at("state:loss_scale.skipped"))[0], 0)
               << "the first steps overflow on purpose";
           const auto scales = on_host(
               comm::all_gather(state.at("state:loss_scale.scale").view({1}), layout.pp_group));
           for (const float scale : scales) EXPECT_EQ(scale, scales[0]) << impl;
         });
}

TEST(LossScale, IsTheSameOnEveryRankAndM96MakesItDiffer) {
  const ModelConfig config{
      .seq_length = 8, .microbatches = 1, .precision = workloads::Precision::fp16};
  ranks->for_each_layout([&](const Layout& layout) {
    for (const Fault fault : {Fault::none, Fault::skip_decided_by_one_rank}) {
      constexpr std::int64_t kSteps = 5;  // some skipped and some taken
      StepAfterUpdates ran(config, layout, fault, kSteps);
      const at::Tensor mine = at::full({1}, ran.state("state:loss_scale.scale"));
      const auto scales = on_host(comm::all_gather(mine, layout.tp_group));
      for (std::size_t peer = 1; peer < scales.size(); ++peer)
        EXPECT_EQ(scales[peer] == scales[0], fault == Fault::none) << fault;
      EXPECT_GT(ran.state("state:loss_scale.skipped"), 0) << "the first steps overflow on purpose";
    }
  });
}

}  // namespace
}  // namespace graphproof::engines::reduction_test
