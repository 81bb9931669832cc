#include "workloads/layers/tensor_parallel.h"

#include <gtest/gtest.h>

namespace graphproof::workloads::tensor_parallel_test {
namespace {

TEST(RowOrder, WithoutSequenceParallelismIsThatOfTheBatch) {
  const at::Tensor tokens = at::arange(3 * 8).view({3, 8});
  EXPECT_TRUE(rows_of(tokens, {.tp = 4}).equal(tokens.view({-1})));
  EXPECT_TRUE(sequences_of(tokens.view({-1}), 3, {.tp = 4}).equal(tokens));
}

TEST(RowOrder, OfEachRankIsItsPartOfEverySequence) {
  const Layout layout{.tp = 4, .sequence_parallel = true};
  const at::Tensor tokens = at::arange(3 * 8).view({3, 8});
  const at::Tensor rows = rows_of(tokens, layout);
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_TRUE(rows.narrow(0, rank * 6, 6).equal(tokens.narrow(1, rank * 2, 2).reshape({-1})))
        << "rank " << rank;
}

TEST(RowOrder, IsUndoneForAnyWidth) {
  const Layout layout{.tp = 2, .sequence_parallel = true};
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{3, 8}, {1, 8, 5}, {2, 4, 3, 5}}) {
    const at::Tensor x = at::arange(c10::multiply_integers(sizes)).view(sizes);
    EXPECT_TRUE(sequences_of(rows_of(x, layout), sizes[0], layout).equal(x)) << x.sizes();
  }
}

TEST(RowOrder, OnOneRankIsThatOfTheBatchEvenWithSequenceParallelism) {
  const at::Tensor tokens = at::arange(16).view({2, 8});
  EXPECT_TRUE(rows_of(tokens, {.sequence_parallel = true}).equal(tokens.view({-1})));
}

}  // namespace
}  // namespace graphproof::workloads::tensor_parallel_test
