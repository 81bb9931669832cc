#include "workloads/training/train_step.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "workloads/parameters/draw.h"
#include "workloads/testing/reference_model.h"
#include "workloads/testing/step_under_test.h"

namespace graphproof::workloads::train_step_test {
namespace {

using fixtures::Fault;

constexpr std::uint64_t kSeed = StepUnderTest::kSeed;
const ModelConfig kTiny{.layers = 2,
                        .hidden = 8,
                        .heads = 4,
                        .kv_groups = 2,
                        .ffn = 16,
                        .vocab = 12,
                        .seq_length = 5,
                        .microbatch_size = 2,
                        .microbatches = 1,
                        .qkv_bias = true,
                        .linear_bias = true};

using Bench = StepUnderTest;

double norm(const std::vector<float>& x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

/// The parts of a GPT that kTiny does not have.
ModelConfig other_parts() {
  ModelConfig config = kTiny;
  config.normalization = Normalization::LayerNorm;
  config.activation = Activation::swiglu;
  config.position_embedding = PositionEmbedding::learned_absolute;
  config.tied_embeddings = true;
  return config;
}

void expect_gradients_equal_central_differences(const ModelConfig& config) {
  Bench bench(config);
  bench.mean_loss();
  std::vector<std::vector<float>> gradients;
  for (const auto& gradient : bench.step.gradients()) gradients.push_back(on_host(gradient.tensor));

  const auto parameters = bench.step.parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    at::Tensor parameter = parameters[p].tensor.detach();
    const at::Tensor original = parameter.clone();
    for (int direction = 0; direction < 2; ++direction) {
      // Random signs, so that every element contributes equally, and a missing gradient shows.
      const Draw draw(direction, parameters[p].name);
      at::Tensor signs = at::empty(parameter.sizes(), at::kFloat);
      double expected = 0;
      for (std::int64_t i = 0; i < signs.numel(); ++i) {
        const float sign = draw.uniform(i) < 0 ? -1.0f : 1.0f;
        signs.mutable_data_ptr<float>()[i] = sign;
        expected += sign * gradients[p][i];
      }
      // The rounding of a loss of size 3 is some 1e-6; over 2 * width it stays below 1e-3, and the
      // third derivative contributes width^2.
      constexpr double kWidth = 2e-3;
      const at::Tensor offset = signs.to(bench.device.torch_device()) * kWidth;
      parameter.copy_(original + offset);
      const double above = bench.mean_loss();
      parameter.copy_(original - offset);
      const double below = bench.mean_loss();
      parameter.copy_(original);
      EXPECT_NEAR((above - below) / (2 * kWidth), expected, 2e-3 + 0.01 * norm(gradients[p]))
          << parameters[p].name << " direction " << direction;
    }
    EXPECT_GT(norm(gradients[p]), 1e-3) << parameters[p].name << " has no gradient worth checking";
  }
}

TEST(TrainStep, GradientsEqualCentralDifferences) {
  expect_gradients_equal_central_differences(kTiny);
}

TEST(TrainStep, GradientsOfLayerNormGatesLearnedPositionsAndTiedEmbeddingsEqualCentralDifferences) {
  expect_gradients_equal_central_differences(other_parts());
}

TEST(TrainStep, AnUntrainedModelLosesAboutTheLogarithmOfTheVocabulary) {
  Bench bench(ModelConfig{});
  // Random logits of variance 1 cost half a unit more than equal ones.
  EXPECT_NEAR(bench.mean_loss(), std::log(128.0) + 0.5, 0.5);
}

TEST(TrainStep, LossAndGradientsEqualAnIndependentModelInDoublePrecision) {
  struct Row {
    const char* what;
    ModelConfig config;
  };
  ModelConfig plain = kTiny, accumulated = kTiny, dropout = kTiny, recomputed = kTiny,
              experts = kTiny, all_experts = kTiny;
  plain.qkv_bias = plain.linear_bias = false;
  plain.kv_groups = plain.heads;
  accumulated.microbatches = 4;
  dropout.dropout = 0.1;
  dropout.microbatches = 2;
  recomputed = dropout;
  recomputed.recompute = selective({RecomputedPart::core_attn});
  experts.experts = 4;
  experts.topk = 2;
  experts.shared_expert = true;
  experts.microbatches = 2;
  all_experts.experts = all_experts.topk = 2;
  all_experts.linear_bias = false;
  ModelConfig dropless = experts, gathered, losses = experts, dropless_again, corrected = experts,
              one_expert;
  dropless.dropless = true;
  gathered = dropless_again = dropless;
  gathered.gather_tokens = true;
  dropless_again.recompute = selective({RecomputedPart::moe, RecomputedPart::moe_act});
  losses.router_aux_loss = losses.router_z_loss = true;
  corrected.router_score_correction = corrected.router_aux_loss = true;
  one_expert = corrected;
  one_expert.topk = 1;
  ModelConfig layer_norm = kTiny, gated = kTiny, learned = kTiny, tied = kTiny,
              gated_experts = experts;
  layer_norm.normalization = Normalization::LayerNorm;
  gated.activation = gated_experts.activation = Activation::swiglu;
  learned.position_embedding = PositionEmbedding::learned_absolute;
  tied.tied_embeddings = true;
  ModelConfig unsorted = kTiny, fused_attention = kTiny;
  unsorted.embedding_gradient = EmbeddingGradient::index_add;
  fused_attention.hidden = 8 * fused_attention.heads;
  fused_attention.attention_kernel = AttentionKernel::efficient;
  ModelConfig small_parts = recomputed, uniform = dropout, block = dropout, expert_parts = experts,
              expert_layer = experts;
  small_parts.recompute = selective({RecomputedPart::core_attn, RecomputedPart::mlp,
                                     RecomputedPart::attention_norm, RecomputedPart::mlp_norm});
  uniform.recompute = full(RecomputeConfig::Method::uniform, 2);
  block.recompute = full(RecomputeConfig::Method::block, 1);
  expert_parts.recompute = selective(
      {RecomputedPart::moe_act, RecomputedPart::mlp_norm, RecomputedPart::shared_experts});
  expert_layer.recompute = selective({RecomputedPart::moe, RecomputedPart::shared_experts});
  ModelConfig hybrid = dropout, hybrid_experts = experts;
  hybrid.hybrid = hybrid_experts.hybrid = true;
  hybrid_experts.layers = 4;
  hybrid_experts.recompute = full(RecomputeConfig::Method::uniform, 2);
  ModelConfig packed = dropout, packed_experts = experts;
  packed.packed = packed_experts.packed = true;
  packed.seq_length = packed_experts.seq_length = 9;
  // Documents that begin with the same token tie for the last place of a capacity, and the two
  // models break ties differently.
  packed_experts.dropless = true;
  packed_experts.recompute = selective({RecomputedPart::core_attn});
  ModelConfig packed_hybrid = packed, packed_learned = packed;
  packed_hybrid.hybrid = true;
  packed_hybrid.recompute = selective({RecomputedPart::core_attn, RecomputedPart::mlp_norm});
  packed_learned.position_embedding = PositionEmbedding::learned_absolute;
  ModelConfig fused = accumulated, fused_again = uniform;
  fused.grad_accumulation_fusion = fused_again.grad_accumulation_fusion = true;
  ModelConfig latent = kTiny, latent_packed, latent_again, ahead = kTiny, ahead_experts = experts;
  latent.hidden = 16;
  latent.kv_groups = latent.heads;
  latent.multi_latent_attention = true;
  latent.qkv_bias = latent.linear_bias = false;
  latent_packed = latent_again = latent;
  latent_packed.qkv_bias = latent_packed.packed = true;
  latent_packed.seq_length = 12;
  latent_packed.normalization = Normalization::LayerNorm;
  latent_again.dropout = 0.1;
  latent_again.microbatches = 2;
  latent_again.recompute = selective({RecomputedPart::mla_up_proj, RecomputedPart::core_attn});
  ahead.mtp_num_layers = 2;
  ahead.microbatches = 2;
  ahead.dropout = 0.1;
  ModelConfig ahead_packed = ahead;
  ahead_packed.packed = true;
  ahead_packed.seq_length = 12;
  ahead_experts.dropless = true;
  ahead_experts.mtp_num_layers = 1;
  ahead_experts.recompute = full(RecomputeConfig::Method::uniform, 1);
  ModelConfig images = kTiny, frozen, images_of_experts = experts;
  images.seq_length = 9;
  images.microbatches = images.encoder_layers = images.images = 2;
  images.image_counts = ImageCounts::variable;
  frozen = images;
  frozen.freeze_vision_model = true;
  frozen.normalization = Normalization::LayerNorm;
  frozen.vision_seq_length = 21;
  ModelConfig merged = images;
  merged.vision_length = VisionLength::encoder;
  merged.vision_positions = 86;
  merged.vision_merge_size = 2;
  images_of_experts.seq_length = 9;
  images_of_experts.encoder_layers = images_of_experts.images = 1;
  images_of_experts.dropless = true;
  for (const Row& row :
       {Row{"latent attention", latent},
        Row{"latent attention with biases and layer norms, in documents", latent_packed},
        Row{"latents used again, with dropout", latent_again},
        Row{"two tokens predicted ahead", ahead},
        Row{"two tokens predicted ahead in documents", ahead_packed},
        Row{"a token predicted ahead by experts, all layers again", ahead_experts},
        Row{"images, some missing", images},
        Row{"an encoder that is not trained, with more room than it needs", frozen},
        Row{"images of merged patches, with a length from the encoder's positions", merged},
        Row{"images and experts", images_of_experts},
        Row{"documents and padding", packed},
        Row{"documents between mamba layers, core attention and norms of the others again",
            packed_hybrid},
        Row{"learned positions in documents", packed_learned},
        Row{"documents, experts, core attention again", packed_experts},
        Row{"mamba layers with dropout", hybrid},
        Row{"mamba layers between experts, all again", hybrid_experts},
        Row{"weight gradients added where they are made", fused},
        Row{"the same in layers that run again", fused_again},
        Row{"MLP, norms and core attention again", small_parts},
        Row{"all layers again, two by two", uniform},
        Row{"the first layer again", block},
        Row{"parts of experts again", expert_parts},
        Row{"whole experts again, shared ones twice", expert_layer},
        Row{"grouped heads, biases", kTiny},
        Row{"one group per head, no bias", plain},
        Row{"four microbatches", accumulated},
        Row{"dropout", dropout},
        Row{"dropout and recompute", recomputed},
        Row{"experts, some tokens dropped", experts},
        Row{"experts without capacity", dropless},
        Row{"experts that pick from everybody's tokens", gathered},
        Row{"experts without capacity again", dropless_again},
        Row{"routers with losses of their own", losses},
        Row{"corrected scores", corrected},
        Row{"a corrected score for each token", one_expert},
        Row{"every expert for every token", all_experts},
        Row{"default sizes", ModelConfig{}},
        Row{"layer norm", layer_norm},
        Row{"gates", gated},
        Row{"learned positions", learned},
        Row{"tied embeddings", tied},
        Row{"rows of the embedding's gradient in any order", unsorted},
        Row{"fused attention", fused_attention},
        Row{"experts with gates", gated_experts},
        Row{"all of these", other_parts()}}) {
    SCOPED_TRACE(row.what);
    if (row.config.attention_kernel != AttentionKernel::math &&
        device_under_test().name() != "cuda")
      continue;
    Bench bench(row.config);
    const double loss = bench.mean_loss();
    ReferenceModel reference(row.config, bench.step.parameters(), bench.step.masks());
    // fp32 compared with fp64: about 20 chained sums of at most 256 terms. The error of any wrong
    // term would be far larger.
    constexpr double kBound = 1e-5;
    EXPECT_NEAR(loss, reference.loss(bench.batch), kBound * loss);
    ASSERT_GT(reference.decision_margin(), 10 * kBound)
        << "another seed: a token is about to choose another expert";
    for (const auto& [name, gradient] : bench.step.gradients()) {
      const at::Tensor expected = reference.gradient(name.substr(5)).view(gradient.sizes());
      const at::Tensor got = gradient.cpu().to(at::kDouble);
      EXPECT_LT((got - expected).abs().max().item<double>(),
                kBound * expected.abs().max().item<double>())
          << name;
    }
  }
}

TEST(TrainStep, LearnedPositionsAllowAnOddHeadSizeAndTiedEmbeddingsSaveTheOutputLayer) {
  ModelConfig config = other_parts();
  config.heads = config.kv_groups = config.hidden;
  Bench bench(config);
  EXPECT_TRUE(std::isfinite(bench.mean_loss()));
  for (const auto& [name, tensor] : bench.step.parameters())
    EXPECT_EQ(name.find("output"), std::string::npos) << name;
  config.position_embedding = PositionEmbedding::rope;
  EXPECT_THROW(Bench{config}, std::invalid_argument);
}

TEST(TrainStep, TheOptimizerSubtractsRateTimesGradient) {
  Bench bench(kTiny);
  bench.mean_loss();
  const auto before = on_host(bench.step.parameters()[3].tensor),
             gradient = on_host(bench.step.gradients()[3].tensor);
  bench.step.learning_rate(0.25);
  bench.step.optimizer_step();
  const auto after = on_host(bench.step.parameters()[3].tensor);
  for (std::size_t i = 0; i < after.size(); ++i)
    EXPECT_FLOAT_EQ(after[i], before[i] - 0.25f * gradient[i]);
}

TEST(TrainStep, TwentyStepsOnOneBatchLearnIt) {
  Bench bench(kTiny);
  const double before = bench.mean_loss();
  bench.step.learning_rate(0.2);
  for (int i = 0; i < 20; ++i) {
    bench.step.forward_backward(bench.batch);
    bench.step.optimizer_step();
  }
  EXPECT_LT(bench.mean_loss(), before / 2);
}

TEST(TrainStep, GradientsStartFromZeroInEveryStepAndStayWhereTheyAre) {
  Bench bench(kTiny);
  bench.mean_loss();
  const auto first = on_host(bench.step.gradients()[0].tensor);
  const auto address = bench.device.address(bench.step.gradients()[0].tensor);
  bench.mean_loss();
  EXPECT_EQ(on_host(bench.step.gradients()[0].tensor), first);
  EXPECT_EQ(bench.device.address(bench.step.gradients()[0].tensor), address);
}

TEST(TrainStep, EveryLayerCountsItsForwards) {
  ModelConfig config = kTiny;
  config.layers = 3;
  config.microbatches = 2;
  Bench bench(config);
  bench.mean_loss();
  bench.mean_loss();
  EXPECT_EQ(on_host(bench.step.layer_counter()), (std::vector<float>{4, 4, 4}));
}

TEST(TrainStep, DropoutDrawsANewMaskPerStepMicrobatchLayerAndSite) {
  ModelConfig config;
  config.microbatches = 2;
  config.dropout = 0.1;
  Bench bench(config);
  std::set<std::vector<float>> seen;
  double kept = 0, drawn = 0;
  for (int step = 0; step < 2; ++step) {
    bench.mean_loss();
    ASSERT_EQ(bench.step.masks().size(), 2u * 2u * 3u);
    for (const auto& [name, mask] : bench.step.masks()) {
      const auto values = on_host(mask);
      EXPECT_TRUE(seen.insert(values).second) << name << " of step " << step << " was drawn before";
      kept += std::accumulate(values.begin(), values.end(), 0.0);
      drawn += static_cast<double>(values.size());
    }
  }
  EXPECT_EQ(bench.step.masks()[0].name, "mask:0.0.core_attention");
  EXPECT_EQ(bench.step.masks()[11].name, "mask:1.1.mlp");
  // Five standard errors of a share of 0.9.
  EXPECT_NEAR(kept / drawn, 0.9, 5 * std::sqrt(0.9 * 0.1 / drawn));
}

TEST(TrainStep, WithoutDropoutThereAreNoMasks) { EXPECT_TRUE(Bench(kTiny).step.masks().empty()); }

TEST(TrainStep, DropoutTakesPartInTheLoss) {
  ModelConfig config = kTiny;
  config.dropout = 0.1;
  const double with = Bench(config).mean_loss(), without = Bench(kTiny).mean_loss();
  EXPECT_NE(with, without);
}

TEST(TrainStep, RefusesALayoutThatDoesNotDivide) {
  struct Row {
    ModelConfig config;
    const char* names;
  };
  for (const Row& row :
       {Row{{.kv_groups = 1}, "got kv_groups = 1 and tp = 2"},
        Row{{.ffn = 7}, "got ffn = 7 and tp = 2"}, Row{{.vocab = 13}, "got vocab = 13 and tp = 2"},
        Row{{.hidden = 62}, "got hidden = 62 and heads = 4"}}) {
    try {
      TrainStep step(row.config, {.tp = 2}, device_under_test(), kSeed, {});
      ADD_FAILURE() << "accepted: " << row.names;
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find(row.names), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("next: change"), std::string::npos) << error.what();
    }
  }
}

// In eager steps the mask from a host seed must be as good as a drawn one, because otherwise the
// fault would show everywhere.
TEST(TrainStep, FaultM32DrawsNewMasksOfTheRightShareWhileEager) {
  ModelConfig config;
  config.dropout = 0.1;
  Bench bench(config, Fault::dropout_seed_by_value);
  std::set<std::vector<float>> seen;
  double kept = 0, drawn = 0;
  for (int step = 0; step < 3; ++step) {
    bench.mean_loss();
    for (const auto& [name, mask] : bench.step.masks()) {
      const auto values = on_host(mask);
      EXPECT_TRUE(seen.insert(values).second) << name << " of step " << step << " was drawn before";
      kept += std::accumulate(values.begin(), values.end(), 0.0);
      drawn += static_cast<double>(values.size());
    }
  }
  EXPECT_NEAR(kept / drawn, 0.9, 0.02);
}

}  // namespace
}  // namespace graphproof::workloads::train_step_test
