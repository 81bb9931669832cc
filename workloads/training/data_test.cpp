#include "workloads/training/data.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "workloads/layers/tensor_parallel.h"

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

ModelConfig with_images() {
  ModelConfig config = kConfig;
  config.seq_length = 16;
  config.encoder_layers = 1;
  config.images = 3;
  return config;
}

TEST(Data, ImagesFollowOneAnotherAndTakePlacesInTheirOwnSequences) {
  const ModelConfig config = with_images();
  const std::int64_t rows = config.microbatch_size, tokens = rows * config.images * 4;
  const Batch batch = make_batch(config, {}, 1, 0, at::kCPU);
  ASSERT_EQ(batch.patches.size(), batch.tokens.size());
  EXPECT_EQ(batch.patches[0].sizes(),
            (std::vector<std::int64_t>{tokens, ModelConfig::kPatchNumbers}));
  for (std::int64_t t = 0; t < tokens; ++t) {
    EXPECT_EQ(batch.images[0].index({0, t}).item<std::int64_t>(), t / 4);
    const auto place = batch.image_rows[0][t].item<std::int64_t>();
    EXPECT_EQ(place / config.seq_length, t / 4 / config.images)
        << "the sequence of image token " << t;
    if (t == 0) continue;
    const auto before = batch.image_rows[0][t - 1].item<std::int64_t>();
    EXPECT_TRUE(t % 4 > 0 ? place == before + 1 : place > before) << place << " " << before;
  }
  EXPECT_FALSE(at::equal(batch.patches[0], batch.patches[1]));
  EXPECT_FALSE(at::equal(batch.patches[0], make_batch(config, {}, 1, 1, at::kCPU).patches[0]));
  EXPECT_TRUE(make_batch(kConfig, {}, 1, 0, at::kCPU).patches.empty());
}

TEST(Data, EachImageTokenHasARowOnTheOneRankThatHasItsPlace) {
  const ModelConfig config = with_images();
  const at::Tensor whole = make_batch(config, {}, 1, 0, at::kCPU).image_rows[0];
  for (const Layout& layout :
       {Layout{.tp = 2, .sequence_parallel = true}, Layout{.cp = 2}, Layout{.cp = 4},
        Layout{.tp = 2, .sequence_parallel = true, .cp = 2}, Layout{.tp = 2}}) {
    const std::int64_t own =
        config.microbatch_size * layout.own_length(config) / layout.sequence_parts();
    at::Tensor held = at::zeros_like(whole);
    for (int cp_rank = 0; cp_rank < layout.cp; ++cp_rank)
      for (int tp_rank = 0; tp_rank < layout.sequence_parts(); ++tp_rank) {
        Layout rank = layout;
        rank.cp_rank = cp_rank;
        rank.tp_rank = tp_rank;
        const Batch batch = make_batch(config, rank, 1, 0, at::kCPU);
        const at::Tensor& rows = batch.image_rows[0];
        held += rows.lt(own);
        // The token that an image token replaces is the same as on a rank with whole sequences.
        const at::Tensor mine = rows_of(batch.tokens[0], rank).narrow(0, tp_rank * own, own);
        const at::Tensor all = make_batch(config, {}, 1, 0, at::kCPU).tokens[0].view({-1});
        for (std::int64_t t = 0; t < rows.numel(); ++t) {
          const auto row = rows[t].item<std::int64_t>();
          if (row == own) continue;
          EXPECT_EQ(mine[row].item<std::int64_t>(),
                    all[whole[t].item<std::int64_t>()].item<std::int64_t>())
              << "image token " << t;
        }
      }
    EXPECT_TRUE(held.eq(1).all().item<bool>()) << "tp " << layout.tp << " cp " << layout.cp;
  }
}

TEST(Data, MissingImagesArePaddingBehindTheOthers) {
  ModelConfig config = with_images();
  config.image_counts = ImageCounts::variable;
  std::set<std::int64_t> counts;
  for (std::int64_t step = 0; step < 4; ++step) {
    const Batch batch = make_batch(config, {}, 1, step, at::kCPU);
    for (std::size_t m = 0; m < batch.images.size(); ++m) {
      const at::Tensor padding = batch.images[m].view({-1}).lt(0);
      const auto real = padding.numel() - padding.sum().item<std::int64_t>();
      counts.insert(real / 4);
      EXPECT_EQ(real % 4, 0);
      EXPECT_FALSE(padding.narrow(0, 0, real).any().item<bool>());
      EXPECT_TRUE(
          at::equal(batch.image_rows[m].eq(config.microbatch_size * config.seq_length), padding));
      const Batch other = with_image_padding(batch, 3);
      EXPECT_TRUE(
          at::equal(other.patches[m].narrow(0, 0, real), batch.patches[m].narrow(0, 0, real)));
      EXPECT_TRUE(
          other.patches[m].narrow(0, real, padding.numel() - real).eq(3).all().item<bool>());
    }
  }
  EXPECT_GT(counts.size(), 2u) << "the number of images does not vary";
}

TEST(Data, LateImagesComeAfterThreeStepsAndTheirTensorsFromTheFirst) {
  ModelConfig config = with_images(), fixed = config;
  config.image_counts = ImageCounts::late;
  for (std::int64_t step = 0; step < 5; ++step) {
    const Batch batch = make_batch(config, {}, 1, step, at::kCPU);
    EXPECT_EQ(batch.images[0].ge(0).all().item<bool>(), step >= 3) << "step " << step;
    EXPECT_EQ(batch.images[0].lt(0).all().item<bool>(), step < 3) << "step " << step;
    EXPECT_EQ(batch.patches[0].sizes(),
              make_batch(fixed, {}, 1, step, at::kCPU).patches[0].sizes());
  }
}

TEST(Data, ImagesWithoutRoomAreRefused) {
  const auto message = [](const ModelConfig& config) -> std::string {
    try {
      make_batch(config, {}, 1, 0, at::kCPU);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  ModelConfig longer = with_images(), more = with_images();
  longer.vision_seq_length = longer.microbatch_size * 12 - 1;
  more.images = 5;
  EXPECT_NE(message(longer).find("rule B21"), std::string::npos) << message(longer);
  EXPECT_NE(message(more).find("got up to 5 images of 4 tokens in a sequence of 16 tokens"),
            std::string::npos)
      << message(more);
  longer.vision_seq_length += 1;
  EXPECT_EQ(message(longer), "");
}

TEST(Data, TheLengthOfTheEncoderIsGivenOrFollowsFromImagesOrFromPositionsAndMerging) {
  ModelConfig config = with_images();
  EXPECT_EQ(config.encoder_length(), config.microbatch_size * 3 * 4);
  config.vision_length = VisionLength::encoder;
  EXPECT_EQ(config.encoder_length(), 4096);
  config.vision_positions = 150;
  EXPECT_EQ(config.encoder_length(), 150);
  config.vision_merge_size = 2;
  EXPECT_EQ(config.encoder_length(), 37);
  const Batch batch = make_batch(config, {}, 1, 0, at::kCPU);
  EXPECT_EQ(batch.patches[0].sizes(), (std::vector<std::int64_t>{37, 48}));
  config.vision_seq_length = 40;
  EXPECT_EQ(config.encoder_length(), 40);
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

TEST(Data, AnImageOfAPackedSequenceLiesInOneDocument) {
  ModelConfig config = with_images(), text = kConfig;
  config.packed = text.packed = true;
  text.seq_length = config.seq_length;
  config.image_counts = ImageCounts::variable;
  const std::int64_t rows = config.microbatch_size * config.seq_length;
  std::int64_t cut = 0, in_padding = 0;  // by the documents of a text with the same lengths
  for (std::int64_t step = 0; step < 4; ++step) {
    const Batch batch = make_batch(config, {}, 1, step, at::kCPU),
                of_text = make_batch(text, {}, 1, step, at::kCPU);
    for (std::size_t m = 0; m < batch.documents.size(); ++m) {
      const at::Tensor documents = batch.documents[m].view({-1}),
                       before = of_text.documents[m].view({-1});
      for (std::int64_t t = 0; t < batch.image_rows[m].numel(); t += 4) {
        const auto row = batch.image_rows[m][t].item<std::int64_t>();
        if (row == rows) continue;
        const at::Tensor image = documents.narrow(0, row, 4), was = before.narrow(0, row, 4);
        EXPECT_TRUE(image.eq(image[0]).all().item<bool>()) << "step " << step << " row " << row;
        EXPECT_GE(image[0].item<std::int64_t>(), 0) << "an image in padding";
        cut += was.eq(was[0]).all().item<bool>() ? 0 : 1;
        in_padding += was.lt(0).any().item<bool>();
      }
      for (std::int64_t b = 0; b < config.microbatch_size; ++b)
        for (std::int64_t s = 1; s < config.seq_length; ++s) {
          const auto last = batch.documents[m].index({b, s - 1}).item<std::int64_t>(),
                     next = batch.documents[m].index({b, s}).item<std::int64_t>();
          EXPECT_TRUE(next < 0 || (last >= 0 && next >= last)) << "documents follow one another";
        }
      EXPECT_NEAR(batch.weights[m].sum().item<double>(), 1, 1e-6);
    }
  }
  EXPECT_GT(cut, 0) << "no border had to move";
  EXPECT_GT(in_padding, 0) << "no padding had to move";
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

TEST(Data, APullInACircleGivesAllExpertsEquallyManyTokens) {
  // Two ranks of six tokens each, of which each goes to two of four experts.
  const at::Tensor first = pull_in_circle(6, 4, 2, /*first=*/0, /*circle=*/4),
                   second = pull_in_circle(6, 4, 2, /*first=*/6, /*circle=*/4);
  EXPECT_TRUE(at::equal((first + second).sum(0), at::full({4}, 6.0)));
  EXPECT_TRUE(at::equal(first.sum(1), at::full({6}, 2.0)));
  EXPECT_TRUE(at::equal(second[1], at::tensor({1.0F, 0.0F, 0.0F, 1.0F}))) << "3, and then 0";
  // Of five numbers the fifth is that of the first expert, which gets more.
  const at::Tensor uneven = pull_in_circle(5, 4, 1, /*first=*/0, /*circle=*/5);
  EXPECT_TRUE(at::equal(uneven.sum(0), at::tensor({2.0F, 1.0F, 1.0F, 1.0F})));
}

TEST(Data, AStrongestPullSendsEveryTokenToTheFirstExperts) {
  ModelConfig config = kConfig;
  config.experts = 4;
  config.topk = 2;
  config.paged_stash = true;
  Batch batch = make_batch(config, {}, 1, 0, at::kCPU);
  batch.expert_pull[0] = pull_in_circle(18, 4, 2, /*first=*/0, /*circle=*/4);
  const Batch pulled = with_expert_pull(batch, 2);
  for (const at::Tensor& pull : {pulled.expert_pull[0], pulled.expert_pull[1]}) {
    EXPECT_TRUE(pull.narrow(-1, 0, 2).eq(kStrongestPull).all().item<bool>());
    EXPECT_TRUE(pull.narrow(-1, 2, 2).eq(0).all().item<bool>()) << "nothing of the pull before";
  }
}

}  // namespace
}  // namespace graphproof::workloads
