// A stall inside a replay, ahead of every collective of a step and on every rank in turn: what the
// ranks' devices have counted names the rank and the collective (record::stall_of). Started with
// several ranks, on the simulated device by mpirun, on GPUs as graphproof-stalls-cuda.
//
// The stuck rank looks itself: every rank writes what its device counts into a file, and the stall
// ends when those of all ranks name it, which they must keep doing while nothing moves.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"
#include "workloads/testing/ranks_under_test.h"
#include "workloads/testing/small_model.h"
#include "workloads/testing/twin_steps.h"
#ifdef GRAPHPROOF_TEST_CUDA
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#endif

namespace graphproof::engines::stalls_test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// How often a rank writes its counts, and how long they have to name the same rank: long enough for
// a rank that is only late to move on.
constexpr milliseconds kPoll{2}, kSteady{60};
// By when they have to name the stuck rank. It only elapses if they do not.
constexpr milliseconds kDeadline{10'000};

/// The counts of all ranks, in files of a common folder.
class SharedProgress {
 public:
  SharedProgress() {
    if (ranks->rank() == 0) scratch_.emplace();
    const std::string mine = scratch_ ? scratch_->path().string() : "";
    const auto all = ranks->world().gather("stalls", std::as_bytes(std::span(mine)), ranks->kLimit);
    folder_ = std::string(reinterpret_cast<const char*>(all[0].data()), all[0].size());
    writer_ = std::jthread([this](std::stop_token stop) {
      for (std::string written; !stop.stop_requested(); std::this_thread::sleep_for(kPoll))
        if (std::string now = own(); now != written) write(written = std::move(now));
    });
  }
  ~SharedProgress() {
    // A rank writes until no other one looks, and rank 0 removes the folder when none writes.
    ranks->world().gather("looked", {}, ranks->kLimit);
    writer_ = {};
    ranks->world().gather("written", {}, ranks->kLimit);
  }

  /// Waits until the counts name this rank and `collective`, and returns what they named at the
  /// end if that is something else. With `any_transfer` they may name another transfer instead.
  std::string named_otherwise(const record::Collective& collective, bool any_transfer) const {
    const auto begin = Clock::now();
    auto right_since = begin;
    std::string other = "nothing";
    while (true) {
      const auto now = Clock::now();
      const auto stall = record::stall_of(read());
      const bool right = stall && stall->kind == record::Stall::Kind::not_begun &&
                         stall->rank == ranks->rank() &&
                         (stall->collective == collective ||
                          (any_transfer && stall->collective.op == collective.op));
      if (stall)
        other = "rank " + std::to_string(stall->rank) + ", " + record::describe(stall->collective);
      if (!right) right_since = now;
      if (right && now - right_since >= kSteady) return "";
      if (now - begin > kDeadline) return other;
      std::this_thread::sleep_for(kPoll);
    }
  }

 private:
  static std::string own() { return record::to_json(ranks->groups().progress()).dump(); }
  std::filesystem::path file(int rank) const { return folder_ / std::to_string(rank); }
  void write(const std::string& text) const {
    const std::filesystem::path fresh = folder_ / (std::to_string(ranks->rank()) + ".new");
    std::ofstream(fresh) << text;
    std::filesystem::rename(fresh, file(ranks->rank()));
  }
  std::vector<record::CollectiveProgress> read() const {
    std::vector<record::CollectiveProgress> all;
    for (int rank = 0; rank < ranks->world().size(); ++rank) {
      std::ifstream in(file(rank));
      nlohmann::json progress = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
      if (progress.is_discarded()) progress = nlohmann::json::array();
      const nlohmann::json whole = {{"progress", std::move(progress)}};
      all.push_back(record::collective_progress_from(record::Fields(whole, "test"), "progress"));
    }
    return all;
  }

  std::optional<record::ScratchFolder> scratch_;
  std::filesystem::path folder_;
  std::jthread writer_;
};

/// The stall of one rank ahead of one collective of its graph, and what the counts said.
class PlannedStall {
 public:
  explicit PlannedStall(SharedProgress& progress) : progress_(progress) {
    ranks->groups().ledger().listen([this](const record::Collective& issued) { before(issued); });
  }
  ~PlannedStall() { ranks->groups().ledger().listen({}); }

  /// From now on rank `rank` stalls ahead of collective `ahead_of` of its graph, from 0.
  void plan(int rank, std::int64_t ahead_of) {
    mine_ = rank == ranks->rank();
    ahead_of_ = ahead_of;
    met_ = 0;
  }
  std::int64_t met() const { return met_; }  // since plan()
  std::int64_t held = 0;
  std::string mistakes;
  /// The stages before and after this one may both wait for it, and their counts do not tell in
  /// which order this stage turns to them.
  bool two_neighbours = false;

 private:
  void before(const record::Collective& collective) {
    const auto& device = workloads::device_under_test();
    const bool capturing = device.capturing(device.current_stream());
#ifdef GRAPHPROOF_TEST_CUDA
    if (!capturing) return;
    if (met_++ != ahead_of_ || !mine_) return;
    collective_ = collective;
    C10_CUDA_CHECK(cudaLaunchHostFunc(
        at::cuda::getCurrentCUDAStream(),
        [](void* self) { static_cast<PlannedStall*>(self)->hold(); }, this));
#else
    if (capturing || !in_replay_) return;
    if (met_++ != ahead_of_ || !mine_) return;
    collective_ = collective;
    hold();
#endif
  }
  void hold() {
    ++held;
    const std::string other = progress_.named_otherwise(collective_, two_neighbours);
    if (!other.empty())
      mistakes += "ahead of " + record::describe(collective_) + ": named " + other + "\n";
  }

  SharedProgress& progress_;
  record::Collective collective_;
  bool mine_ = false;
  std::int64_t ahead_of_ = 0, met_ = 0;

 public:
  bool in_replay_ = false;
};

/// The engine full_iteration up to a step that replays.
std::unique_ptr<TwinSteps> captured(const workloads::ModelConfig& config,
                                    const workloads::Layout& layout) {
  auto twins = std::make_unique<TwinSteps>(
      config, layout, EngineConfig{.impl = "full_iteration", .warmup_steps = 1});
  for (const std::int64_t index : {0, 1}) twins->graph->step(twins->batch(index), 0.1);
  twins->device().synchronize();
  return twins;
}

/// How many collectives each rank's graph has.
std::vector<std::int64_t> counts_of(std::int64_t mine) {
  std::vector<std::int64_t> counts;
  for (const auto& one :
       ranks->world().gather("counts", std::as_bytes(std::span(&mine, 1)), ranks->kLimit)) {
    counts.emplace_back();
    std::memcpy(&counts.back(), one.data(), sizeof counts.back());
  }
  return counts;
}

void expect_every_stall_named(const workloads::Layout& layout) {
  workloads::ModelConfig config;
  config.layers = std::max(2, layout.pp);
  config.microbatches = 2;
  config = small(config);
  SharedProgress progress;
  PlannedStall stall(progress);
  stall.two_neighbours = layout.pp > 2;
#ifdef GRAPHPROOF_TEST_CUDA
  stall.plan(-1, -1);
  captured(config, layout)->graph->drop_graphs();
  const auto counts = counts_of(stall.met());
#else
  const auto twins = captured(config, layout);
  stall.in_replay_ = true;
  const auto replay = [&] { twins->graph->step(twins->batch(2), 0.1); };
  stall.plan(-1, -1);
  replay();
  const auto counts = counts_of(stall.met());
#endif
  std::int64_t trials = 0;
  for (int rank = 0; rank < ranks->world().size(); ++rank)
    for (std::int64_t ahead_of = 0; ahead_of < counts[static_cast<std::size_t>(rank)]; ++ahead_of) {
      // Ranks that nothing holds up are a replay ahead of one that stalls at its end, and the next
      // rank must not stall there meanwhile.
      ranks->world().gather("trial", {}, ranks->kLimit);
      stall.plan(rank, ahead_of);
      trials += rank == ranks->rank() ? 1 : 0;
#ifdef GRAPHPROOF_TEST_CUDA
      captured(config, layout)->graph->drop_graphs();
#else
      replay();
#endif
    }
#ifndef GRAPHPROOF_TEST_CUDA
  twins->graph->drop_graphs();
#endif
  EXPECT_EQ(trials > 0, ranks->world().size() > 1) << "a single rank has no collectives";
  EXPECT_EQ(stall.held, trials) << "every planned stall took place";
  EXPECT_EQ(stall.mistakes, "");
  const std::int64_t wrong = std::ranges::count(stall.mistakes, '\n');
  std::cout << "rank " << ranks->rank() << ": " << trials - wrong << " of " << trials
            << " stalls named right" << std::endl;
}

TEST(Stalls, EveryCollectiveOnEveryRankIsNamed) {
  ranks->for_each_layout(expect_every_stall_named);
}

TEST(Stalls, EveryCollectiveOnEveryRankOfAPipelineIsNamed) {
  ranks->for_each_pipeline_layout(/*vpp=*/1, expect_every_stall_named);
}

}  // namespace
}  // namespace graphproof::engines::stalls_test
