#include "workloads/training/data.h"

#include <gtest/gtest.h>

namespace graphproof::workloads {
namespace {

const ModelConfig kConfig{.vocab = 50, .seq_length = 6, .microbatch_size = 3, .microbatches = 2};

TEST(Data, LabelsAreTheTokensMovedByOne) {
  const Batch batch = make_batch(kConfig, {}, 1, 0, at::kCPU);
  ASSERT_EQ(batch.tokens.size(), 2u);
  for (std::size_t m = 0; m < batch.tokens.size(); ++m) {
    EXPECT_EQ(batch.tokens[m].sizes(), (std::vector<std::int64_t>{3, 6}));
    EXPECT_TRUE(at::equal(batch.tokens[m].narrow(1, 1, 5), batch.labels[m].narrow(1, 0, 5)));
    EXPECT_GE(batch.tokens[m].min().item<std::int64_t>(), 0);
    EXPECT_LT(batch.tokens[m].max().item<std::int64_t>(), 50);
  }
}

TEST(Data, EveryStepSeedAndSequenceHasItsOwnSamples) {
  const Batch batch = make_batch(kConfig, {}, 1, 0, at::kCPU);
  EXPECT_FALSE(at::equal(batch.tokens[0], batch.tokens[1]));
  EXPECT_FALSE(at::equal(batch.tokens[0][0], batch.tokens[0][1]));
  EXPECT_FALSE(at::equal(batch.tokens[0], make_batch(kConfig, {}, 1, 1, at::kCPU).tokens[0]));
  EXPECT_FALSE(at::equal(batch.tokens[0], make_batch(kConfig, {}, 2, 0, at::kCPU).tokens[0]));
}

TEST(Data, DataParallelRanksShareTheGlobalBatchOfOneRank) {
  ModelConfig whole = kConfig;
  whole.microbatches = 4;
  const Batch global = make_batch(whole, {}, 1, 5, at::kCPU);
  for (int rank = 0; rank < 2; ++rank) {
    const Batch part = make_batch(kConfig, {.dp = 2, .dp_rank = rank}, 1, 5, at::kCPU);
    for (int m = 0; m < 2; ++m) {
      EXPECT_TRUE(at::equal(part.tokens[m], global.tokens[rank * 2 + m]))
          << "rank " << rank << " microbatch " << m;
      EXPECT_TRUE(at::equal(part.labels[m], global.labels[rank * 2 + m]))
          << "rank " << rank << " microbatch " << m;
    }
  }
}

TEST(Data, ContextParallelRanksHaveAnEarlyAndALateChunkOfEverySequence) {
  ModelConfig config = kConfig;
  config.seq_length = 8;
  const Batch whole = make_batch(config, {}, 1, 5, at::kCPU);
  const std::vector<std::vector<std::int64_t>> positions = {{0, 1, 6, 7}, {2, 3, 4, 5}};
  for (int rank = 0; rank < 2; ++rank) {
    const Batch part = make_batch(config, {.cp = 2, .cp_rank = rank}, 1, 5, at::kCPU);
    for (std::size_t m = 0; m < 2; ++m) {
      ASSERT_EQ(part.tokens[m].sizes(), (std::vector<std::int64_t>{3, 4}));
      for (std::int64_t s = 0; s < 4; ++s) {
        const std::int64_t position =
            positions[static_cast<std::size_t>(rank)][static_cast<std::size_t>(s)];
        EXPECT_TRUE(at::equal(part.tokens[m].select(1, s), whole.tokens[m].select(1, position)));
        EXPECT_TRUE(at::equal(part.labels[m].select(1, s), whole.labels[m].select(1, position)));
      }
    }
  }
}

TEST(Data, TensorParallelRanksReadTheSameSamples) {
  EXPECT_TRUE(at::equal(make_batch(kConfig, {.tp = 2, .tp_rank = 0}, 1, 3, at::kCPU).tokens[1],
                        make_batch(kConfig, {.tp = 2, .tp_rank = 1}, 1, 3, at::kCPU).tokens[1]));
}

TEST(Data, PackedSequencesAreConsecutiveDocumentsAndPadding) {
  ModelConfig config = kConfig;
  config.seq_length = 16;
  config.packed = true;
  const Batch batch = make_batch(config, {}, 1, 0, at::kCPU),
              other = make_batch(config, {}, 1, 1, at::kCPU);
  ASSERT_EQ(batch.documents.size(), 2u);
  EXPECT_FALSE(at::equal(batch.documents[0], batch.documents[1]));
  EXPECT_FALSE(at::equal(batch.documents[0], other.documents[0]));
  EXPECT_EQ(batch.documents[0].sizes(), other.documents[0].sizes());
  for (std::size_t m = 0; m < 2; ++m) {
    EXPECT_NEAR(batch.weights[m].sum().item<double>(), 1, 1e-6);
    for (std::int64_t b = 0; b < 3; ++b)
      for (std::int64_t s = 0; s < 16; ++s) {
        const auto document = batch.documents[m].index({b, s}).item<std::int64_t>();
        const auto next = s < 15 ? batch.documents[m].index({b, s + 1}).item<std::int64_t>() : -2;
        EXPECT_TRUE(next == document || next == document + 1 || next < 0)
            << "documents follow one another";
        EXPECT_EQ(batch.weights[m].index({b, s}).item<float>() > 0,
                  document >= 0 && next == document)
            << "only a label of the same document counts";
      }
    EXPECT_EQ(batch.documents[m].select(1, 0).max().item<std::int64_t>(), 0);
    EXPECT_GT(batch.documents[m].max().item<std::int64_t>(), 0);
  }
  EXPECT_TRUE(make_batch(kConfig, {}, 1, 0, at::kCPU).documents.empty());
}

TEST(Data, ContextParallelRanksKnowAllDocumentsAndShareTheWeights) {
  ModelConfig config = kConfig;
  config.seq_length = 16;
  config.packed = true;
  const Batch whole = make_batch(config, {}, 1, 0, at::kCPU);
  double sum = 0;
  for (int rank = 0; rank < 2; ++rank) {
    const Batch part = make_batch(config, {.cp = 2, .cp_rank = rank}, 1, 0, at::kCPU);
    EXPECT_TRUE(at::equal(part.documents[0], whole.documents[0]));
    sum += part.weights[0].sum().item<double>();
  }
  EXPECT_NEAR(sum, 2, 1e-6);
}

}  // namespace
}  // namespace graphproof::workloads
