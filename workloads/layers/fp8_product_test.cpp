#include "workloads/layers/fp8_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "workloads/layers/fused_linear.h"

namespace graphproof::workloads::fp8_product_test {
namespace {

/// Numbers of different sizes, the same in every run.
at::Tensor numbers(std::vector<std::int64_t> sizes, double first) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return (at::sin(at::arange(count, at::kFloat) * 1.7 + first) * first).view(sizes);
}

/// x rounded to `type` under the scale that maps its largest element to the largest number, in fp64
/// and element by element.
at::Tensor rounded(const at::Tensor& x, int mantissa_bits, int least_exponent, double largest) {
  const double scale =
      static_cast<double>(static_cast<float>(largest) / x.abs().max().item<float>());
  const at::Tensor result = at::empty_like(x, at::kDouble);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const double value =
        static_cast<float>(x.const_data_ptr<float>()[i] * static_cast<float>(scale));
    int exponent = 0;
    std::frexp(value, &exponent);
    const double step = std::ldexp(1.0, std::max(exponent - 1, least_exponent) - mantissa_bits);
    result.mutable_data_ptr<double>()[i] = std::nearbyint(value / step) * step / scale;
  }
  return result;
}
at::Tensor as_e4m3(const at::Tensor& x) { return rounded(x, 3, -6, 448); }
at::Tensor as_e5m2(const at::Tensor& x) { return rounded(x, 2, -14, 57344); }

double distance(const at::Tensor& got, const at::Tensor& want) {
  return (got.to(at::kDouble) - want).abs().max().item<double>() / want.abs().max().item<double>();
}

struct Operands {
  at::Tensor x = numbers({6, 5}, 2), weight = numbers({3, 5}, 0.7), dy = numbers({6, 3}, 1e-4);
  Operands() {
    x.requires_grad_(true);
    weight.requires_grad_(true);
    weight.mutable_grad() = at::zeros_like(weight);
  }
  UsedWeight used() const { return {weight, to_fp8(weight, at::kFloat8_e4m3fn, {})}; }
};

TEST(Fp8Product, MultipliesE4m3ByE4m3AndGradientsAsE5m2) {
  Operands of;
  const at::Tensor x = as_e4m3(of.x.detach()), weight = as_e4m3(of.weight.detach()),
                   dy = as_e5m2(of.dy);
  const at::Tensor y = linear_product(of.x, of.used(), of.weight.grad(), /*fused=*/false);
  EXPECT_LE(distance(y, at::mm(x, weight.t())), 1e-6);
  EXPECT_GE(distance(y, at::mm(of.x.detach(), of.weight.detach().t()).to(at::kDouble)), 1e-3)
      << "the product of the numbers before rounding is another";
  torch::autograd::backward({y}, {of.dy});
  EXPECT_LE(distance(of.x.grad(), at::mm(dy, weight)), 1e-6);
  EXPECT_LE(distance(of.weight.grad(), at::mm(dy.t(), x)), 1e-6);
}

TEST(Fp8Product, AddsItsWeightGradientToTheMainGradientOrDefersIt) {
  Operands plain, fused, later;
  DelayedGradients delayed;
  const auto run = [](Operands& of, bool fuse, DelayedGradients* defer) {
    torch::autograd::backward({linear_product(of.x, of.used(), of.weight.grad(), fuse, defer)},
                              {of.dy});
  };
  run(plain, false, nullptr);
  run(fused, true, nullptr);
  run(later, false, &delayed);
  EXPECT_TRUE(at::equal(fused.weight.grad(), plain.weight.grad()));
  EXPECT_TRUE(later.weight.grad().eq(0).all().item<bool>());
  delayed.add();
  EXPECT_TRUE(at::equal(later.weight.grad(), plain.weight.grad()));
  EXPECT_TRUE(at::equal(later.x.grad(), plain.x.grad()));
}

TEST(Fp8Product, OfExpertsIsTheProductOfEach) {
  const at::Tensor x = numbers({2, 6, 5}, 2), weight = numbers({2, 3, 5}, 0.7);
  const UsedWeight used{weight, to_fp8(weight, at::kFloat8_e4m3fn, {})};
  const at::Tensor all = linear_product(x, used, {}, false);
  for (std::int64_t e = 0; e < 2; ++e)
    EXPECT_TRUE(at::equal(all[e], linear_product(x[e], used.of_expert(e), {}, false))) << e;
  EXPECT_EQ(linear_product(x[0].narrow(0, 0, 0), used.of_expert(0), {}, false).sizes(),
            at::IntArrayRef({0, 3}))
      << "an expert without tokens";
}

TEST(Fp8Product, CastsSaturateReadTheirScaleAndNoteTheLargestElement) {
  const at::Tensor x = numbers({4, 4}, 1000), amax = at::full({1}, 3.0f),
                   scale = at::full({1}, 2.0f);
  const Fp8Tensor cast = to_fp8(x, at::kFloat8_e4m3fn, {.scale = scale, .amax = amax, .noted = {}});
  EXPECT_EQ(cast.values.to(at::kFloat).abs().max().item<float>(), 448);
  EXPECT_FALSE(cast.values.to(at::kFloat).isnan().any().item<bool>());
  EXPECT_EQ(cast.inverse.item<float>(), 0.5f);
  EXPECT_EQ(amax.item<float>(), x.abs().max().item<float>());
  to_fp8(x * 2, at::kFloat8_e4m3fn,
         {.scale = scale, .amax = amax, .noted = at::zeros({}, at::kBool)});
  to_fp8(x * 0.5, at::kFloat8_e4m3fn, {.scale = scale, .amax = amax, .noted = {}});
  EXPECT_EQ(amax.item<float>(), x.abs().max().item<float>()) << "nothing larger was to be noted";
  const Fp8Tensor zeros = to_fp8(at::zeros({2, 2}), at::kFloat8_e5m2, {});
  EXPECT_TRUE(zeros.values.to(at::kFloat).eq(0).all().item<bool>());
  EXPECT_TRUE(zeros.inverse.isfinite().all().item<bool>());
}

}  // namespace
}  // namespace graphproof::workloads::fp8_product_test
