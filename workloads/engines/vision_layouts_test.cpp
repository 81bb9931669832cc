// A vision encoder in front of sequences that ranks share. Started by mpirun with several ranks;
// each test runs on every layout that fits.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "workloads/testing/ranks_under_test.h"
#include "workloads/testing/spread.h"
#include "workloads/testing/step_after_backward.h"
#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::vision_layouts_test {
namespace {

using fixtures::Fault;
using workloads::Layout;
using workloads::ModelConfig;
using workloads::on_host;

/// With eight chunks of two tokens for four context parallel ranks.
ModelConfig model() {
  return {.hidden = 32,
          .ffn = 64,
          .vocab = 32,
          .seq_length = 16,
          .microbatches = 2,
          .encoder_layers = 2,
          .images = 2,
          .image_counts = workloads::ImageCounts::variable};
}

/// The largest distance of a gradient to the single rank's, and that of a loss, which is relative.
struct Distances {
  double gradients = 0, losses = 0;
};
Distances distances(const ModelConfig& config, const Layout& layout, Fault fault = Fault::none) {
  ModelConfig all = config;
  all.microbatches *= layout.dp;
  StepAfterBackward parallel(config, layout, fault), single(all, {});
  Distances found;
  if (layout.last_stage()) {
    const auto losses = on_host(parallel.step.losses()), expected = on_host(single.step.losses());
    for (std::int64_t m = 0; m < config.microbatches; ++m) {
      const double want =
          expected[static_cast<std::size_t>(layout.dp_rank * config.microbatches + m)];
      found.losses = std::max(
          found.losses, std::abs(losses[static_cast<std::size_t>(m)] - want) / std::abs(want));
    }
  }
  const auto mine = parallel.step.gradients();
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const at::Tensor full = parallel.step.shards()[i].of(single.gradient(mine[i].name));
    found.gradients = std::max(found.gradients, distance(on_host(mine[i].tensor), on_host(full)));
  }
  return found;
}

/// Reordered fp32 sums: a sum of n terms is off by at most n * 2^-24 of the sum of their sizes
/// (Higham 2002, 4.2). n is at most 64 here; six products, three norms and the halves of a softmax
/// that is put together from those of the ranks for each of four layers, and 7 sums at the ends are
/// chained forward and backward.
const double kBound = 64 * std::pow(2.0, -24) * 2 * (11.0 * 4 + 7);

/// Calls `body` for each layout in which ranks share sequences.
template <class Body>
void for_each_shared_layout(Body body) {
  ranks->for_each_sequence_parallel_layout(body);
  ranks->for_each_context_parallel_layout(
      [&](const Layout& layout, const std::string&) { body(layout); });
}

TEST(VisionOnRanks, LossesAndGradientsEqualTheSingleRankModel) {
  for (const bool frozen : {false, true})
    for_each_shared_layout([&](const Layout& layout) {
      ModelConfig config = model();
      config.freeze_vision_model = frozen;
      const Distances found = distances(config, layout);
      EXPECT_LE(found.gradients, kBound);
      EXPECT_LE(found.losses, kBound);
    });
}

TEST(VisionOnRanks, ReplaysEqualEagerBitForBit) {
  const auto replays = [](const char* impl, const Layout& layout) {
    TwinSteps twins(model(), layout, {.impl = impl, .warmup_steps = 1});
    for (std::int64_t i = 0; i < 3; ++i)
      EXPECT_EQ(difference(twins.step(i)), "") << impl << " step " << i;
    EXPECT_EQ(twins.witness.canaries, 0) << impl;
    twins.graph->drop_graphs();
  };
  const std::vector impls{"full_iteration", "local", "transformer_engine"};
  for (const char* impl : impls)
    ranks->for_each_sequence_parallel_layout([&](const Layout& layout) { replays(impl, layout); });
  spread(
      impls, [](const auto&, auto visit) { ranks->for_each_context_parallel_layout(visit); },
      [&](const char* impl, const Layout& layout, const std::string&) { replays(impl, layout); });
}

TEST(VisionOnRanks, M503LeavesLossesRightAndGradientsOfTheEncoderIncomplete) {
  ranks->for_each_sequence_parallel_layout([&](const Layout& layout) {
    const Distances found = distances(model(), layout, Fault::image_gradients_not_summed);
    EXPECT_LE(found.losses, kBound);
    EXPECT_GT(found.gradients, 10 * kBound);
  });
}

TEST(VisionOnRanks, M504PutsImageTokensIntoOtherPlaces) {
  // A rank without images has no tokens to put anywhere; with this many, every rank has some.
  ModelConfig config = model();
  config.image_counts = workloads::ImageCounts::fixed;
  for_each_shared_layout([&](const Layout& layout) {
    const Distances found = distances(config, layout, Fault::image_rows_of_other_part);
    EXPECT_GT(found.gradients, 10 * kBound);
  });
}

TEST(VisionOnRanks, M505ChangesReplaysAlone) {
  ranks->for_each_sequence_parallel_layout([&](const Layout& layout) {
    TwinSteps twins(model(), layout, {.impl = "full_iteration", .warmup_steps = 1},
                    Fault::image_rows_by_value);
    EXPECT_TRUE(twins.step(0).equal);
    EXPECT_FALSE(twins.step(1).equal && twins.step(2).equal);
    twins.graph->drop_graphs();
  });
}

}  // namespace
}  // namespace graphproof::engines::vision_layouts_test
