// The flex dispatcher with buffers that are too small for some steps, and the planted faults in it.
// Started by mpirun with several ranks; each test runs on every layout with expert parallel ranks.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "workloads/engines/capture/executables.h"
#include "workloads/engines/step/paged_stash.h"
#include "workloads/testing/ranks_under_test.h"
#include "workloads/testing/small_model.h"
#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::paged_stash_test {
namespace {

using fixtures::Fault;
using workloads::Layout;

// One warm-up, two replays, two steps in which all tokens are pulled to the first rank, and another
// step.
const std::vector<bool> kPulled{false, false, false, true, true, false};
constexpr std::size_t kOverflows = 3;

workloads::ModelConfig stash() {
  workloads::ModelConfig config = small({.microbatches = 2, .dropout = 0.1});
  config.experts = 4;
  config.topk = 2;
  config.dropless = config.flex = config.paged_stash = true;
  return config;
}

double sum(workloads::TrainStep& step, const std::string& ledger) {
  double total = 0;
  for (const auto& [name, tensor] : step.ledgers())
    if (name == ledger)
      for (const float value : workloads::on_host(tensor)) total += value;
  return total;
}

/// What a graph engine did in each step beside an eager one. The fault is planted in its step.
struct Ran {
  std::vector<std::string> differences;
  std::vector<std::int64_t> reruns, eager_reruns, capacity, captures;
  std::vector<double> assigned, carried, dropped;
};

Ran run(const Layout& layout, Fault fault = Fault::none, bool limited = true,
        Executables* executables = nullptr) {
  TwinSteps twins(stash(), layout,
                  {.impl = "full_iteration", .warmup_steps = 1, .executables = executables}, fault);
  for (workloads::TrainStep* step : {&twins.eager_step(), &twins.graph_step()})
    if (limited) step->expert_buffers().limit(PagedStash::first_limit(step->expert_buffers()));
  Ran ran;
  for (std::size_t i = 0; i < kPulled.size(); ++i) {
    workloads::Batch batch = twins.batch(static_cast<std::int64_t>(i));
    if (kPulled[i]) batch = with_expert_pull(batch, stash().experts / layout.ep);
    const Counters before = twins.graph->counters(), eager_before = twins.eager->counters();
    twins.eager->step(batch, 0.1);
    twins.graph->step(batch, 0.1);
    twins.device().synchronize();
    ran.differences.push_back(
        difference(fixtures::compare(twins.eager->outputs(), twins.graph->outputs())));
    const Counters after = twins.graph->counters();
    ran.reruns.push_back(after.reruns - before.reruns);
    ran.eager_reruns.push_back(twins.eager->counters().reruns - eager_before.reruns);
    ran.captures.push_back(after.captures - before.captures);
    ran.capacity.push_back(twins.graph_step().expert_buffers().rows());
    ran.assigned.push_back(sum(twins.graph_step(), "experts:assigned"));
    ran.carried.push_back(sum(twins.graph_step(), "experts:carried"));
    ran.dropped.push_back(sum(twins.graph_step(), "experts:dropped"));
  }
  twins.graph->drop_graphs();
  return ran;
}

/// Calls body(layout) for every layout with expert parallel ranks.
template <class Body>
void for_each_split_layout(Body body) {
  ranks->for_each_expert_layout([&](const Layout& layout) {
    if (layout.ep > 1) body(layout);
  });
}

TEST(PagedStash, AStepThatLacksRoomRunsAgainAndItsBuffersGrow) {
  for_each_split_layout([](const Layout& layout) {
    const Ran ran = run(layout);
    EXPECT_EQ(ran.differences, std::vector<std::string>(kPulled.size()));
    EXPECT_EQ(ran.reruns, ran.eager_reruns);
    EXPECT_EQ(ran.carried, ran.assigned);
    EXPECT_EQ(ran.dropped, std::vector<double>(kPulled.size(), 0));
    EXPECT_EQ(ran.reruns[kOverflows], 1);
    EXPECT_EQ(ran.reruns[kOverflows + 1], 0) << "the larger buffers hold as many rows";
    EXPECT_EQ(ran.captures[kOverflows + 1], 1);
    EXPECT_GT(ran.capacity[kOverflows], ran.capacity[kOverflows - 1]);
    EXPECT_EQ(ran.capacity.back(), ran.capacity[kOverflows]);
  });
}

TEST(PagedStash, AnUpdatedExecutableGraphHasTheLargerBuffers) {
  for_each_split_layout([](const Layout& layout) {
    Executables executables;
    const Ran ran = run(layout, Fault::none, /*limited=*/true, &executables);
    EXPECT_EQ(ran.differences, std::vector<std::string>(kPulled.size()));
    EXPECT_EQ(ran.reruns[kOverflows], 1);
    EXPECT_EQ(ran.reruns[kOverflows + 1], 0);
    EXPECT_EQ(ran.captures[kOverflows + 1], 1);
    EXPECT_NE(executables.take("training"), nullptr) << "of the graph that was dropped last";
    EXPECT_EQ(executables.take("training"), nullptr) << "the first one was used again";
  });
}

TEST(PagedStash, M520AndM521LaunchAnExecutableGraphWithTheSmallBuffers) {
  for_each_split_layout([](const Layout& layout) {
    for (const Fault fault : {Fault::exec_update_left_out, Fault::refused_exec_update_ignored}) {
      Executables executables;
      const Ran ran = run(layout, fault, /*limited=*/true, &executables);
      EXPECT_EQ(ran.reruns[kOverflows + 1], 1) << "it lacks room again";
    }
  });
}

TEST(PagedStash, BuffersThatAreNotLimitedHoldEveryRow) {
  for_each_split_layout([](const Layout& layout) {
    const Ran ran = run(layout, Fault::none, /*limited=*/false);
    EXPECT_EQ(ran.differences, std::vector<std::string>(kPulled.size()));
    EXPECT_EQ(ran.reruns, std::vector<std::int64_t>(kPulled.size(), 0));
    EXPECT_EQ(ran.carried, ran.assigned);
  });
}

TEST(PagedStash, M376AFlagThatIsNotReadLosesTokens) {
  for_each_split_layout([](const Layout& layout) {
    const Ran ran = run(layout, Fault::overflow_flag_not_read);
    EXPECT_EQ(ran.reruns[kOverflows], 0);
    EXPECT_EQ(ran.eager_reruns[kOverflows], 1);
    EXPECT_NE(ran.differences[kOverflows], "");
  });
}

TEST(PagedStash, M377AFlagThatIsNotClearedRunsEveryLaterStepAgain) {
  for_each_split_layout([](const Layout& layout) {
    const Ran ran = run(layout, Fault::overflow_flag_not_cleared);
    for (std::size_t i = kOverflows; i < kPulled.size(); ++i) EXPECT_EQ(ran.reruns[i], 1) << i;
    EXPECT_EQ(ran.eager_reruns.back(), 0);
  });
}

TEST(PagedStash, M379BuffersThatDoNotGrowOverflowAgain) {
  for_each_split_layout([](const Layout& layout) {
    const Ran ran = run(layout, Fault::expert_buffers_do_not_grow);
    EXPECT_EQ(ran.reruns[kOverflows], 1);
    EXPECT_EQ(ran.reruns[kOverflows + 1], 1);
    EXPECT_EQ(ran.eager_reruns[kOverflows + 1], 0);
  });
}

TEST(PagedStash, M380ARerunOfAnotherBatchHasOtherLosses) {
  for_each_split_layout([](const Layout& layout) {
    const Ran ran = run(layout, Fault::rerun_of_other_batch);
    // Uneven routing may fill a rank's buffers ahead of the pulled steps. The warm-up has no graph
    // yet, and no fault.
    std::size_t first = 1;
    while (first < kOverflows && ran.reruns[first] == 0) ++first;
    EXPECT_EQ(ran.reruns[first], 1);
    for (std::size_t i = 0; i < first; ++i) EXPECT_EQ(ran.differences[i], "") << i;
    EXPECT_NE(ran.differences[first], "");
  });
}

// Of the numbers of rows by which tokens travel. Eager steps are sound.
TEST(FlexDispatch, M374M375M378M381OtherNumbersOfRowsChangeReplays) {
  for_each_split_layout([](const Layout& layout) {
    for (const Fault fault :
         {Fault::expert_counts_frozen_at_capture, Fault::tail_of_buffer_read_as_tokens,
          Fault::expert_counts_cut_in_silence, Fault::expert_counts_of_previous_microbatch}) {
      const Ran ran = run(layout, fault, /*limited=*/false);
      EXPECT_EQ(ran.differences[0], "");
      for (std::size_t i = 1; i <= 2; ++i)
        EXPECT_NE(ran.differences[i], "") << int(fault) << " step " << i;
      if (fault != Fault::expert_counts_cut_in_silence) continue;
      EXPECT_LT(ran.carried[2], ran.assigned[2]);
      EXPECT_EQ(ran.dropped[2], 0);
    }
  });
}

}  // namespace
}  // namespace graphproof::engines::paged_stash_test
