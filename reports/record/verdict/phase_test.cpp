#include "reports/record/verdict/phase.h"

#include <gtest/gtest.h>

namespace graphproof::record {
namespace {

TEST(Phase, NamesAreReadBackAndOthersRefused) {
  for (std::size_t i = 0; i < kPhaseCount; ++i)
    EXPECT_EQ(phase_from(kPhaseNames[i]), static_cast<Phase>(i));
  EXPECT_FALSE(phase_from("Replay"));
  EXPECT_FALSE(phase_from(""));
}

TEST(Phase, LimitsOfStepsHoldPerStep) {
  EXPECT_TRUE(limited_per_step(Phase::eager) && limited_per_step(Phase::warmup) &&
              limited_per_step(Phase::replay));
  EXPECT_FALSE(limited_per_step(Phase::capture) || limited_per_step(Phase::teardown_comm));
}

}  // namespace
}  // namespace graphproof::record
