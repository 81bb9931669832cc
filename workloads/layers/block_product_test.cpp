#include "workloads/layers/block_product.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "workloads/layers/fp8_product.h"
#include "workloads/testing/blocks_by_hand.h"

namespace graphproof::workloads::block_product_test {
namespace {

/// Numbers of different sizes, the same in every run.
at::Tensor numbers(std::vector<std::int64_t> sizes, double first) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  const at::Tensor place = at::arange(count, at::kFloat);
  return (at::sin(place * 1.7 + first) * at::exp(at::sin(place * 0.37) * 6) * first).view(sizes);
}

double distance(const at::Tensor& got, const at::Tensor& want) {
  return (got.to(at::kDouble) - want).abs().max().item<double>() / want.abs().max().item<double>();
}

// Sums of up to 40 products in fp32.
constexpr double kBound = 40 * 6e-8;

struct Operands {
  at::Tensor x = numbers({23, 40}, 2), weight = numbers({20, 40}, 0.7),
             dy = numbers({23, 20}, 1e-4);
  faults::FaultHooks sound;
  BlockCasts casts;

  explicit Operands(BlockFormat format) {
    x.requires_grad_(true);
    weight.requires_grad_(true);
    weight.mutable_grad() = at::zeros_like(weight);
    casts = {
        .format = format,
        .hadamard = format == BlockFormat::nvfp4 ? hadamard_with_signs(at::kCPU) : at::Tensor(),
        .parameter = weight,
        .faults = &sound};
  }
  UsedWeight used() const {
    UsedWeight used{weight};
    used.blocks = casts.cast(weight.detach(), BlockCasts::Operand::weight);
    used.block_casts = casts;
    return used;
  }
};

TEST(BlockProduct, OfMxfp8HasBlocksAlongTheDimensionThatEachProductAddsOver) {
  Operands of(BlockFormat::mxfp8);
  const auto rows = [](const at::Tensor& x) { return blocks_by_hand(x.detach(), false); };
  const auto columns = [&](const at::Tensor& x) { return rows(x.detach().t()).t(); };
  const at::Tensor y = linear_product(of.x, of.used(), of.weight.grad(), /*fused=*/false);
  EXPECT_LE(distance(y, at::mm(rows(of.x), rows(of.weight).t())), kBound);
  EXPECT_GE(distance(y, at::mm(of.x.detach(), of.weight.detach().t()).to(at::kDouble)), 1e-3)
      << "the product of the numbers before rounding is another";
  torch::autograd::backward({y}, {of.dy});
  EXPECT_LE(distance(of.x.grad(), at::mm(rows(of.dy), columns(of.weight))), kBound);
  EXPECT_LE(distance(of.weight.grad(), at::mm(columns(of.dy).t(), columns(of.x))), kBound);
  // Powers of two move a number of e4m3 to other steps only where it is small beside its scale.
  const at::Tensor other = at::mm(rows(of.dy).t(), rows(of.x));
  EXPECT_GE(((of.weight.grad().to(at::kDouble) - other) / other).abs().max().item<double>(), 1e-3)
      << "numbers that were rounded along rows give another gradient";
}

TEST(BlockProduct, OfNvfp4HasSquaresOfTheWeightAndTransformsWhatTheWeightGradientAdds) {
  Operands of(BlockFormat::nvfp4);
  const at::Tensor hadamard = of.casts.hadamard.to(at::kDouble);
  const auto rows = [](const at::Tensor& x) { return blocks_by_hand(x.detach(), true); };
  // x^T [C, R] with each 16 of its numbers multiplied by the matrix, padded to 32 numbers.
  const auto columns = [&](const at::Tensor& x) {
    const at::Tensor turned = at::constant_pad_nd(x.detach().t().to(at::kDouble), {0, 9});
    const at::Tensor mixed =
        at::matmul(turned.reshape({-1, 2, 16}), hadamard).reshape({-1, 32}).to(at::kFloat);
    return rows(mixed);
  };
  const at::Tensor weight = blocks_by_hand(of.weight.detach(), true, /*squares=*/true);
  const at::Tensor y = linear_product(of.x, of.used(), of.weight.grad(), /*fused=*/false);
  EXPECT_LE(distance(y, at::mm(rows(of.x), weight.t())), kBound);
  torch::autograd::backward({y}, {of.dy});
  EXPECT_LE(distance(of.x.grad(), at::mm(rows(of.dy), weight)), kBound);
  EXPECT_LE(distance(of.weight.grad(), at::mm(columns(of.dy), columns(of.x).t())), kBound);
  EXPECT_LE(distance(of.weight.grad(), at::mm(of.dy.t(), of.x.detach()).to(at::kDouble)), 0.3)
      << "the transform is undone: what remains is the rounding to 4 bits";
}

TEST(BlockProduct, AddsItsWeightGradientToTheMainGradientOrDefersIt) {
  for (const BlockFormat format : {BlockFormat::mxfp8, BlockFormat::nvfp4}) {
    Operands plain(format), fused(format), later(format);
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
}

TEST(BlockProduct, OfExpertsIsTheProductOfEach) {
  for (const BlockFormat format : {BlockFormat::mxfp8, BlockFormat::nvfp4}) {
    const at::Tensor x = numbers({2, 6, 40}, 2), weight = numbers({2, 20, 40}, 0.7);
    Operands of(format);
    UsedWeight used{weight};
    used.blocks = of.casts.cast(weight, BlockCasts::Operand::weight);
    used.block_casts = of.casts;
    const at::Tensor all = linear_product(x, used, {}, false);
    for (std::int64_t e = 0; e < 2; ++e)
      EXPECT_TRUE(at::equal(all[e], linear_product(x[e], used.of_expert(e), {}, false))) << e;
    at::Tensor none = x[0].narrow(0, 0, 0).detach().requires_grad_(true);
    const at::Tensor y = linear_product(none, used.of_expert(0), {}, false);
    EXPECT_EQ(y.sizes(), (at::IntArrayRef{0, 20})) << "an expert without tokens";
    torch::autograd::backward({y}, {at::zeros({0, 20})});
    EXPECT_EQ(none.grad().sizes(), (at::IntArrayRef{0, 40}));
  }
}

/// Notes the casts whose scales it sees, and doubles those of blocks of mxfp8.
struct Doubles : faults::FaultHooks {
  void block_scales(const faults::BlockCast& cast, at::Tensor& of_block, at::Tensor&) override {
    seen.push_back({cast.operand, cast.transposed});
    of_block = of_block + 1;
  }
  std::vector<std::pair<int, bool>> seen;
};

TEST(BlockProduct, EachCastCanBeGivenOtherScales) {
  Operands of(BlockFormat::mxfp8);
  Doubles hooks;
  of.casts.faults = &hooks;
  const at::Tensor x = of.x.detach(),
                   got = in_fp32(of.casts.cast(x, BlockCasts::Operand::gradient).rows)
                             .narrow(1, 0, 40);
  EXPECT_EQ(hooks.seen, (std::vector<std::pair<int, bool>>{{2, false}, {2, true}}));
  EXPECT_FALSE(at::equal(got.to(at::kDouble), blocks_by_hand(x, false)));
  EXPECT_LE(distance(got, x.to(at::kDouble)), 0.07) << "a number of e4m3 has 4 bits";
}

}  // namespace
}  // namespace graphproof::workloads::block_product_test
