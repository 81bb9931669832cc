#include "workloads/forward/recompute.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "workloads/faults/plant.h"
#include "workloads/testing/device_under_test.h"
#include "workloads/training/train_step.h"

namespace graphproof::workloads::recompute_test {
namespace {

using fixtures::Fault;

ModelConfig model(bool recompute, double dropout) {
  ModelConfig config;
  config.microbatches = 2;
  config.dropout = dropout;
  if (recompute) config.recompute = selective({RecomputedPart::core_attn});
  return config;
}

ModelConfig with_experts() {
  ModelConfig config = model(false, 0);
  config.experts = 4;
  config.topk = 2;
  config.shared_expert = true;
  return config;
}
RecomputeConfig after_router() {
  RecomputeConfig config = selective({RecomputedPart::moe});
  config.after_router = true;
  return config;
}

struct Bench {
  explicit Bench(const ModelConfig& config, Fault fault = Fault::none)
      : device(device_under_test()),
        stream(device.stream_from_pool()),
        guard(stream),
        step(config, {}, device, 3, faults::plant(fault)) {
    run(0);
  }
  void run(std::int64_t index) {
    step.forward_backward(make_batch(step.config(), {}, 3, index, device.torch_device()));
  }
  std::map<std::string, std::vector<float>> masks() {
    std::map<std::string, std::vector<float>> values;
    for (const auto& [name, tensor] : step.masks()) values[name] = on_host(tensor);
    return values;
  }
  std::vector<float> ledger(const std::string& name) {
    for (const auto& tensor : step.ledgers())
      if (tensor.name == name) return on_host(tensor.tensor);
    return {};
  }

  capture::Device& device;
  c10::Stream stream;
  c10::StreamGuard guard;
  TrainStep step;
};

TEST(Recompute, GivesTheGradientsOfTheWorkItself) {
  const at::Tensor x = at::arange(6, at::kDouble).view({2, 3}) / 7,
                   y = at::arange(6, at::kDouble).view({3, 2}) / 5 - 1,
                   z = at::full({2, 2}, 0.25, at::kDouble);
  // The third leaf is a parameter, which the work uses without getting it as an input.
  at::Tensor parameter;
  const RecomputedWork work = [&](const std::vector<at::Tensor>& inputs, bool) {
    return at::softmax(at::mm(inputs[0], inputs[1]), 1) * parameter.exp();
  };
  const auto gradients = [&](bool again) {
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& leaf : {x, y, z}) leaves.push_back(leaf.clone().requires_grad_(true));
    parameter = leaves[2];
    const at::Tensor out = again ? recompute(work, {leaves[0], leaves[1]}, {parameter})
                                 : work({leaves[0], leaves[1]}, false);
    (out * out).sum().backward();
    return std::vector<at::Tensor>{leaves[0].grad(), leaves[1].grad(), leaves[2].grad()};
  };
  const auto kept = gradients(false), again = gradients(true);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(at::equal(kept[i], again[i])) << i;
}

TEST(Recompute, RunsTheWorkOnceForwardAndOnceInBackwardWithItsGraph) {
  std::vector<std::pair<bool, bool>> calls;  // again, whether autograd records
  const RecomputedWork work = [&](const std::vector<at::Tensor>& inputs, bool again) {
    calls.push_back({again, at::GradMode::is_enabled()});
    return inputs[0] * inputs[1] + inputs[2];
  };
  const at::Tensor a = at::ones({2}).requires_grad_(true), b = at::ones({2}),
                   c = at::ones({2}).requires_grad_(true);
  const at::Tensor out = recompute(work, {a, b, c});
  EXPECT_EQ(calls, (std::vector<std::pair<bool, bool>>{{false, false}}));
  out.sum().backward();
  EXPECT_EQ(calls, (std::vector<std::pair<bool, bool>>{{false, false}, {true, true}}));
  EXPECT_FALSE(b.grad().defined()) << "an input that requires no gradient gets none";
}

TEST(Recompute, LeavesAParameterThatTheWorkDoesNotUseWithoutAGradient) {
  const at::Tensor a = at::ones({2}).requires_grad_(true),
                   unused = at::ones({2}).requires_grad_(true);
  recompute([](const std::vector<at::Tensor>& inputs, bool) { return inputs[0] * 2; }, {a},
            {unused})
      .sum()
      .backward();
  EXPECT_FALSE(unused.grad().defined());
  EXPECT_TRUE(at::equal(a.grad(), at::full({2}, 2.0)));
}

TEST(Recompute, OfAnyPartWithoutDropoutChangesNoBitOfTheLoss) {
  const ModelConfig dense = model(false, 0), experts = with_experts();
  ModelConfig dropless = experts;
  dropless.dropless = true;
  ModelConfig gathered = dropless;
  gathered.gather_tokens = true;
  using Method = RecomputeConfig::Method;
  struct Row {
    ModelConfig model;
    RecomputeConfig recompute;
    std::vector<float> counts;  // by part and layer, for two microbatches
  };
  const std::vector<Row> rows{
      {dense, selective({RecomputedPart::mlp}), {2, 2}},
      {dense, selective({RecomputedPart::attention_norm, RecomputedPart::mlp_norm}), {2, 2, 2, 2}},
      {dense, full(Method::uniform, 1), {2, 2}},
      {dense, full(Method::uniform, 2), {2, 2}},
      {dense, full(Method::block, 1), {2}},
      {experts, selective({RecomputedPart::moe_act, RecomputedPart::shared_experts}), {2, 2, 2, 2}},
      {experts, selective({RecomputedPart::moe}), {2, 2}},
      {experts, after_router(), {2, 2}},
      {dropless, after_router(), {2, 2}},
      {gathered, after_router(), {2, 2}}};
  for (const Row& row : rows) {
    ModelConfig config = row.model;
    config.recompute = row.recompute;
    SCOPED_TRACE(name(row.recompute.parts[0]));
    Bench kept(row.model), again(config);
    EXPECT_EQ(on_host(kept.step.losses()), on_host(again.step.losses()));
    EXPECT_EQ(on_host(again.step.recompute_counter()), row.counts);
    EXPECT_EQ(on_host(again.step.layer_counter()), (std::vector<float>{2, 2}))
        << "the layer counter does not count the second run";
    EXPECT_EQ(again.ledger("recompute:first"), again.ledger("recompute:again"));
    for (const float sum : again.ledger("recompute:first"))
      EXPECT_NE(sum, 0) << "every part recorded its sum";
  }
}

TEST(Recompute, OfWholeLayersDrawsEveryMaskAgain) {
  ModelConfig config = model(false, 0.1);
  config.recompute = full(RecomputeConfig::Method::uniform, 2);
  Bench bench(config);
  const auto masks = bench.masks();
  std::size_t repeated = 0;
  for (const auto& [name, mask] : masks) {
    if (name.ends_with("_again")) continue;
    ++repeated;
    EXPECT_EQ(mask, masks.at(name + "_again")) << name;
  }
  EXPECT_EQ(repeated, 2u * 2 * 3);
  config.recompute = full(RecomputeConfig::Method::block, 1);
  EXPECT_EQ(Bench(config).masks().count("mask:0.1.mlp_again"), 0u)
      << "the second layer keeps its activations";
}

TEST(Recompute, FaultM78RecomputesFromTheInputOfALaterLayerWhileTheLossStays) {
  ModelConfig config = model(false, 0);
  config.recompute = full(RecomputeConfig::Method::uniform, 1);
  Bench sound(config), faulty(config, Fault::recompute_input_overwritten);
  EXPECT_EQ(on_host(sound.step.losses()), on_host(faulty.step.losses()));
  EXPECT_NE(on_host(sound.step.gradients()[0].tensor), on_host(faulty.step.gradients()[0].tensor));
  EXPECT_EQ(sound.ledger("recompute:first"), sound.ledger("recompute:again"));
  EXPECT_NE(faulty.ledger("recompute:first"), faulty.ledger("recompute:again"));
}

TEST(Recompute, FaultM164RecomputesOtherTokensAfterTheRouterWhileTheLossStays) {
  ModelConfig config = with_experts();
  config.recompute = after_router();
  Bench sound(config), faulty(config, Fault::recompute_of_other_tokens);
  EXPECT_EQ(on_host(sound.step.losses()), on_host(faulty.step.losses()));
  EXPECT_EQ(sound.ledger("recompute:first"), sound.ledger("recompute:again"));
  EXPECT_NE(faulty.ledger("recompute:first"), faulty.ledger("recompute:again"));
}

void expect_same_bits(Bench& kept, Bench& again) {
  EXPECT_EQ(on_host(kept.step.losses()), on_host(again.step.losses()));
  for (std::size_t i = 0; i < kept.step.gradients().size(); ++i)
    EXPECT_EQ(on_host(kept.step.gradients()[i].tensor), on_host(again.step.gradients()[i].tensor))
        << kept.step.gradients()[i].name;
}

TEST(Recompute, OfCoreAttentionWithoutDropoutChangesNoBit) {
  Bench kept(model(false, 0)), again(model(true, 0));
  expect_same_bits(kept, again);
  EXPECT_TRUE(kept.step.ledgers().empty());
}

TEST(Recompute, OfExpertsAfterTheirRouterChangesNoBitWithDropout) {
  ModelConfig config = with_experts();
  config.dropout = 0.1;
  Bench kept(config);
  config.recompute = after_router();
  Bench again(config);
  expect_same_bits(kept, again);
}

TEST(Recompute, DrawsTheForwardsMasksAgainInEveryStep) {
  Bench bench(model(true, 0.1));
  auto earlier = bench.masks();
  for (std::int64_t step = 1; step < 4; ++step) {
    bench.run(step);
    const auto masks = bench.masks();
    for (std::int64_t m = 0; m < 2; ++m)
      for (std::int64_t l = 0; l < 2; ++l) {
        const std::string name =
            "mask:" + std::to_string(m) + "." + std::to_string(l) + ".core_attention";
        EXPECT_EQ(masks.at(name), masks.at(name + "_again")) << name;
        EXPECT_NE(masks.at(name), earlier.at(name)) << name << ": each step draws a new mask";
      }
    earlier = masks;
  }
}

TEST(Recompute, LedgerCountsLayersAndSeesTheSameOutputs) {
  Bench bench(model(true, 0.1));
  bench.run(1);
  EXPECT_EQ(on_host(bench.step.recompute_counter()), (std::vector<float>{4, 4}));
  EXPECT_EQ(bench.ledger("recompute:first"), bench.ledger("recompute:again"));
  EXPECT_NE(bench.ledger("recompute:first")[0], bench.ledger("recompute:first")[1]);
}

TEST(Recompute, FaultM34DrawsAnotherMaskInBackwardWhileTheLossStays) {
  Bench sound(model(true, 0.1)), faulty(model(true, 0.1), Fault::recompute_draws_new_mask);
  EXPECT_EQ(on_host(sound.step.losses())[0], on_host(faulty.step.losses())[0])
      << "the first forward draws the same masks";
  EXPECT_NE(on_host(sound.step.gradients()[0].tensor), on_host(faulty.step.gradients()[0].tensor));
  const auto masks = faulty.masks();
  EXPECT_NE(masks.at("mask:0.0.core_attention"), masks.at("mask:0.0.core_attention_again"));
  EXPECT_NE(faulty.ledger("recompute:first"), faulty.ledger("recompute:again"));
}

}  // namespace
}  // namespace graphproof::workloads::recompute_test
