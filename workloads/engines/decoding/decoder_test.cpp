// One test for each sentence of the contract in decoder.h, and for the faults of an inference job
// that one rank can show.
#include "workloads/engines/decoding/decoder.h"

#include <gtest/gtest.h>

#include "fixtures/inspect/host_copies.h"
#include "fixtures/inspect/tensor_comparison.h"
#include "workloads/faults/plant.h"
#include "workloads/testing/device_under_test.h"
#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::decoder_test {
namespace {

using fixtures::Fault;
using requests::Work;

constexpr std::int64_t kSteps = 64, kLayers = 2;
constexpr std::uint64_t kSeed = 5;

workloads::ModelConfig model_of(workloads::Precision precision = workloads::Precision::fp32) {
  return {.layers = kLayers,
          .hidden = 32,
          .heads = 4,
          .kv_groups = 2,
          .ffn = 64,
          .vocab = 64,
          .microbatch_size = 4,
          .precision = precision};
}

enum class Dispatch { drop_and_pad, dropless, gathered, flex };

workloads::ModelConfig moe_of(Dispatch dispatch) {
  workloads::ModelConfig model = model_of();
  model.experts = 4;
  model.topk = 2;
  model.dropless = dispatch != Dispatch::drop_and_pad;
  model.gather_tokens = dispatch == Dispatch::gathered;
  model.flex = dispatch == Dispatch::flex;
  return model;
}

workloads::ModelConfig hybrid_of(workloads::ModelConfig model = model_of()) {
  model.hybrid = true;
  return model;
}

workloads::ModelConfig latent_of(workloads::ModelConfig model = model_of()) {
  model.multi_latent_attention = true;
  model.kv_groups = model.heads;
  model.qkv_bias = true;
  return model;
}

DecoderConfig job_of(InferenceScope scope, bool sampled = false, std::int64_t chunk = 0) {
  return {.requests = {.slots = 4,
                       .length = 16,
                       .steps = kSteps,
                       .chunk = chunk,
                       .blocks = 0,
                       .ranks = 1,
                       .sizes = requests::powers_of_two(4)},
          .scope = scope,
          .sampled = sampled,
          .padding = 0};
}

/// An eager job, and one with graphs whose padding holds other numbers.
struct Jobs {
  explicit Jobs(DecoderConfig job, Fault fault = Fault::none,
                const workloads::ModelConfig& model = model_of())
      : device(workloads::device_under_test()),
        stream(device.stream_from_pool()),
        guard(stream),
        witness(device),
        eager_step(model, {}, device, kSeed, faults::plant(fault)),
        graph_step(model, {}, device, kSeed, faults::plant(fault)),
        eager(of(job, InferenceScope::none, 0), {.impl = "none"}, device, eager_step, nullptr),
        graph(of(job, job.scope, 5), {.impl = "local"}, device, graph_step, &witness) {
    graph.capture();
  }
  ~Jobs() { graph.drop_graphs(); }

  static DecoderConfig of(DecoderConfig job, InferenceScope scope, std::int64_t padding) {
    job.scope = scope;
    job.padding = padding;
    return job;
  }
  bool step(std::int64_t index) {
    eager.run(index);
    graph.run(index);
    device.synchronize();
    return fixtures::compare(fixtures::on_host(eager.results()), fixtures::on_host(graph.results()))
        .equal;
  }
  /// How many of all steps are equal.
  std::int64_t equal_steps() {
    std::int64_t equal = 0;
    for (std::int64_t index = 0; index < kSteps; ++index) equal += step(index) ? 1 : 0;
    return equal;
  }

  capture::Device& device;
  c10::Stream stream;
  c10::StreamGuard guard;
  Witness witness;
  workloads::TrainStep eager_step, graph_step;
  Decoder eager, graph;
};

TEST(Decoder, GraphsEqualEagerWhateverThePaddingHolds) {
  for (const InferenceScope scope : {InferenceScope::layer, InferenceScope::block})
    for (const bool sampled : {false, true})
      for (const std::int64_t chunk : {0, 3}) {
        Jobs jobs(job_of(scope, sampled, chunk));
        EXPECT_EQ(jobs.equal_steps(), kSteps)
            << "scope " << static_cast<int>(scope) << " sampled " << sampled << " chunk " << chunk;
        EXPECT_EQ(jobs.witness.canaries, 0);
        EXPECT_TRUE(jobs.witness.moved_tensors.empty());
        EXPECT_TRUE(jobs.witness.changed_by.empty());
      }
}

TEST(Decoder, GraphsOfExpertsEqualEagerWhateverThePaddingHolds) {
  for (const InferenceScope scope : {InferenceScope::layer, InferenceScope::block})
    for (const Dispatch dispatch : {Dispatch::drop_and_pad, Dispatch::flex})
      for (const bool more : {false, true}) {
        workloads::ModelConfig model = moe_of(dispatch);
        model.shared_expert = model.shared_expert_overlap = more;
        model.router_score_correction = more;
        Jobs jobs(job_of(scope, false, 3), Fault::none, model);
        EXPECT_EQ(jobs.equal_steps(), kSteps) << "scope " << static_cast<int>(scope) << " dispatch "
                                              << static_cast<int>(dispatch) << " more " << more;
        EXPECT_TRUE(jobs.witness.changed_by.empty());
      }
}

TEST(Decoder, EagerDispatchesOfInferenceAgreeWhateverThePaddingHolds) {
  for (const Dispatch dispatch : {Dispatch::dropless, Dispatch::gathered}) {
    Jobs jobs(job_of(InferenceScope::none), Fault::none, moe_of(dispatch));
    EXPECT_EQ(jobs.equal_steps(), kSteps) << static_cast<int>(dispatch);
  }
}

TEST(Decoder, GraphsOfMambaLayersEqualEagerWhateverThePaddingHolds) {
  for (const InferenceScope scope : {InferenceScope::layer, InferenceScope::block})
    for (const std::int64_t chunk : {0, 3})
      for (const auto& model : {hybrid_of(), hybrid_of(moe_of(Dispatch::drop_and_pad))}) {
        Jobs jobs(job_of(scope, false, chunk), Fault::none, model);
        EXPECT_EQ(jobs.equal_steps(), kSteps)
            << "scope " << static_cast<int>(scope) << " chunk " << chunk;
        EXPECT_TRUE(jobs.witness.changed_by.empty());
      }
}

TEST(Decoder, GraphsOfLatentAttentionEqualEagerWhateverThePaddingHolds) {
  for (const InferenceScope scope : {InferenceScope::layer, InferenceScope::block})
    for (const std::int64_t chunk : {0, 3})
      for (const auto& model : {latent_of(), latent_of(model_of(workloads::Precision::bf16)),
                                latent_of(hybrid_of(moe_of(Dispatch::flex)))}) {
        Jobs jobs(job_of(scope, false, chunk), Fault::none, model);
        EXPECT_EQ(jobs.equal_steps(), kSteps)
            << "scope " << static_cast<int>(scope) << " chunk " << chunk;
        EXPECT_TRUE(jobs.witness.moved_tensors.empty());
        EXPECT_TRUE(jobs.witness.changed_by.empty());
      }
}

// A latent of keys and values with its rotary part: 8 + 4 elements, where the keys and values of
// four heads would have 64.
TEST(Decoder, KeepsLatentsInsteadOfKeysAndValues) {
  Jobs jobs(job_of(InferenceScope::block), Fault::none, latent_of());
  std::vector<std::string> kept;
  for (const fixtures::NamedTensor& one : jobs.graph.results())
    if (one.tensor.dim() > 1 && one.name != "logits") {
      kept.push_back(one.name);
      EXPECT_EQ(one.tensor.size(1), 12) << one.name;
    }
  EXPECT_EQ(kept, (std::vector<std::string>{"latents.0", "latents.1"}));
}

TEST(Decoder, OnlyRowsOfRequestsChooseExperts) {
  for (const Fault fault : {Fault::none, Fault::padded_rows_are_routed}) {
    Jobs jobs(job_of(InferenceScope::block), fault, moe_of(Dispatch::drop_and_pad));
    std::int64_t other = 0;
    for (std::int64_t index = 0; index < kSteps; ++index) {
      jobs.step(index);
      const auto results = fixtures::on_host(jobs.graph.results());
      const std::int64_t rows = std::ssize(jobs.graph.planned(index).rows);
      for (std::int64_t layer = 0; layer < kLayers; ++layer)
        other += results[static_cast<std::size_t>(2 + layer)].tensor.sum().item<std::int64_t>() !=
                 2 * rows;
    }
    EXPECT_EQ(other == 0, fault == Fault::none);
  }
}

TEST(Decoder, GraphsEqualEagerInBf16) {
  Jobs jobs(job_of(InferenceScope::block), Fault::none, model_of(workloads::Precision::bf16));
  EXPECT_EQ(jobs.equal_steps(), kSteps);
}

TEST(Decoder, CapturesEverySizeOnceFromTheLargestToTheSmallest) {
  Jobs jobs(job_of(InferenceScope::block, false, 3));
  std::vector<std::string> graphs;
  for (const CaptureReport& report : jobs.witness.reports) graphs.push_back(report.graph);
  EXPECT_EQ(graphs, (std::vector<std::string>{"decode.4", "prefill.3", "decode.2", "decode.1"}));
  jobs.equal_steps();
  EXPECT_EQ(jobs.witness.reports.size(), graphs.size()) << "nothing is captured during the job";
}

TEST(Decoder, CapturesEachLayerOfScopeLayer) {
  Jobs jobs(job_of(InferenceScope::layer));
  ASSERT_EQ(jobs.witness.reports.size(), 3u * kLayers);
  EXPECT_EQ(jobs.witness.reports[0].graph, "decode.4.layer0");
  EXPECT_EQ(jobs.witness.reports[1].graph, "decode.4.layer1");
}

TEST(Decoder, SmallerGraphsReuseTheMemoryOfTheLargest) {
  Jobs jobs(job_of(InferenceScope::block));
  const auto& reports = jobs.witness.reports;
  EXPECT_GT(reports.front().pool_bytes, 0);
  for (std::size_t k = 1; k < reports.size(); ++k) EXPECT_EQ(reports[k].pool_bytes, 0) << k;
  const Jobs apart(job_of(InferenceScope::block), Fault::pool_for_every_size);
  EXPECT_GT(apart.witness.reports.back().pool_bytes, 0);
}

TEST(Decoder, ReplaysExactlyTheBatchesThatHaveAGraph) {
  Jobs jobs(job_of(InferenceScope::block));
  for (std::int64_t index = 0; index < kSteps; ++index) {
    jobs.witness.calls.clear();
    jobs.step(index);
    const requests::Step& planned = jobs.graph.planned(index);
    std::vector<std::string> wanted;
    if (planned.graph)
      wanted = {"before_replay all", "before_replay decode." + std::to_string(planned.size),
                "after_replay decode." + std::to_string(planned.size), "after_replay all"};
    EXPECT_EQ(jobs.witness.calls, wanted) << index;
  }
}

/// Whether request `wanted` gets the logits of one pass over its whole sequence, in which the
/// routers choose anew: no scores tie here.
bool equals_whole_sequence(Jobs& jobs, std::int64_t wanted) {
  const requests::Request request =
      requests::request(job_of(InferenceScope::none).requests, 0, wanted);
  at::Tensor sequence = at::zeros({4, 16}, at::kLong);
  for (std::int64_t place = 0; place < request.prompt; ++place)
    sequence[0][place] = requests::prompt_token(0, wanted, place, 64);
  std::vector<at::Tensor> logits;
  for (std::int64_t index = 0; std::ssize(logits) < request.output; ++index) {
    jobs.step(index);
    const auto results = fixtures::on_host(jobs.graph.results());
    const requests::Step& planned = jobs.graph.planned(index);
    for (auto row = planned.rows.end() - planned.sampled; row != planned.rows.end(); ++row) {
      if (row->request != wanted) continue;
      logits.push_back(results[0].tensor[row->slot]);
      if (row->position + 1 < 16) sequence[0][row->position + 1] = results[1].tensor[row->slot];
    }
  }
  const workloads::ModelConfig& model = jobs.graph_step.config();
  const at::TensorOptions flags =
      at::TensorOptions().device(jobs.device.torch_device()).dtype(at::kBool);
  workloads::ExpertChoices choices{
      .requested = at::ones({64}, flags),
      .experts = std::vector<at::Tensor>(
          kLayers, at::zeros({64, std::max<std::int64_t>(1, model.experts)}, flags))};
  const at::Tensor whole =
      jobs.graph_step.infer(sequence.to(jobs.device.torch_device()), nullptr, nullptr, &choices)
          .cpu();
  std::int64_t close = 0;
  for (std::int64_t place = 0; place < request.output; ++place)
    close += at::allclose(whole[request.prompt - 1 + place],
                          logits[static_cast<std::size_t>(place)], 1e-4, 1e-4);
  return close == request.output;
}

TEST(Decoder, TokenByTokenEqualsOnePassOverTheWholeSequence) {
  for (const Fault fault : {Fault::none, Fault::request_length_not_reset}) {
    // The first request, alone in its slot: a prompt of one token.
    Jobs jobs(job_of(InferenceScope::block), fault);
    EXPECT_EQ(equals_whole_sequence(jobs, 0), fault == Fault::none);
  }
  struct Row {
    workloads::ModelConfig model;
    std::int64_t request;  // the one of index 5 gets a slot that another request has had
    Fault fault;
  };
  for (const Row& row :
       {Row{moe_of(Dispatch::drop_and_pad), 1, Fault::none},
        Row{moe_of(Dispatch::drop_and_pad), 1, Fault::capacity_of_training},
        Row{moe_of(Dispatch::flex), 1, Fault::none}, Row{latent_of(), 5, Fault::none},
        Row{latent_of(), 5, Fault::rotary_keys_kept_unrotated}, Row{hybrid_of(), 5, Fault::none},
        Row{hybrid_of(), 5, Fault::state_not_reset}}) {
    for (const std::int64_t chunk : {0, 3}) {
      Jobs jobs(job_of(InferenceScope::block, false, chunk), row.fault, row.model);
      EXPECT_EQ(equals_whole_sequence(jobs, row.request), row.fault == Fault::none)
          << "hybrid " << row.model.hybrid << " flex " << row.model.flex << " chunk " << chunk;
    }
  }
}

TEST(Decoder, RefusesACacheThatIsTooSmall) {
  DecoderConfig job = job_of(InferenceScope::block);
  job.requests.blocks = 3;
  EXPECT_THROW(Jobs{job}, std::invalid_argument);
}

struct FaultRow {
  Fault fault;
  InferenceScope scope = InferenceScope::block;
  bool sampled = false;
  std::int64_t chunk = 0;
  workloads::ModelConfig model = model_of();
};

TEST(Decoder, FaultsOfGraphsMakeThemDifferFromEager) {
  for (const FaultRow& row :
       {FaultRow{.fault = Fault::padded_length_not_reset},
        FaultRow{.fault = Fault::padded_length_not_reset, .scope = InferenceScope::layer},
        FaultRow{.fault = Fault::metadata_made_before_padding},
        FaultRow{.fault = Fault::missing_block_read_as_last},
        FaultRow{.fault = Fault::padded_row_read_as_real},
        FaultRow{.fault = Fault::sampler_sees_padding, .sampled = true},
        FaultRow{.fault = Fault::single_token_prompt_decoded,
                 .scope = InferenceScope::layer,
                 .chunk = 3},
        FaultRow{.fault = Fault::padded_rows_take_capacity,
                 .model = moe_of(Dispatch::drop_and_pad)},
        FaultRow{.fault = Fault::routing_frozen,
                 .scope = InferenceScope::layer,
                 .model = moe_of(Dispatch::drop_and_pad)},
        FaultRow{.fault = Fault::kept_positions_frozen_at_capture, .model = latent_of()},
        FaultRow{.fault = Fault::kept_positions_frozen_at_capture,
                 .scope = InferenceScope::layer,
                 .chunk = 3,
                 .model = latent_of()},
        FaultRow{.fault = Fault::padded_row_moves_state, .model = hybrid_of()},
        FaultRow{.fault = Fault::chunk_padding_moves_state,
                 .scope = InferenceScope::layer,
                 .chunk = 3,
                 .model = hybrid_of()},
        FaultRow{.fault = Fault::state_reset_frozen, .model = hybrid_of()}})
    EXPECT_LT(Jobs(job_of(row.scope, row.sampled, row.chunk), row.fault, row.model).equal_steps(),
              kSteps)
        << static_cast<int>(row.fault);
}

/// The second of two data parallel ranks. It computes alone, because inference over data parallel
/// ranks has no collectives.
struct SecondRank {
  explicit SecondRank(Fault fault = Fault::none, const workloads::ModelConfig& model = model_of())
      : device(workloads::device_under_test()),
        stream(device.stream_from_pool()),
        guard(stream),
        step(model, {.dp = 2, .dp_rank = 1, .dp_group = "dp"}, device, kSeed, faults::plant(fault)),
        job(of_two_ranks(), {.impl = "local"}, device, step, nullptr) {
    job.capture();
  }
  ~SecondRank() { job.drop_graphs(); }
  static DecoderConfig of_two_ranks() {
    DecoderConfig job = job_of(InferenceScope::block);
    job.requests.ranks = 2;
    return job;
  }

  capture::Device& device;
  c10::Stream stream;
  c10::StreamGuard guard;
  workloads::TrainStep step;
  Decoder job;
};

TEST(Decoder, ARankWithoutRowsComputesWithPaddingAndChangesNothing) {
  struct Row {
    Fault fault;
    workloads::ModelConfig model = model_of();
  };
  for (const Row& row :
       {Row{Fault::none}, Row{Fault::dummy_request_writes_state}, Row{Fault::none, hybrid_of()},
        Row{Fault::dummy_request_moves_state, hybrid_of()},
        Row{Fault::none, moe_of(Dispatch::flex)},
        Row{Fault::dummy_request_is_routed, moe_of(Dispatch::flex)}}) {
    SecondRank rank(row.fault, row.model);
    std::int64_t alone = 0, unchanged = 0;
    for (std::int64_t index = 0; index < kSteps; ++index) {
      const requests::Step& planned = rank.job.planned(index);
      const auto before = fixtures::on_host(rank.job.results());
      rank.job.run(index);
      rank.device.synchronize();
      if (planned.work != Work::decode || !planned.rows.empty()) continue;
      ++alone;
      const auto after = fixtures::on_host(rank.job.results());
      // Without the logits, which are those of this step. Its experts are those of no row.
      auto kept = before;
      for (fixtures::NamedTensor& one : kept)
        if (one.name.starts_with("experts.")) one.tensor = at::zeros_like(one.tensor);
      unchanged +=
          fixtures::compare({kept.begin() + 1, kept.end()}, {after.begin() + 1, after.end()}).equal;
    }
    EXPECT_GT(alone, 0);
    EXPECT_EQ(unchanged == alone, row.fault == Fault::none);
  }
}

TEST(Decoder, RanksComputeTheSizeThatTheyAgreedOn) {
  for (const Fault fault : {Fault::none, Fault::rank_chooses_other_size}) {
    SecondRank rank(fault);
    std::int64_t other = 0;
    for (std::int64_t index = 0; index < kSteps; ++index) {
      rank.job.run(index);
      other += rank.job.size() != rank.job.planned(index).size;
    }
    EXPECT_EQ(other == 0, fault == Fault::none);
  }
}

TEST(Decoder, PaddingWithBlocksOfItsOwnHasAnInfluence) {
  for (const Fault fault : {Fault::none, Fault::padding_has_blocks}) {
    Jobs jobs(job_of(InferenceScope::none), fault);  // both are eager, with other padding
    EXPECT_EQ(jobs.equal_steps() == kSteps, fault == Fault::none);
  }
}

}  // namespace
}  // namespace graphproof::engines::decoder_test
