#include "suites/case/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reports/record/text/message.h"

namespace graphproof::suites {
namespace {

TEST(LayoutReference, CutsTheShardOutOfTheFullTensor) {
  const at::Tensor full = at::arange(48, at::kFloat).view({4, 6, 2});
  EXPECT_TRUE(own_shard(full, {2, 6, 2}, {0, 1, 2}).equal(full.narrow(0, 2, 2)));
  EXPECT_TRUE(own_shard(full, {4, 3, 2}, {1, 0, 2}).equal(full.narrow(1, 0, 3)));
  EXPECT_TRUE(own_shard(full, {4, 6, 2}, {}).equal(full))
      << "a tensor of which every rank holds all";
  const workloads::Shard twice{.index = 1,
                               .count = 2,
                               .expert = true,
                               .inner_dimension = 1,
                               .inner_index = 2,
                               .inner_count = 3};
  EXPECT_TRUE(own_shard(full, {2, 2, 2}, twice).equal(full.narrow(0, 2, 2).narrow(1, 4, 2)));
}

TEST(LayoutReference, RefusesAShardOfAnotherShape) {
  try {
    own_shard(at::zeros({4, 6}), {2, 3}, {0, 1, 2});
    FAIL() << "a shard of another shape was accepted";
  } catch (const record::Error& error) {
    EXPECT_STREQ(error.what(),
                 "the shard of a full tensor; got part 1 of 2 of shape [4, 6] has shape [2, 6]; "
                 "want [2, 3], the parallel model's; "
                 "the single-rank model and the parallel one must hold the same parameters; next: "
                 "compare Parameters::create in both layouts");
  }
}

// The default model has sums of 256 products at most, and 66 of them in a chain.
TEST(RoundingBound, GrowsWithTheStepsAndTheRootOfTheTerms) {
  StepConfig config;
  const double one = rounding_bound(config, 0).relative;
  EXPECT_DOUBLE_EQ(one, 4 * 16 * std::ldexp(1.0, -24) * 66);
  EXPECT_DOUBLE_EQ(rounding_bound(config, 4).relative, 5 * one);
  EXPECT_NE(rounding_bound(config, 4).why.find("times 66 chained sums; times 5 steps"),
            std::string::npos);
  config.model.vocab = 1024;
  EXPECT_DOUBLE_EQ(rounding_bound(config, 0).relative, 2 * one);
  config.model.precision = workloads::Precision::bf16;
  EXPECT_GT(rounding_bound(config, 0).relative, 100 * one);
}

// A parameter is changed by as much as one of the roundings that the bound counts.
TEST(RoundingBound, ParametersAreChangedByOneOfTheRoundingsThatItCounts) {
  StepConfig config;
  EXPECT_DOUBLE_EQ(parameter_rounding(config), rounding_bound(config, 0).relative / 66);
  config.model.precision = workloads::Precision::fp16;
  EXPECT_DOUBLE_EQ(parameter_rounding(config), std::ldexp(1.0, -11));
  config.model.precision = workloads::Precision::fp32;
  config.model.autocast = true;
  EXPECT_DOUBLE_EQ(parameter_rounding(config), std::ldexp(1.0, -9));
}

TEST(LayoutReference, AcceptsASumInAnotherOrderAndRefusesADoubledGradient) {
  const ReferenceBound bound = reference_bound(StepConfig{});
  auto generator = at::detail::createCPUGenerator(3);
  const at::Tensor terms = at::randn({256, 64}, generator);
  const at::Tensor forward = terms.sum(0), backward = terms.flip(0).cumsum(0)[255];
  const ReferencePair reordered[] = {{"grad:a", backward, forward}};
  EXPECT_TRUE(reference_distance(reordered, bound).within());
  const ReferencePair doubled[] = {{"grad:a", forward, forward}, {"grad:b", 2 * forward, forward}};
  const ReferenceDistance distance = reference_distance(doubled, bound);
  EXPECT_FALSE(distance.within());
  EXPECT_EQ(distance.worst, "grad:b");
  EXPECT_EQ(distance.tensors, 2);
}

TEST(LayoutReference, NeverAcceptsANaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const at::Tensor ones = at::ones({4});
  at::Tensor spoilt = ones.clone();
  spoilt[2] = nan;
  for (const auto& [parallel, single] :
       {std::pair{spoilt, ones}, std::pair{ones, spoilt}, std::pair{spoilt, spoilt}}) {
    const ReferencePair pairs[] = {{"grad:whole", ones, ones}, {"grad:spoilt", parallel, single}};
    const ReferenceDistance distance = reference_distance(pairs, reference_bound(StepConfig{}));
    EXPECT_FALSE(distance.within());
    EXPECT_EQ(distance.worst, "grad:spoilt");
  }
}

// A case that occurred: the gradient of one head's D on a rank that holds only that head.
TEST(LayoutReference, MeasuresAShardByTheWholeTensor) {
  StepConfig config;
  config.model.precision = workloads::Precision::fp16;
  const at::Tensor whole = at::tensor({1.1e-3f, -1.77e-4f, 4e-4f, 9e-4f}),
                   shard = whole.narrow(0, 1, 1);
  const ReferencePair cancelled[] = {{"grad:D", shard + 9.5e-6f, shard, whole}};
  const ReferenceDistance distance = reference_distance(cancelled, reference_bound(config));
  EXPECT_TRUE(distance.within());
  EXPECT_NEAR(distance.max_rel, 9.5e-6 / 1.1e-3, 1e-4);
  const ReferencePair another_head[] = {{"grad:D", whole.narrow(0, 2, 1), shard, whole}};
  EXPECT_FALSE(reference_distance(another_head, reference_bound(config)).within());
}

// A case that occurred: the gradient of a step bias, four sums over all tokens that nearly cancel.
TEST(LayoutReference, ATensorMayDifferAsMuchAsRoundingsChangeItOnOneRank) {
  StepConfig config;
  config.model.precision = workloads::Precision::fp16;
  const ReferenceBound bound = reference_bound(config);
  const at::Tensor whole = at::tensor({3.0e-3f, -1e-4f, 2e-4f, 1e-4f}), apart = whole + 1.3e-4f;
  ReferencePair pair{"grad:dt_bias", apart, whole};
  const auto distance = [&] { return reference_distance(std::span(&pair, 1), bound); };
  EXPECT_FALSE(distance().within());
  pair.rounding = 7e-5;
  EXPECT_TRUE(distance().within());
  EXPECT_DOUBLE_EQ(distance().bound, 3 * 7e-5);
  const std::string why = distance_of(std::span(&pair, 1), bound).why;
  EXPECT_NE(why.find("3 times 7e-05, by which rounding moves this tensor on one rank"),
            std::string::npos)
      << why;
  pair.rounding = 4e-5;
  EXPECT_FALSE(distance().within());
  // If the count of roundings allows more, it determines the bound and the reason.
  pair.rounding = 1e-6;
  EXPECT_DOUBLE_EQ(distance().bound, bound.relative * pair.largest);
  EXPECT_EQ(distance_of(std::span(&pair, 1), bound).why, bound.why);
}

TEST(LayoutReference, BoundStatesItsReasonAndStaysTightForLargeModels) {
  const ReferenceBound small = reference_bound(StepConfig{});
  EXPECT_NE(small.why.find("4 * sqrt(256) * 2^-24"), std::string::npos) << small.why;
  EXPECT_LT(small.relative, 5e-4);
  StepConfig sees;
  sees.model.encoder_layers = sees.model.images = 2;
  EXPECT_DOUBLE_EQ(reference_bound(sees).relative, small.relative * 43 / 22)
      << "two layers, a patch embedding, a norm and a projection more";
  StepConfig latent, ahead;
  latent.model.multi_latent_attention = true;
  EXPECT_DOUBLE_EQ(reference_bound(latent).relative, small.relative * 26 / 22)
      << "a product and a norm more in each of two layers";
  ahead.model.mtp_num_layers = 1;
  EXPECT_DOUBLE_EQ(reference_bound(ahead).relative, small.relative * 35 / 22)
      << "a layer, two norms, a projection and a loss more";
  StepConfig split;
  split.model.distributed_optimizer = true;
  EXPECT_EQ(reference_bound(split).relative, 2 * small.relative);
  split.model.fp8_weights = true;
  EXPECT_EQ(reference_bound(split).relative, small.relative) << "the first step is compared";
  workloads::ModelConfig experts;
  experts.distributed_optimizer = true;
  experts.experts = 4;
  EXPECT_TRUE(second_step_compared(experts));
  experts.optimizer = workloads::OptimizerKind::adam;
  EXPECT_FALSE(second_step_compared(experts))
      << "the sign of the first update may come from rounding";
  StepConfig large;
  large.model.layers = 24;
  large.model.hidden = 4096;
  large.model.ffn = 16384;
  EXPECT_LT(reference_bound(large).relative, 5e-2) << "a wrong shard causes a tenth or more";
}

TEST(LayoutReference, BoundOfBf16IsThatOfItsRoundingsAndBelowAMissingReduction) {
  StepConfig config;
  config.model.precision = workloads::Precision::bf16;
  const ReferenceBound bound = reference_bound(config);
  EXPECT_NE(bound.why.find("bf16 values rounded 108 times in a row: 4 * sqrt(108) * 2^-9"),
            std::string::npos)
      << bound.why;
  EXPECT_LT(bound.relative, 0.1);
  StepConfig cast;
  cast.model.autocast = true;
  EXPECT_EQ(reference_bound(cast).relative, bound.relative) << "its products are rounded alike";
  auto generator = at::detail::createCPUGenerator(3);
  const at::Tensor half = at::randn({4096}, generator), other = at::randn({4096}, generator);
  const ReferencePair rounded[] = {
      {"grad:a", (half.to(at::kBFloat16) + other.to(at::kBFloat16)).to(at::kFloat), half + other}};
  EXPECT_TRUE(reference_distance(rounded, bound).within());
  const ReferencePair missing[] = {{"grad:a", half, half + other}};
  EXPECT_FALSE(reference_distance(missing, bound).within());
}

}  // namespace
}  // namespace graphproof::suites
