// Tensor and data parallel layouts. Started by mpirun with several ranks; each test runs on every
// (tp, dp) that fits.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include "fixtures/comm/collectives.h"
#include "workloads/faults/stall.h"
#include "workloads/testing/ranks_under_test.h"
#include "workloads/testing/small_model.h"
#include "workloads/testing/spread.h"
#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::parallel_test {
namespace {

using fixtures::Fault;

using workloads::Layout;
using workloads::ModelConfig;

/// For spread().
const auto kLayouts = [](const auto&, auto visit) { ranks->for_each_layout(visit); };

ModelConfig model(double dropout) {
  ModelConfig config;
  config.microbatches = 2;
  config.qkv_bias = config.linear_bias = true;
  config.dropout = dropout;
  return config;
}

// The part of the single-rank gradient that this rank holds. The dimension that is shorter here is
// the split one.
at::Tensor own_part(const at::Tensor& full, const at::Tensor& mine, const Layout& layout) {
  for (std::int64_t d = 0; d < full.dim(); ++d)
    if (full.size(d) != mine.size(d))
      return full.narrow(d, mine.size(d) * layout.tp_rank, mine.size(d));
  return full;
}

TEST(Parallel, LossesAndGradientsEqualTheSingleRankModel) {
  ranks->for_each_layout([](const Layout& layout) {
    auto& device = workloads::device_under_test();
    const c10::Stream stream = device.stream_from_pool();
    const c10::StreamGuard guard(stream);
    const ModelConfig config = model(0);
    workloads::TrainStep step(config, layout, device, 1, {});
    step.forward_backward(make_batch(config, layout, 1, 0, device.torch_device()));

    ModelConfig whole = config;
    whole.microbatches *= layout.dp;
    workloads::TrainStep reference(whole, {}, device, 1, {});
    reference.forward_backward(make_batch(whole, {}, 1, 0, device.torch_device()));

    // Reordered fp32 sums: a sum of n terms is off by at most n * 2^-24 of the sum of their sizes
    // (Higham 2002, 4.2). n is at most 256 here (the MLP's inner size), and 4 products a layer and
    // 2 more are chained forward and backward.
    const double bound =
        256 * std::pow(2.0, -24) * 2 * (4.0 * static_cast<double>(config.layers) + 2);
    const auto losses = workloads::on_host(step.losses()),
               expected = workloads::on_host(reference.losses());
    for (std::int64_t m = 0; m < config.microbatches; ++m) {
      const float want = expected[layout.dp_rank * config.microbatches + m];
      EXPECT_NEAR(losses[m], want, bound * want) << "microbatch " << m;
    }
    const auto mine = step.gradients(), full = reference.gradients();
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const auto got = workloads::on_host(mine[i].tensor);
      const auto want = workloads::on_host(own_part(full[i].tensor, mine[i].tensor, layout));
      ASSERT_EQ(got.size(), want.size()) << mine[i].name;
      double largest = 0, difference = 0;
      for (std::size_t e = 0; e < want.size(); ++e) {
        largest = std::max<double>(largest, std::abs(want[e]));
        difference = std::max<double>(difference, std::abs(got[e] - want[e]));
      }
      EXPECT_LE(difference, bound * largest) << mine[i].name;
      EXPECT_GT(largest, 0) << mine[i].name;
    }
  });
}

TEST(Parallel, ReplayEqualsEagerBitForBitWithDropout) {
  spread(std::vector{"manual", "full_iteration", "local", "transformer_engine"}, kLayouts,
         [&](const char* impl, const Layout& layout) {
           TwinSteps twins(small(model(0.1)), layout, {.impl = impl, .warmup_steps = 1});
           for (std::int64_t i = 0; i < 3; ++i)
             EXPECT_EQ(difference(twins.step(i)), "") << impl << " step " << i;
           EXPECT_EQ(twins.graph->counters().replays, 2 * twins.graph->counters().launches_per_step)
               << impl;
           EXPECT_EQ(twins.witness.canaries, 0) << impl;
           twins.graph->drop_graphs();
         });
}

TEST(Parallel, TensorParallelRanksShareMasksOutsideTheirRegionAndDrawTheirOwnInside) {
  ranks->for_each_layout([](const Layout& layout) {
    auto& device = workloads::device_under_test();
    const c10::Stream stream = device.stream_from_pool();
    const c10::StreamGuard guard(stream);
    const ModelConfig config = model(0.1);
    workloads::TrainStep step(config, layout, device, 1, {});
    step.forward_backward(make_batch(config, layout, 1, 0, device.torch_device()));
    for (const auto& [name, mask] : step.masks()) {
      const at::Tensor all = comm::all_gather(mask.unsqueeze(0), layout.tp_group);
      for (int peer = 1; peer < layout.tp; ++peer) {
        const bool alike =
            workloads::on_host(all.select(0, 0)) == workloads::on_host(all.select(0, peer));
        EXPECT_EQ(alike, name.find("core_attention") == std::string::npos)
            << name << " of rank 0 and " << peer;
      }
    }
  });
}

TEST(Parallel, LocalGraphsOfSingleModulesEqualEagerOnEveryLayout) {
  using workloads::ModuleKind;
  const std::vector<std::vector<ModuleKind>> cuts = {
      {ModuleKind::attn}, {ModuleKind::mlp}, {ModuleKind::attn, ModuleKind::mlp}};
  spread(cuts, kLayouts, [&](const std::vector<ModuleKind>& modules, const Layout& layout) {
    TwinSteps twins(small(model(0.1)), layout,
                    {.impl = "local", .modules = modules, .warmup_steps = 1});
    for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
    twins.graph->drop_graphs();
  });
}

TEST(Parallel, FaultM56RunsOneRankEagerlyWhileItsPeersReplay) {
  ranks->for_each_layout([&](const Layout& layout) {
    TwinSteps twins(model(0), layout, {.impl = "local", .warmup_steps = 1},
                    Fault::one_rank_runs_eagerly);
    for (std::int64_t i = 0; i < 4; ++i)
      EXPECT_EQ(difference(twins.step(i)), "") << "the collectives still pair";
    const Counters counters = twins.graph->counters();
    const bool falls_back = layout.tp > 1 ? layout.tp_rank == 1 : layout.dp_rank == 1;
    EXPECT_EQ(counters.fallbacks, falls_back ? 2 : 0);
    EXPECT_EQ(counters.replays, (falls_back ? 1 : 3) * counters.launches_per_step);
    twins.graph->drop_graphs();
  });
}

TEST(Parallel, FaultM61KeepsTensorParallelRankOneFromItsSecondReplay) {
  using Clock = std::chrono::steady_clock;
  constexpr double kStall_ms = 300;
  ranks->for_each_layout([&](const Layout& layout) {
    TwinSteps twins(model(0), layout, {.impl = "full_iteration", .warmup_steps = 1},
                    faults::stalling_rank(std::chrono::milliseconds(300)));
    std::vector<double> replay_ms;
    for (std::int64_t i = 0; i < 4; ++i) {
      const auto batch =
          workloads::make_batch(model(0), layout, 1, i, twins.device().torch_device());
      const auto begin = Clock::now();
      twins.graph->step(batch, 0.1);
      twins.device().synchronize();
      replay_ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    }
    // Step 1 captures and has the first replay. There is only a lower limit, because the time of
    // the other steps does not depend on the fault.
    if (layout.tp_rank == 1) {
      EXPECT_GE(replay_ms[2], kStall_ms);
    }
    EXPECT_EQ(twins.graph->counters().replays, 3)
        << "the stall is bounded, and the other ranks replay as often";
    twins.graph->drop_graphs();
  });
}

}  // namespace
}  // namespace graphproof::engines::parallel_test
