#include "launcher/policy/gpu_quarantine.h"

#include <gtest/gtest.h>

namespace graphproof::launcher {
namespace {

/// Four slots; batch "b001" has slots 0 and 1.
struct GpuQuarantineTest : testing::Test {
  GpuQuarantineTest() {
    schedule.add({"b001", 2, 1});
    schedule.start();
  }
  record::Context context(const std::string& batch, const std::string& infra = "") {
    record::Context context;
    context.batch = batch;
    if (!infra.empty()) context.infra = record::Infra{infra, "GPU 0: Xid 79"};
    return context;
  }
  Schedule schedule{4};
  GpuQuarantine quarantine{schedule,
                           [](Slot slot) { return " (slot " + std::to_string(slot) + ")"; }};
};

TEST_F(GpuQuarantineTest, AHealthyCaseChangesNothing) {
  const auto seen = quarantine.observe(context("b001"));
  EXPECT_TRUE(seen.notices.empty());
  EXPECT_FALSE(seen.end_batch);
  EXPECT_TRUE(schedule.withdrawn().empty());
  EXPECT_FALSE(quarantine.take_trouble("b001"));
}

TEST_F(GpuQuarantineTest, TroubleOfAGpuEndsTheBatchWhoseCasesThenAvoidItsSlots) {
  const auto seen = quarantine.observe(context("b001", "gpu"));
  EXPECT_TRUE(seen.end_batch);
  EXPECT_TRUE(seen.notices.empty()) << "once may be chance";
  EXPECT_EQ(quarantine.avoided("b001"), (std::vector<Slot>{0, 1}));
  EXPECT_EQ(quarantine.avoided("b002"), std::vector<Slot>{});
  EXPECT_TRUE(schedule.withdrawn().empty());
}

TEST_F(GpuQuarantineTest, SlotsThatMetTroubleInTwoBatchesAreWithdrawn) {
  quarantine.observe(context("b001", "gpu"));
  EXPECT_FALSE(quarantine.observe(context("b001", "gpu")).end_batch)
      << "a batch counts once, however many of its cases met the trouble";
  EXPECT_TRUE(schedule.withdrawn().empty());
  schedule.release("b001");
  schedule.add({"b002", 2, 1});
  schedule.start();
  const auto seen = quarantine.observe(context("b002", "gpu"));
  EXPECT_EQ(seen.notices,
            std::vector<std::string>{"slots 0, 1 are not leased again: GPU 0: Xid 79"});
  EXPECT_EQ(schedule.withdrawn(), (std::vector<Slot>{0, 1}));
  EXPECT_EQ(quarantine.reasons(), "slots 0, 1: GPU 0: Xid 79");
}

TEST_F(GpuQuarantineTest, OtherTroubleOfTheInfrastructureIsNoFaultOfTheSlots) {
  const auto seen = quarantine.observe(context("b001", "launch"));
  EXPECT_FALSE(seen.end_batch);
  EXPECT_EQ(quarantine.avoided("b001"), std::vector<Slot>{});
  EXPECT_TRUE(quarantine.take_trouble("b001"));
  EXPECT_FALSE(quarantine.take_trouble("b001")) << "it was taken";
}

TEST_F(GpuQuarantineTest, MemoryThatStaysInUseWithdrawsItsSlotAloneAndNamesWhoHasIt) {
  record::Context one = context("b001");
  one.cleanup.gpu_memory = {{.gpu = 1, .bytes = 4096}};
  const auto seen = quarantine.observe(one);
  EXPECT_FALSE(seen.end_batch);
  EXPECT_EQ(
      seen.notices,
      std::vector<std::string>{
          "slots 1 are not leased again: 4096 bytes stayed in use after batch b001 (slot 1)"});
  EXPECT_EQ(schedule.withdrawn(), std::vector<Slot>{1});
}

TEST_F(GpuQuarantineTest, ProcessesThatCannotBeKilledKeepTheSlotsOfTheirBatch) {
  EXPECT_EQ(
      quarantine.withdraw_from("b001", {"4711 rank", "4712 rank"}),
      "slots 0, 1 are not leased again: held by 4711 rank, 4712 rank of batch b001, which even "
      "SIGKILL does not end");
  EXPECT_EQ(schedule.withdrawn(), (std::vector<Slot>{0, 1}));
}

TEST_F(GpuQuarantineTest, EveryReasonIsKept) {
  record::Context one = context("b001");
  one.cleanup.gpu_memory = {{.gpu = 0, .bytes = 1}, {.gpu = 1, .bytes = 2}};
  EXPECT_EQ(quarantine.observe(one).notices.size(), 2u);
  EXPECT_EQ(quarantine.reasons(),
            "slots 0: 1 bytes stayed in use after batch b001 (slot 0); "
            "slots 1: 2 bytes stayed in use after batch b001 (slot 1)");
}

}  // namespace
}  // namespace graphproof::launcher
