#include "workloads/scaled_products/scaled_mm.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "workloads/testing/refusal.h"

namespace graphproof::workloads::scaled_mm_test {
namespace {

/// Operands of a product that CUDA takes; each row of the test spoils one.
struct Operands {
  at::Tensor a = e4m3({32, 16}), b = e4m3({48, 16}).t(), a_inverse = at::full({1}, 0.5f),
             b_inverse = at::full({1}, 4.0f);
  at::ScalarType type = at::kBFloat16;

  static at::Tensor e4m3(std::vector<std::int64_t> sizes) {
    return at::ones(sizes, at::kFloat).to(at::kFloat8_e4m3fn);
  }
  at::Tensor product() const { return scaled_mm(a, b, a_inverse, b_inverse, type); }
};

TEST(ScaledMm, MultipliesByBothScalesInTheTypeAskedFor) {
  Operands of;
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf, at::kFloat}) {
    of.type = type;
    EXPECT_TRUE(at::equal(of.product(), at::full({32, 48}, 32.0f, type)));
  }
  of.a = of.a.to(at::kFloat).to(at::kFloat8_e5m2);
  EXPECT_TRUE(at::equal(of.product(), at::full({32, 48}, 32.0f)));
}

TEST(ScaledMm, RefusesWhatCudaRefuses) {
  const struct {
    const char* message;
    void (*spoil)(Operands&);
  } rows[] = {
      {"a with a dimension of 8", [](Operands& of) { of.a = Operands::e4m3({8, 16}); }},
      {"b with a dimension of 24", [](Operands& of) { of.b = Operands::e4m3({24, 16}).t(); }},
      {"a with a dimension of 8",
       [](Operands& of) {
         of.a = Operands::e4m3({32, 8});
         of.b = Operands::e4m3({48, 8}).t();
       }},
      {"a with a dimension of 0", [](Operands& of) { of.a = Operands::e4m3({0, 16}); }},
      {"a [32, 16] and b [32, 48]", [](Operands& of) { of.b = Operands::e4m3({48, 32}).t(); }},
      {"a of Float;", [](Operands& of) { of.a = of.a.to(at::kFloat); }},
      {"two operands of e5m2",
       [](Operands& of) {
         of.a = of.a.to(at::kFloat).to(at::kFloat8_e5m2);
         of.b = of.b.t().to(at::kFloat).to(at::kFloat8_e5m2).t();
       }},
      {"a with other strides", [](Operands& of) { of.a = Operands::e4m3({16, 32}).t(); }},
      {"b with other strides", [](Operands& of) { of.b = of.b.contiguous(); }},
      {"a with other strides",
       [](Operands& of) { of.a = Operands::e4m3({32, 32}).narrow(1, 0, 16); }},
      {"a at an unaligned address",
       [](Operands& of) {
         of.a = Operands::e4m3({32 * 16 + 1}).narrow(0, 1, 32 * 16).view({32, 16});
       }},
      {"the scale of b at an unaligned address",
       [](Operands& of) { of.b_inverse = at::ones({2}).narrow(0, 1, 1); }},
      {"a scale of a with 2 numbers of Float", [](Operands& of) { of.a_inverse = at::ones({2}); }},
      {"a scale of b with 1 numbers of Double",
       [](Operands& of) { of.b_inverse = at::ones({1}, at::kDouble); }},
      {"a result of Double", [](Operands& of) { of.type = at::kDouble; }},
  };
  for (const auto& row : rows) {
    Operands of;
    row.spoil(of);
    const std::string refused =
        engines::refusal<std::invalid_argument>([&] { return of.product(); });
    EXPECT_NE(refused.find(row.message), std::string::npos) << row.message << ": " << refused;
  }
}

}  // namespace
}  // namespace graphproof::workloads::scaled_mm_test
