// The vision encoder under every engine: its parts are graphs of their own, with or without a
// backward, padding has no influence, images may come late, and the faults have their effects.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "workloads/engines/step/static_inputs.h"
#include "workloads/layers/fp8_weights.h"
#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::vision_test {
namespace {

using fixtures::Fault;
using workloads::ImageCounts;
using workloads::ModelConfig;

constexpr std::int64_t kWarmup = 2, kSteps = 6;

ModelConfig vlm(ImageCounts counts = ImageCounts::variable, bool frozen = false) {
  return {.hidden = 32,
          .heads = 4,
          .kv_groups = 2,
          .ffn = 64,
          .vocab = 64,
          .seq_length = 12,
          .microbatches = 2,
          .encoder_layers = 3,
          .images = 2,
          .image_counts = counts,
          .freeze_vision_model = frozen};
}

std::vector<bool> equal_steps(const std::string& impl, const ModelConfig& model, Fault fault) {
  TwinSteps twins(model, {}, {.impl = impl, .warmup_steps = kWarmup}, fault);
  std::vector<bool> equal;
  for (std::int64_t i = 0; i < kSteps; ++i) equal.push_back(twins.step(i).equal);
  twins.graph->drop_graphs();
  return equal;
}

/// The names of the graphs of the encoder, sorted.
std::vector<std::string> encoder_graphs(const Witness& witness) {
  std::vector<std::string> graphs;
  for (const CaptureReport& report : witness.reports)
    if (report.graph.starts_with("vision.")) graphs.push_back(report.graph);
  std::ranges::sort(graphs);
  return graphs;
}

TEST(Vision, EveryEngineReplaysItBitForBitWhateverImagesCome) {
  for (const EngineTraits& engine : kEngineTraits)
    for (const ImageCounts counts : {ImageCounts::fixed, ImageCounts::variable, ImageCounts::late})
      for (const bool frozen : {false, true}) {
        if (!engine.captures()) continue;
        const std::string impl(engine.impl);
        SCOPED_TRACE(impl + ", image counts " + std::to_string(static_cast<int>(counts)) +
                     (frozen ? ", frozen" : ""));
        TwinSteps twins(vlm(counts, frozen), {}, {.impl = impl, .warmup_steps = kWarmup});
        for (std::int64_t i = 0; i < kSteps; ++i)
          EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
        const Counters counters = twins.graph->counters();
        EXPECT_EQ(counters.replays,
                  (kSteps - engine.eager_steps(kWarmup)) * counters.launches_per_step);
        EXPECT_EQ(counters.captures, counters.graphs);
        EXPECT_EQ(counters.out_of_order, 0);
        EXPECT_EQ(workloads::on_host(twins.graph_step().layer_counter()),
                  std::vector<float>(5, 2 * kSteps));
        EXPECT_EQ(twins.witness.canaries, 0);
        EXPECT_TRUE(twins.witness.moved_tensors.empty());
        EXPECT_TRUE(twins.witness.changed_by.empty());
        twins.graph->drop_graphs();
      }
}

TEST(Vision, PartsOfTheEncoderAreGraphsOfTheirOwnAndOfAFrozenOneForwardsAlone) {
  for (const char* impl : {"local", "transformer_engine", "callables"})
    for (const bool frozen : {false, true}) {
      SCOPED_TRACE(std::string(impl) + (frozen ? ", frozen" : ""));
      TwinSteps twins(
          vlm(ImageCounts::variable, frozen), {},
          {.impl = impl, .modules = {workloads::ModuleKind::attn}, .warmup_steps = kWarmup});
      for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
      std::vector<std::string> want;
      for (const char* layer : {"0", "1", "2"})
        for (const char* direction : {"backward", "forward"})
          if (!frozen || direction == std::string("forward"))
            want.push_back(std::string("vision.layers.") + layer + ".attn." + direction);
      EXPECT_EQ(encoder_graphs(twins.witness), want);
      // Two layers of the decoder, three of the encoder, two microbatches.
      EXPECT_EQ(twins.graph->counters().launches_per_step, 2 * (2 * 2 + (frozen ? 1 : 2) * 3));
      twins.graph->drop_graphs();
    }
}

TEST(Vision, GraphsOfTheEncoderAloneAndOfTheDecoderAloneReplayBitForBit) {
  struct Row {
    CapturedModels captured;
    bool frozen, parts;
    std::int64_t launches;  // in a step: two layers of the decoder, three of the encoder
  };
  for (const char* impl : {"local", "transformer_engine", "callables"})
    for (const Row& row : {Row{CapturedModels::encoder, false, false, 2 * 2 * 3},
                           Row{CapturedModels::encoder, true, true, 2 * 1 * 3},
                           Row{CapturedModels::decoder, false, true, 2 * 2 * 2},
                           Row{CapturedModels::decoder, true, false, 2 * 2 * 2}}) {
      SCOPED_TRACE(std::string(impl) + ", launches " + std::to_string(row.launches));
      EngineConfig config{.impl = impl, .captured_models = row.captured, .warmup_steps = kWarmup};
      if (row.parts) config.modules = {workloads::ModuleKind::attn};
      TwinSteps twins(vlm(ImageCounts::variable, row.frozen), {}, config);
      for (std::int64_t i = 0; i < kSteps; ++i)
        EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
      EXPECT_EQ(twins.graph->counters().launches_per_step, row.launches);
      for (const CaptureReport& report : twins.witness.reports)
        EXPECT_EQ(report.graph.starts_with("vision."), row.captured == CapturedModels::encoder)
            << report.graph;
      EXPECT_EQ(twins.witness.canaries, 0);
      EXPECT_TRUE(twins.witness.changed_by.empty());
      twins.graph->drop_graphs();
    }
}

TEST(VisionFaults, M506LosesImagesInReplaysAlone) {
  ModelConfig model = vlm(ImageCounts::fixed);
  model.vision_length = workloads::VisionLength::encoder;
  model.vision_positions = 70;
  model.vision_merge_size = 2;
  for (const Fault fault : {Fault::none, Fault::length_merged_twice}) {
    std::vector<bool> want(kSteps, true);
    if (fault != Fault::none) std::fill(want.begin() + kWarmup, want.end(), false);
    EXPECT_EQ(equal_steps("full_iteration", model, fault), want);
  }
}

TEST(VisionFaults, OfAnEncoderThatIsCapturedAloneHaveTheirEffects) {
  for (const Fault fault :
       {Fault::none, Fault::captured_models_ignored, Fault::encoder_gradient_of_other_microbatch}) {
    TwinSteps twins(
        vlm(), {},
        {.impl = "local", .captured_models = CapturedModels::encoder, .warmup_steps = kWarmup},
        fault);
    std::int64_t equal = 0;
    for (std::int64_t i = 0; i < kSteps; ++i) equal += twins.step(i).equal;
    const bool late = fault == Fault::encoder_gradient_of_other_microbatch;
    EXPECT_EQ(equal == kSteps, !late);
    EXPECT_EQ(twins.graph->counters().launches_per_step,
              2 * 2 * (fault == Fault::captured_models_ignored ? 5 : 3));
    twins.graph->drop_graphs();
  }
}

TEST(Vision, ItsLayersMultiplyInFp8AndFp4AsThoseOfTheDecoder) {
  using workloads::Precision;
  struct Row {
    Precision precision;
    bool copies, frozen;
  };
  for (const EngineTraits& engine : kEngineTraits)
    for (const Row& row :
         {Row{Precision::fp32, true, true}, Row{Precision::fp8_delayed, true, false},
          Row{Precision::fp8_current, false, true}, Row{Precision::mxfp8, false, false},
          Row{Precision::nvfp4, true, true}}) {
      if (!engine.captures()) continue;
      const std::string impl(engine.impl);
      // Blocks take long by value; one engine of parts and one of steps show them.
      if (workloads::is_block_scaled(row.precision) && impl != "local" && impl != "full_iteration")
        continue;
      SCOPED_TRACE(impl + ", precision " + std::to_string(static_cast<int>(row.precision)));
      ModelConfig model = vlm(ImageCounts::variable, row.frozen);
      model.precision = row.precision;
      model.fp8_weights = row.copies;
      TwinSteps twins(model, {}, {.impl = impl, .warmup_steps = kWarmup});
      for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
      if (row.copies) {
        EXPECT_EQ(workloads::on_host(workloads::copies_made(twins.graph_step().ledgers())),
                  std::vector<float>(5, 4));
      }
      twins.graph->drop_graphs();
    }
}

TEST(Vision, ItsScalesMoveWithWhatItsLayersMeet) {
  for (const char* impl : {"none", "local", "full_iteration"}) {
    SCOPED_TRACE(impl);
    ModelConfig model = vlm(ImageCounts::fixed);
    model.precision = workloads::Precision::fp8_delayed;
    TwinSteps twins(model, {}, {.impl = impl, .warmup_steps = kWarmup});
    // Five layers of four linear layers: an input and a weight each, and a gradient.
    for (std::int64_t i = 0; i < 2; ++i) (void)twins.step(i);
    for (const auto& [name, tensor] : twins.graph_step().optimizer_state()) {
      if (!name.starts_with("state:fp8.") || !name.ends_with(".scale")) continue;
      const bool forward = name.find("forward") != std::string::npos;
      const auto scales = workloads::on_host(tensor);
      ASSERT_EQ(scales.size(), forward ? 5u * 4 * 2 : 5u * 4) << name;
      for (std::size_t i = 0; i < scales.size(); ++i)
        EXPECT_NE(scales[i], 1) << name << " " << i << " is as at the beginning";
    }
    twins.graph->drop_graphs();
  }
}

TEST(Vision, ItsOwnEndsStayInTheModelsTypeWithFirstAndLastLayersInBf16) {
  ModelConfig model = vlm(ImageCounts::fixed);
  model.layers = 3;
  model.fp8_weights = model.first_last_layers_bf16 = true;
  TwinSteps twins(model, {}, {.impl = "local", .warmup_steps = kWarmup});
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
  EXPECT_EQ(workloads::on_host(workloads::copies_made(twins.graph_step().ledgers())),
            (std::vector<float>{0, 4, 0, 0, 4, 0}));
  twins.graph->drop_graphs();
}

TEST(Vision, ReplaysFollowTheDocumentsOfPackedSequencesWithImages) {
  for (const EngineTraits& engine : kEngineTraits) {
    if (!engine.captures()) continue;
    const std::string impl(engine.impl);
    SCOPED_TRACE(impl);
    ModelConfig packed = vlm(ImageCounts::variable);
    packed.packed = true;
    TwinSteps twins(packed, {}, {.impl = impl, .warmup_steps = kWarmup});
    for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
    EXPECT_EQ(twins.witness.canaries, 0);
    EXPECT_TRUE(twins.witness.moved_tensors.empty());
    twins.graph->drop_graphs();
  }
}

TEST(Vision, AFrozenEncoderKeepsItsParametersAndHasNoGradients) {
  TwinSteps twins(vlm(ImageCounts::fixed, /*frozen=*/true), {},
                  {.impl = "local", .warmup_steps = kWarmup});
  const auto frozen = twins.graph_step().frozen();
  ASSERT_FALSE(frozen.empty());
  std::vector<std::vector<float>> before;
  for (const auto& one : frozen) before.push_back(workloads::on_host(one.tensor));
  for (std::int64_t i = 0; i < 4; ++i) (void)twins.step(i);
  for (std::size_t i = 0; i < frozen.size(); ++i) {
    EXPECT_EQ(workloads::on_host(frozen[i].tensor), before[i]) << frozen[i].name;
    EXPECT_FALSE(frozen[i].tensor.grad().defined()) << frozen[i].name;
  }
  for (const auto& gradient : twins.graph_step().gradients())
    EXPECT_EQ(gradient.name.starts_with("grad:vision."),
              gradient.name == "grad:vision.projection.weight")
        << gradient.name;
  twins.graph->drop_graphs();
}

TEST(Vision, WhatPaddingHoldsMakesNoDifference) {
  for (const char* impl : {"none", "local", "transformer_engine", "full_iteration"}) {
    SCOPED_TRACE(impl);
    TwinSteps twins(vlm(), {}, {.impl = impl, .warmup_steps = kWarmup});
    for (std::int64_t i = 0; i < kSteps; ++i) {
      const auto batch = twins.batch(i);
      twins.eager->step(batch, 0.1);
      twins.graph->step(workloads::with_image_padding(batch, 3), 0.1);
      twins.device().synchronize();
      EXPECT_EQ(difference(fixtures::compare(twins.eager->outputs(), twins.graph->outputs())), "")
          << "step " << i;
    }
    twins.graph->drop_graphs();
  }
}

TEST(Vision, ABatchThatGainsImagesAfterTheCaptureIsRefused) {
  TwinSteps twins(vlm(), {}, {.impl = "full_iteration", .warmup_steps = kWarmup});
  faults::FaultHooks sound;
  StaticInputs inputs(std::nullopt, sound);
  workloads::Batch without = twins.batch(0);
  without.patches.clear();
  without.images.clear();
  without.image_rows.clear();
  inputs.load(without);
  try {
    inputs.load(twins.batch(1));
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(std::string(error.what()),
              "static inputs: got 2 tensors patches; want 0; why: the graph reads what its first "
              "batch had, and would never read the others; next: give every batch the same "
              "tensors, those of missing images with padding alone");
  }
}

TEST(Vision, MoreImageTokensThanTheCapturedLengthAreRefused) {
  TwinSteps twins(vlm(), {}, {.impl = "none"});
  workloads::Batch batch = twins.batch(0);
  for (at::Tensor& patches : batch.patches) patches = patches.repeat({2, 1});
  try {
    twins.graph->step(batch, 0.1);
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("got 32 image tokens; want 16"), std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("rule B21"), std::string::npos) << error.what();
  }
}

using Equal = std::vector<bool>;

TEST(VisionFaults, ChangeReplaysAloneOrAllStepsAsTheTableSays) {
  struct Row {
    Fault fault;
    const char* impl;
    ModelConfig model;
    Equal equal;
  };
  const ModelConfig fixed = vlm(ImageCounts::fixed), late = vlm(ImageCounts::late);
  ModelConfig copies = fixed, scales = fixed, packed = fixed;
  copies.fp8_weights = packed.packed = true;
  scales.precision = workloads::Precision::fp8_delayed;
  const Equal replays_differ{true, true, false, false, false, false};
  for (const Row& row :
       {Row{Fault::image_count_by_value,
            "full_iteration",
            late,
            {true, true, true, false, false, false}},
        Row{Fault::image_boundaries_lost_in_capture, "transformer_engine", fixed, replays_differ},
        Row{Fault::image_boundaries_lost_in_capture,
            "local",
            fixed,
            {true, false, false, false, false, false}},
        Row{Fault::encoder_images_not_copied, "transformer_engine", fixed, replays_differ},
        Row{Fault::late_images_not_read,
            "full_iteration",
            late,
            {true, true, true, false, false, false}},
        Row{Fault::encoder_copies_stale,
            "local",
            copies,
            {true, false, false, false, false, false}},
        Row{Fault::encoder_scales_frozen, "transformer_engine", scales, replays_differ},
        Row{Fault::documents_counted_without_images,
            "full_iteration",
            packed,
            {true, false, false, false, false, false}},
        Row{Fault::encoder_gradient_lost, "none", fixed, Equal(kSteps, false)},
        Row{Fault::frozen_encoder_updated, "none", vlm(ImageCounts::fixed, /*frozen=*/true),
            Equal(kSteps, false)}}) {
    SCOPED_TRACE(std::string(row.impl) + ", fault " + std::to_string(static_cast<int>(row.fault)));
    EXPECT_EQ(equal_steps(row.impl, row.model, row.fault), row.equal);
    EXPECT_EQ(equal_steps(row.impl, row.model, Fault::none), Equal(kSteps, true));
  }
}

TEST(VisionFaults, M332LetsPaddingChangeTheResult) {
  for (const Fault fault : {Fault::none, Fault::image_padding_read_as_image}) {
    TwinSteps one(vlm(), {}, {.impl = "none"}, fault), other(vlm(), {}, {.impl = "none"}, fault);
    one.graph->step(one.batch(0), 0.1);
    other.graph->step(workloads::with_image_padding(other.batch(0), 3), 0.1);
    one.device().synchronize();
    EXPECT_EQ(fixtures::compare(one.graph->outputs(), other.graph->outputs()).equal,
              fault == Fault::none);
  }
}

}  // namespace
}  // namespace graphproof::engines::vision_test
