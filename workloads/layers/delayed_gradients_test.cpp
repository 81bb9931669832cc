#include "workloads/layers/delayed_gradients.h"

#include <gtest/gtest.h>

#include "workloads/layers/fused_linear.h"
#include "workloads/testing/device_under_test.h"

namespace graphproof::workloads {
namespace {

at::Tensor device_tensor(const std::vector<float>& values, at::IntArrayRef sizes) {
  return at::tensor(values).view(sizes).to(device_under_test().torch_device());
}

struct Product {
  at::Tensor x = device_tensor({1, 2, 3, 4}, {2, 2}).requires_grad_(true);
  at::Tensor weight = device_tensor({1, 0, 2, 1, 0, 3}, {3, 2}).requires_grad_(true);
  DelayedGradients delayed;
  Product() { weight.mutable_grad() = at::zeros_like(weight.detach()); }
};

TEST(DelayedGradients, BackwardComputesTheInputGradientAndTheWeightGradientIsAddedLater) {
  Product product;
  const at::Tensor y = linear_product(product.x, product.weight, product.weight.grad(),
                                      /*fused=*/false, &product.delayed);
  EXPECT_EQ(on_host(y.detach()), (std::vector<float>{1, 4, 6, 3, 10, 12}));
  torch::autograd::backward({y.sum()});
  EXPECT_EQ(on_host(product.x.grad()), (std::vector<float>{3, 4, 3, 4}));
  EXPECT_EQ(on_host(product.weight.grad()), std::vector<float>(6, 0));
  EXPECT_TRUE(product.delayed.pending());
  product.delayed.add();
  EXPECT_EQ(on_host(product.weight.grad()), (std::vector<float>{4, 6, 4, 6, 4, 6}));
  EXPECT_FALSE(product.delayed.pending());
}

TEST(DelayedGradients, EachWeightOfOneTensorGetsItsOwnGradient) {
  const at::Tensor x = device_tensor({1, 2, 3, 4}, {2, 1, 2}).requires_grad_(true);
  const at::Tensor weight = device_tensor({1, 0, 0, 1, 2, 0, 0, 2}, {2, 2, 2});
  at::Tensor gradient = at::ones_like(weight);
  DelayedGradients delayed;
  torch::autograd::backward({delayed_product(x, weight, gradient, delayed).sum()});
  delayed.add();
  EXPECT_EQ(on_host(gradient), (std::vector<float>{2, 3, 2, 3, 4, 5, 4, 5}));
}

TEST(DelayedGradients, AddingTwiceOrWithoutABackwardIsRefused) {
  Product product;
  EXPECT_THROW(product.delayed.add(), std::logic_error);
  torch::autograd::backward(
      {linear_product(product.x, product.weight, product.weight.grad(), false, &product.delayed)
           .sum()});
  product.delayed.add();
  try {
    product.delayed.add();
    FAIL() << "accepted";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(),
                 "delayed weight gradients: got none pending; want those of the last backward; "
                 "why: they would be missing or counted twice; next: call add() once after each "
                 "backward of the part");
  }
}

TEST(DelayedGradients, AStepThatEndsWithPendingGradientsIsRefused) {
  Product product;
  product.delayed.require_none_pending();
  torch::autograd::backward(
      {linear_product(product.x, product.weight, product.weight.grad(), false, &product.delayed)
           .sum()});
  try {
    product.delayed.require_none_pending();
    FAIL() << "accepted";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(),
                 "delayed weight gradients: got 1 still pending at the end of the step; want none; "
                 "why: a graph that ends here lacks them, and their operands are memory of its "
                 "pool; next: call add() after each backward of the part");
  }
  product.delayed.add();
  product.delayed.require_none_pending();
}

TEST(DelayedGradients, PendingGradientsOfAFailedStepCanBeDiscarded) {
  Product product;
  torch::autograd::backward(
      {linear_product(product.x, product.weight, product.weight.grad(), false, &product.delayed)
           .sum()});
  product.delayed.discard();
  EXPECT_FALSE(product.delayed.pending());
}

}  // namespace
}  // namespace graphproof::workloads
