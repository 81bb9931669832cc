#include "workloads/faults/plant.h"

#include <gtest/gtest.h>

#include <set>

namespace graphproof::faults {
namespace {

using fixtures::Fault;

RunPlan planned(Fault fault) {
  RunPlan plan{.autograd_threads = true, .blocking_stream = true};
  plant(fault)->plan_run(plan);
  return plan;
}

TEST(Plant, EveryRowOfTheFaultTableHasHooksOfItsOwn) {
  std::set<const FaultHooks*> hooks;
  std::vector<std::shared_ptr<FaultHooks>> alive;
  for (std::size_t i = 0; i < fixtures::kFaultNames.size(); ++i) {
    const auto fault = static_cast<Fault>(i);
    alive.push_back(plant(fault));
    ASSERT_NE(alive.back(), nullptr) << fault;
    hooks.insert(alive.back().get());
    EXPECT_EQ(fixtures::fault_of(fixtures::name_of(fault).id), fault);
  }
  EXPECT_EQ(hooks.size(), fixtures::kFaultNames.size());
}

TEST(Plant, AnUnknownIdIsRefused) {
  EXPECT_EQ(fixtures::fault_of("none"), Fault::none);
  EXPECT_THROW(fixtures::fault_of("M00"), std::invalid_argument);
}

TEST(Plant, FaultsOfTheRunChangeItsPlan) {
  EXPECT_TRUE(planned(Fault::none).autograd_threads);
  EXPECT_FALSE(planned(Fault::setting_without_effect).autograd_threads);
  EXPECT_TRUE(planned(Fault::none).blocking_stream);
  EXPECT_FALSE(planned(Fault::blocking_stream_without_effect).blocking_stream);
  EXPECT_TRUE(planned(Fault::communicators_destroyed_first).communicators_first);
  EXPECT_FALSE(planned(Fault::communicators_destroyed_first).abort_communicators);
  EXPECT_TRUE(planned(Fault::communicators_aborted_first).abort_communicators);
  EXPECT_TRUE(planned(Fault::buffers_at_rank_dependent_offsets).buffers_per_rank);
  EXPECT_TRUE(planned(Fault::groups_made_again).groups_made_again);
  EXPECT_TRUE(planned(Fault::communicators_not_ended).communicators_kept);
}

}  // namespace
}  // namespace graphproof::faults
