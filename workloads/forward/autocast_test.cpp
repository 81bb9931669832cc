#include "workloads/forward/autocast.h"

#include <gtest/gtest.h>

#include <vector>

#include "workloads/testing/device_under_test.h"

namespace graphproof::workloads::autocast_test {
namespace {

constexpr AutocastState kCached{.enabled = true, .cache = true}, kUncached{.enabled = true};

c10::DeviceType device() { return device_under_test().torch_device().type(); }

at::Tensor on_device(double value) {
  return at::full({4, 4}, value,
                  at::TensorOptions().dtype(at::kFloat).device(device_under_test().torch_device()));
}
at::Tensor parameter() { return on_device(1.0 / 3).requires_grad_(true); }

/// Changes a parameter as an optimizer does.
void add_one(const at::Tensor& parameter) {
  const at::NoGradGuard no_grad;
  at::Tensor(parameter).add_(1);
}

TEST(Autocast, ProductsAreIn16BitsAndSoftmaxIsInFp32) {
  const at::Tensor x = on_device(0.7), w = parameter();
  EXPECT_EQ(at::mm(x, w).scalar_type(), at::kFloat);
  const AutocastRegion region(device(), kUncached);
  const at::Tensor product = at::mm(x, w);
  EXPECT_EQ(product.scalar_type(), at::kBFloat16);
  EXPECT_EQ(on_host(product), on_host(at::mm(x.to(at::kBFloat16), w.to(at::kBFloat16))));
  EXPECT_EQ(at::softmax(product, 1).scalar_type(), at::kFloat);
  EXPECT_EQ((product + x).scalar_type(), at::kFloat);
}

TEST(Autocast, TheGradientOfAParameterIsInFp32) {
  const at::Tensor x = on_device(0.7), w = parameter();
  at::Tensor y;
  {
    const AutocastRegion region(device(), kCached);
    y = at::mm(x, autocast_operand(w));
  }
  torch::autograd::backward({y.sum()}, {});
  EXPECT_EQ(w.grad().scalar_type(), at::kFloat);
  EXPECT_GT(on_host(w.grad())[0], 2);
}

TEST(Autocast, ACacheKeepsACastUntilTheOutermostRegionEnds) {
  const at::Tensor w = parameter();
  at::Tensor kept;
  {
    const AutocastRegion outer(device(), kCached);
    kept = autocast_operand(w);
    add_one(w);
    EXPECT_TRUE(autocast_operand(w).is_same(kept)) << "it is cast once";
    {
      const AutocastRegion inner(device(), kCached);
    }
    EXPECT_TRUE(autocast_operand(w).is_same(kept)) << "an inner region does not empty the cache";
  }
  const AutocastRegion next(device(), kCached);
  EXPECT_FALSE(autocast_operand(w).is_same(kept));
  EXPECT_EQ(on_host(autocast_operand(w)), on_host(w.to(at::kBFloat16)));
}

TEST(Autocast, WithoutACacheEveryUseCastsAgain) {
  const at::Tensor w = parameter();
  const AutocastRegion region(device(), kUncached);
  const at::Tensor first = autocast_operand(w);
  add_one(w);
  EXPECT_EQ(on_host(autocast_operand(w)), on_host(w.to(at::kBFloat16)));
  EXPECT_NE(on_host(autocast_operand(w)), on_host(first));
}

TEST(Autocast, ARegionLeavesTheStateThatItFound) {
  const at::Tensor w = parameter();
  const AutocastState before = autocast_state(device());
  {
    const AutocastRegion outer(device(), kCached);
    {
      const AutocastRegion inner(device(), kUncached);
    }
    EXPECT_TRUE(autocast_state(device()).enabled);
    EXPECT_TRUE(autocast_state(device()).cache);
    {
      const AutocastRegion none(device(), AutocastState{});
    }
    EXPECT_TRUE(autocast_state(device()).enabled) << "a state that is not enabled opens no region";
  }
  const AutocastState after = autocast_state(device());
  EXPECT_EQ(after.enabled, before.enabled);
  EXPECT_EQ(after.type, before.type);
  EXPECT_EQ(after.cache, before.cache);
  EXPECT_TRUE(autocast_operand(w).is_same(w)) << "outside of regions nothing is cast";
}

}  // namespace
}  // namespace graphproof::workloads::autocast_test
