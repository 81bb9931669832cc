#include "workloads/layers/cross_entropy.h"

#include <gtest/gtest.h>

#include "workloads/testing/device_under_test.h"

namespace graphproof::workloads {
namespace {

constexpr std::int64_t kTokens = 12, kVocab = 20;

at::Tensor logits() { return at::randn({kTokens, kVocab}, at::kFloat) * 4; }

TEST(CrossEntropy, EqualsTheLibrarysLossAndGradient) {
  at::manual_seed(1);
  const at::Device device = device_under_test().torch_device();
  const at::Tensor host_logits = logits().requires_grad_(true);
  const at::Tensor labels = at::randint(kVocab, {kTokens}, at::kLong);
  const at::Tensor expected = at::cross_entropy_loss(host_logits, labels);
  torch::autograd::backward({expected * 3});

  at::Tensor x = host_logits.detach().to(device).requires_grad_(true);
  const at::Tensor loss = vocab_parallel_cross_entropy(
      x, labels.to(device), at::arange(kVocab, at::kLong).to(device), {});
  torch::autograd::backward({loss * 3});

  EXPECT_NEAR(on_host(loss)[0], expected.item<float>(), 1e-6 * expected.item<float>());
  const auto got = on_host(x.grad()), want = on_host(host_logits.grad());
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 1e-7) << "element " << i;
}

TEST(CrossEntropy, SurvivesLogitsThatExpWouldOverflow) {
  const at::Device device = device_under_test().torch_device();
  at::Tensor host = at::zeros({1, 3});
  host[0][0] = 1000;
  const at::Tensor x = host.to(device).requires_grad_(true);
  const at::Tensor loss = vocab_parallel_cross_entropy(x, at::ones({1}, at::kLong).to(device),
                                                       at::arange(3, at::kLong).to(device), {});
  EXPECT_EQ(on_host(loss)[0], 1000.0f);
}

}  // namespace
}  // namespace graphproof::workloads
