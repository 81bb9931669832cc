#include "workloads/parameters/parameters.h"

#include <gtest/gtest.h>

#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {
namespace {

TEST(Parameters, ShardsPutTogetherAreTheWholeTensor) {
  for (std::int64_t dimension : {0, 1}) {
    Parameters whole(3, at::kCPU);
    const at::Tensor full = whole.create("w", {8, 6}, {}, {0.0, 1.0});
    std::vector<at::Tensor> parts;
    for (int rank = 0; rank < 2; ++rank)
      parts.push_back(
          Parameters(3, at::kCPU).create("w", {8, 6}, {dimension, rank, 2}, {0.0, 1.0}).detach());
    EXPECT_TRUE(at::equal(at::cat(parts, dimension), full.detach())) << "split along " << dimension;
  }
}

TEST(Parameters, DependOnTheirNameAndNotOnTheirOrder) {
  Parameters one(3, at::kCPU), two(3, at::kCPU);
  const at::Tensor a = one.create("a", {4}, {}, {0.0, 1.0});
  two.create("b", {4}, {}, {0.0, 1.0});
  EXPECT_TRUE(at::equal(a.detach(), two.create("a", {4}, {}, {0.0, 1.0}).detach()));
  EXPECT_FALSE(at::equal(a.detach(), two.all()[0].tensor.detach()));
}

TEST(Parameters, FollowTheirDistribution) {
  Parameters parameters(3, at::kCPU);
  const at::Tensor p = parameters.create("w", {1000}, {}, {2.0, 0.5}).detach();
  EXPECT_GE(p.min().item<float>(), 1.5f);
  EXPECT_LT(p.max().item<float>(), 2.5f);
  EXPECT_NEAR(p.mean().item<float>(), 2.0f, 0.05f);
}

TEST(GradientBuffer, BackwardAddsIntoTheStaticViews) {
  Parameters parameters(3, at::kCPU);
  const at::Tensor a = parameters.create("a", {3, 5}, {}, {0.0, 1.0});
  const at::Tensor b = parameters.create("b", {7}, {}, {0.0, 1.0});
  GradientBuffer gradients(parameters);
  ASSERT_EQ(gradients.views().size(), 2u);
  EXPECT_EQ(gradients.views()[1].name, "grad:b");
  const void* before = gradients.views()[1].tensor.const_data_ptr();
  for (int pass = 0; pass < 2; ++pass) torch::autograd::backward({(a * 2).sum() + (b * 3).sum()});
  EXPECT_EQ(b.grad().const_data_ptr(), before)
      << "the accumulator replaced .grad instead of adding to it";
  EXPECT_TRUE(at::equal(gradients.views()[0].tensor, at::full({3, 5}, 4.0)));
  EXPECT_TRUE(at::equal(gradients.views()[1].tensor, at::full({7}, 6.0)));
  at::Tensor flat = gradients.flat();
  flat.zero_();
  EXPECT_TRUE(at::equal(b.grad(), at::zeros({7})));
}

TEST(GradientBuffer, ViewsDoNotOverlap) {
  Parameters parameters(3, at::kCPU);
  for (int i = 0; i < 5; ++i)
    parameters.create("p" + std::to_string(i), {i * 37 + 1}, {}, {0.0, 1.0});
  GradientBuffer gradients(parameters);
  for (std::size_t i = 0; i < gradients.views().size(); ++i) {
    at::Tensor view = gradients.views()[i].tensor;
    view.fill_(static_cast<double>(i + 1));
  }
  for (std::size_t i = 0; i < gradients.views().size(); ++i)
    EXPECT_TRUE(gradients.views()[i].tensor.eq(static_cast<double>(i + 1)).all().item<bool>()) << i;
}

}  // namespace
}  // namespace graphproof::workloads
