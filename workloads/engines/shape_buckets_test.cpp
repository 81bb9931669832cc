// One test for each sentence of the contract in shape_buckets.h.
#include <gtest/gtest.h>

#include "fixtures/device/forwarding.h"
#include "workloads/engines/capture/executables.h"
#include "workloads/engines/shape_buckets.h"
#include "workloads/faults/plant.h"
#include "workloads/testing/refusal.h"
#include "workloads/testing/twin_steps.h"
#include "workloads/training/lengths.h"

namespace graphproof::engines {
namespace {

using fixtures::Fault;

using workloads::Batch;
using workloads::ModelConfig;
using Lengths = std::vector<std::int64_t>;

constexpr std::uint64_t kBucketSeed = 5;
const ModelConfig kBucketModel{.hidden = 32,
                               .heads = 4,
                               .kv_groups = 2,
                               .ffn = 64,
                               .vocab = 64,
                               .microbatches = 2,
                               .qkv_bias = true,
                               .linear_bias = true,
                               .optimizer = workloads::OptimizerKind::adam};

/// Notes the updates of executable graphs and the instances that follow, and may say of each update
/// that it kept clusters, as a GPU does.
class UpdatesSeen final : public capture::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::unique_ptr<capture::Graph> make_graph() override {
    return std::make_unique<Noted>(device_.make_graph(), *this);
  }
  std::vector<capture::ExecUpdate> updates;
  std::int64_t instances = 0;
  std::int64_t kept_clusters = 0;  // of each update

 private:
  struct Noted final : capture::ForwardingGraph {
    Noted(std::unique_ptr<capture::Graph> graph, UpdatesSeen& to)
        : ForwardingGraph(std::move(graph)), seen(to) {}
    capture::ExecUpdate update() override {
      seen.updates.push_back(graph_->update());
      seen.updates.back().kept_clusters += seen.kept_clusters;
      return seen.updates.back();
    }
    void instantiate() override {
      ++seen.instances;
      graph_->instantiate();
    }
    UpdatesSeen& seen;
  };
};

/// An eager step, and one under the cache that is padded with other tokens.
struct BucketTwins {
  BucketTwins(EngineConfig config, std::int64_t bound, Fault fault = Fault::none,
              bool exec_update = false)
      : device(workloads::device_under_test()),
        stream(device.stream_from_pool()),
        guard(stream),
        schedule(workloads::length_schedule(kBucketModel.seq_length, bound, config.warmup_steps)),
        eager_step(kBucketModel, {}, device, kBucketSeed),
        graph_step(kBucketModel, {}, device, kBucketSeed, faults::plant(fault)),
        eager(make_engine({.impl = "none"}, device, stream, eager_step, nullptr)),
        graph(exec_update ? updating(config) : config, device, stream, graph_step, nullptr,
              {schedule.buckets, bound}) {}
  EngineConfig updating(EngineConfig config) {
    config.executables = &executables;
    return config;
  }

  Batch batch(std::int64_t index) {
    return workloads::make_uneven_batch(kBucketModel, {}, schedule, kBucketSeed, index,
                                        device.torch_device());
  }
  std::string step(std::int64_t index) {
    const Batch batch = this->batch(index);
    const std::int64_t longest = workloads::longest_of(kBucketModel, schedule, index);
    const double rate = 0.1 / static_cast<double>(1 + index);
    graph.step(batch, rate);
    eager->step(
        workloads::padded(batch, schedule.steps[static_cast<std::size_t>(index)].value_or(longest),
                          63, eager_step.faults()),
        rate);
    device.synchronize();
    return difference(fixtures::compare(eager->outputs(), graph.outputs()));
  }

  Executables executables;  // with exec_update
  UpdatesSeen device;
  c10::Stream stream;
  c10::StreamGuard guard;
  workloads::LengthSchedule schedule;
  workloads::TrainStep eager_step, graph_step;
  std::unique_ptr<Engine> eager;
  ShapeBuckets graph;
};

EngineConfig cached(const std::string& impl) { return {.impl = impl, .warmup_steps = 1}; }

TEST(ShapeBuckets, EveryStepEqualsEagerBitForBitWhateverWasEvictedBefore) {
  for (const char* impl : {"callables", "full_iteration"})
    for (const std::int64_t bound : {1, 2}) {
      BucketTwins twins(cached(impl), bound);
      for (std::size_t i = 0; i < twins.schedule.steps.size(); ++i)
        EXPECT_EQ(twins.step(static_cast<std::int64_t>(i)), "")
            << impl << ", bound " << bound << ", step " << i;
      EXPECT_GT(twins.graph.counters().replays, 0);
      twins.graph.drop_graphs();
    }
}

TEST(ShapeBuckets, EveryStepEqualsEagerWhereExecutableGraphsOfEvictedLengthsAreUpdated) {
  for (const char* impl : {"callables", "full_iteration"})
    for (const std::int64_t bound : {1, 2}) {
      BucketTwins twins(cached(impl), bound, Fault::none, /*exec_update=*/true);
      for (std::size_t i = 0; i < twins.schedule.steps.size(); ++i)
        EXPECT_EQ(twins.step(static_cast<std::int64_t>(i)), "")
            << impl << ", bound " << bound << ", step " << i;
      const Counters counters = twins.graph.counters();
      EXPECT_EQ(counters.captures - std::ssize(twins.device.updates), counters.graphs) << impl;
      for (const capture::ExecUpdate& update : twins.device.updates) {
        EXPECT_EQ(update.refused, "") << impl;
        EXPECT_FALSE(update.given_up_in_flight) << impl;
      }
      twins.graph.drop_graphs();
    }
}

TEST(ShapeBuckets, M531HasNoNewInstanceWhereAnUpdateKeptClusters) {
  for (const Fault fault : {Fault::none, Fault::kept_clusters_ignored}) {
    BucketTwins twins(cached("full_iteration"), 1, fault, /*exec_update=*/true);
    twins.device.kept_clusters = 1;
    for (std::size_t i = 0; i < twins.schedule.steps.size(); ++i)
      EXPECT_EQ(twins.step(static_cast<std::int64_t>(i)), "") << i;
    ASSERT_FALSE(twins.device.updates.empty());
    EXPECT_EQ(twins.device.instances, fault == Fault::none ? std::ssize(twins.device.updates) : 0);
    twins.graph.drop_graphs();
  }
}

TEST(ShapeBuckets, M522KeepsExecutableGraphsThatTheDeviceRuns) {
  for (const Fault fault : {Fault::none, Fault::executables_kept_in_flight}) {
    BucketTwins twins(cached("full_iteration"), 1, fault, /*exec_update=*/true);
    std::vector<Batch> batches;  // made ahead, because a copy from the host waits for the stream
    for (std::size_t i = 0; i < twins.schedule.steps.size(); ++i)
      batches.push_back(twins.batch(static_cast<std::int64_t>(i)));
    for (const Batch& batch : batches)
      if (twins.device.updates.empty()) twins.graph.step(batch, 0.1);
    ASSERT_FALSE(twins.device.updates.empty());
    EXPECT_EQ(twins.device.updates[0].given_up_in_flight, fault != Fault::none);
    twins.device.synchronize();
    twins.graph.drop_graphs();
  }
}

// On a GPU the memory of the evicted length may be gone.
TEST(ShapeBuckets, M523ComputesTheEvictedLength) {
  if (workloads::device_under_test().name() != "sim") return;
  BucketTwins twins(cached("full_iteration"), 1, Fault::exec_update_of_other_length_left_out,
                    /*exec_update=*/true);
  bool wrong = false;
  for (std::size_t i = 0; i < twins.schedule.steps.size(); ++i) {
    wrong |= !twins.step(static_cast<std::int64_t>(i)).empty();
    EXPECT_EQ(twins.graph.counters().captures > twins.graph.counters().graphs, wrong) << i;
  }
  EXPECT_TRUE(wrong);
}

TEST(ShapeBuckets, AStepIsPaddedToTheNextBucketAndOneBeyondTheLargestRunsEagerlyAtItsOwnLength) {
  BucketTwins twins(cached("full_iteration"), 2);
  for (std::size_t i = 0; i < twins.schedule.steps.size(); ++i) {
    twins.step(static_cast<std::int64_t>(i));
    const std::int64_t longest =
        workloads::longest_of(kBucketModel, twins.schedule, static_cast<std::int64_t>(i));
    EXPECT_EQ(twins.graph.latest().length, twins.schedule.steps[i].value_or(longest))
        << "step " << i;
    EXPECT_TRUE(twins.schedule.steps[i] || !twins.graph.latest().replayed) << "step " << i;
  }
}

// Buckets 4, 8, 12, a cache of two, one warm-up: 4 4 8 8 4 12 12 - 8 12 12 - 4.
TEST(ShapeBuckets, GraphsAreMadeAtFirstUseAfterTheWarmUpAndTheLeastRecentlyUsedIsEvicted) {
  BucketTwins twins(cached("full_iteration"), 2);
  struct Want {
    bool replayed, captured;
    Lengths evicted, resident;
  };
  const std::vector<Want> wanted{
      {false, false, {}, {}},     {true, true, {}, {4}},       {false, false, {}, {4}},
      {true, true, {}, {8, 4}},   {true, false, {}, {4, 8}},   {false, false, {}, {4, 8}},
      {true, true, {8}, {12, 4}}, {false, false, {}, {12, 4}}, {true, true, {4}, {8, 12}},
      {true, false, {}, {12, 8}}, {true, false, {}, {12, 8}},  {false, false, {}, {12, 8}},
      {true, true, {8}, {4, 12}}};
  ASSERT_EQ(twins.schedule.steps.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    twins.step(static_cast<std::int64_t>(i));
    EXPECT_EQ(twins.graph.latest().replayed, wanted[i].replayed) << "step " << i;
    EXPECT_EQ(twins.graph.latest().captured, wanted[i].captured) << "step " << i;
    EXPECT_EQ(twins.graph.latest().evicted, wanted[i].evicted) << "step " << i;
    EXPECT_EQ(twins.graph.resident(), wanted[i].resident) << "step " << i;
  }
}

TEST(ShapeBuckets, AnEvictedBucketGivesItsPoolBack) {
  for (const char* impl : {"callables", "full_iteration"}) {
    BucketTwins twins(cached(impl), 1);
    // CUDA's allocator keeps memory of earlier captures until its cache is emptied, which the first
    // eviction does, and whole segments for outputs that outlive their graph.
    const bool exact = twins.device.torch_device().is_cpu();
    std::map<std::int64_t, std::int64_t> bytes;  // by resident bucket
    bool evicted = exact;
    std::int64_t most = 0;
    for (std::size_t i = 0; i < twins.schedule.steps.size(); ++i) {
      twins.step(static_cast<std::int64_t>(i));
      if (twins.graph.resident().empty()) continue;
      evicted |= !twins.graph.latest().evicted.empty();
      if (!evicted) continue;
      const std::int64_t held = twins.device.memory().pool;
      most = std::max(most, held);
      const auto [found, fresh] = bytes.try_emplace(twins.graph.resident().front(), held);
      EXPECT_GT(held, 0) << impl;
      EXPECT_EQ(held, found->second) << impl << " step " << i;
    }
    EXPECT_EQ(bytes.size(), 2u);
    twins.graph.drop_graphs();
    EXPECT_LT(twins.device.memory().pool, exact ? 1 : most) << impl;
  }
}

TEST(ShapeBuckets, EvaluationIsEagerAtTheLengthsOfItsBatch) {
  BucketTwins twins(cached("callables"), 2);
  for (std::int64_t i = 0; i < 3; ++i) twins.step(i);
  const Batch batch = twins.batch(2);
  const std::int64_t replays = twins.graph.counters().replays;
  twins.graph.evaluate(batch);
  twins.eager->evaluate(batch);
  twins.device.synchronize();
  EXPECT_EQ(workloads::on_host(twins.graph_step.evaluation_losses()),
            workloads::on_host(twins.eager_step.evaluation_losses()));
  EXPECT_EQ(twins.graph.counters().replays, replays);
}

TEST(ShapeBuckets, RefusesWhatItDoesNotHold) {
  auto& device = workloads::device_under_test();
  const c10::Stream stream = device.stream_from_pool();
  const c10::StreamGuard guard(stream);
  workloads::TrainStep step(kBucketModel, {}, device, 1, {}),
      plain(kBucketModel, {}, device, 1, {}, fixtures::RngBackend::plain);
  const auto of = [&](EngineConfig config, ShapeBuckets::Buckets buckets,
                      workloads::TrainStep& with) {
    return refusal<std::invalid_argument>(
        [&] { ShapeBuckets(config, device, stream, with, nullptr, std::move(buckets)); });
  };
  EXPECT_EQ(of(cached("local"), {{4}, 1}, step),
            "shape buckets: got impl local; want full_iteration or callables; why: the other "
            "engines hold a "
            "schedule of fixed shapes; next: change the case");
  EngineConfig with_optimizer = cached("callables");
  with_optimizer.optimizer_graph = true;
  EXPECT_EQ(
      of(with_optimizer, {{4}, 1}, step),
      "shape buckets: got an optimizer graph; want none; why: it is the same for all lengths, and "
      "would be captured with each of them; next: change the case");
  EXPECT_EQ(of(cached("callables"), {{4}, 0}, step),
            "shape buckets: got a cache of 0 buckets; want at least one; why: nothing would ever "
            "replay; next: change the case");
  EXPECT_EQ(of(cached("callables"), {{8, 4}, 1}, step),
            "shape buckets: got buckets that are not ascending; want lengths in ascending order; "
            "why: the next bucket of a length is looked "
            "for from the smallest on; next: change the case");
  EXPECT_EQ(of(cached("callables"), {{4}, 1}, plain),
            "shape buckets: got rng_tracker plain; want graph_safe; why: rule B08, a capture can "
            "neither read nor set a generator's state; next: change the case");
  BucketTwins twins(cached("callables"), 1);
  twins.graph.drop_graphs();
  EXPECT_EQ(refusal<std::logic_error>([&] { twins.step(0); }),
            "engine: got step() after drop_graphs(); want no more steps; why: the captured graphs "
            "and their memory are gone; next: make a "
            "new engine");
}

TEST(ShapeBuckets, M66KnowsNoBoundAndM142KeepsWhatItForgot) {
  BucketTwins unbounded(cached("full_iteration"), 1, Fault::graph_cache_without_bound),
      leaking(cached("full_iteration"), 1, Fault::evicted_graphs_stay_alive),
      sound(cached("full_iteration"), 1);
  std::size_t most = 0;
  for (std::size_t i = 0; i < sound.schedule.steps.size(); ++i) {
    EXPECT_EQ(unbounded.step(static_cast<std::int64_t>(i)), "");
    most = std::max(most, unbounded.graph.resident().size());
  }
  EXPECT_EQ(most, 2u);
  const auto held_after = [](BucketTwins& twins) {
    const std::int64_t before = twins.device.memory().pool;
    for (std::size_t i = 0; i < twins.schedule.steps.size(); ++i)
      EXPECT_EQ(twins.step(static_cast<std::int64_t>(i)), "");
    return twins.device.memory().pool - before;
  };
  const std::int64_t kept = held_after(leaking);
  EXPECT_GT(kept, 2 * held_after(sound));
}

TEST(ShapeBuckets, M143ReplaysAnotherLengthsGraphAndDiffers) {
  for (const char* impl : {"callables", "full_iteration"}) {
    BucketTwins twins(cached(impl), 2, Fault::graph_lookup_without_length);
    bool differs = false;
    for (std::size_t i = 0; i < twins.schedule.steps.size(); ++i)
      differs |= !twins.step(static_cast<std::int64_t>(i)).empty();
    EXPECT_TRUE(differs) << impl;
  }
}

// Buckets 4, 8, 12: the graph of 4 is captured in step 1, that of 8 in step 3.
TEST(ShapeBuckets, M463DiffersWithTheSecondLengthAndNotWithTheFirst) {
  BucketTwins twins(cached("full_iteration"), 2, Fault::bias_missing_for_later_lengths);
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(twins.step(i), "") << "step " << i;
  EXPECT_NE(twins.step(3), "");
}

TEST(ShapeBuckets, M464DiffersWhereABatchHasOtherTokensThanTheFirstOfItsLength) {
  BucketTwins twins(cached("full_iteration"), 2, Fault::token_count_by_value);
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(twins.step(i), "") << "step " << i;
  bool differs = false;
  for (std::size_t i = 3; i < twins.schedule.steps.size(); ++i)
    differs |= !twins.step(static_cast<std::int64_t>(i)).empty();
  EXPECT_TRUE(differs);
}

/// Without a wait between the steps. The batches are made before, because a copy from the host
/// waits.
std::int64_t drops_in_flight(Fault fault) {
  BucketTwins twins(cached("full_iteration"), 2, fault);
  std::vector<Batch> batches;
  for (std::size_t i = 0; i < twins.schedule.steps.size(); ++i)
    batches.push_back(twins.batch(static_cast<std::int64_t>(i)));
  for (const Batch& batch : batches) twins.graph.step(batch, 0.1);
  const std::int64_t in_flight = twins.graph.counters().drops_in_flight;
  twins.device.synchronize();
  twins.graph.drop_graphs();
  return in_flight;
}

TEST(ShapeBuckets, AnEvictionWaitsForTheDeviceAndM145DoesNot) {
  EXPECT_EQ(drops_in_flight(Fault::none), 0);
  // The simulated device has finished its work whenever the host continues, so nothing is in
  // flight.
  EXPECT_TRUE(workloads::device_under_test().name() == "sim" ||
              drops_in_flight(Fault::graphs_evicted_in_flight) > 0);
}

}  // namespace
}  // namespace graphproof::engines
