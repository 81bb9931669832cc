#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"
#include "suites/checks/testing/memory_lines.h"

namespace graphproof::checks {
namespace {

TEST(ReturnedAfterFlush, WhereRanksShareGpusTheAllocatorsCountStillBinds) {
  const auto left = [](const char* what) {
    return judge_one("D30.returned_after_flush", kTwoRanks,
                     [what](Attempt& a) {
                       share_gpus(a);
                       memory_line(a, "solo_graph", "returned").fields[what] = 64 << 20;
                     })
        .result;
  };
  EXPECT_EQ(left("device"), record::Result::pass);
  EXPECT_EQ(left("reserved"), record::Result::fail);
}

TEST(ReturnedAfterFlush, SmallBlocksOfPackagesMayLieInOneSegmentMore) {
  const auto left = [](const nlohmann::json& axes, std::int64_t reserved, std::int64_t allocated,
                       std::int64_t pool) {
    return judge_one("D30.returned_after_flush", axes,
                     [=](Attempt& a) {
                       nlohmann::json& after = memory_line(a, "solo_graph", "returned").fields;
                       after["reserved"] = reserved;
                       after["allocated"] = allocated;
                       after["pool"] = pool;
                     })
        .result;
  };
  const nlohmann::json packages = {
      {"subject", "megatron_core"}, {"impl", "full_iteration"}, {"dp", 2}, {"comm", "c10d"}};
  EXPECT_EQ(left(packages, 2 << 20, 0, 0), record::Result::pass);
  EXPECT_EQ(left(packages, 4 << 20, 0, 0), record::Result::fail);
  EXPECT_EQ(left(packages, 2 << 20, 512, 0), record::Result::fail);
  EXPECT_EQ(left(packages, 2 << 20, 0, 2 << 20), record::Result::fail);
  EXPECT_EQ(left(kTwoRanks, 2 << 20, 0, 0), record::Result::fail);
}

TEST(ReturnedAfterFlush, TheDriverKeepsWhatItTookForASecondCapture) {
  const auto left = [](std::int64_t taken, std::int64_t returned) {
    return judge_one("D30.returned_after_flush", kTwoRanks,
                     [=](Attempt& a) {
                       const auto more = [&](const char* when, std::int64_t bytes) {
                         auto& device = memory_line(a, "solo_graph", when).fields["device"];
                         device = device.get<std::int64_t>() + bytes;
                       };
                       more("captured_again", taken);
                       more("returned", returned);
                     })
        .result;
  };
  EXPECT_EQ(left(6 << 20, 8 << 20), record::Result::pass);
  EXPECT_EQ(left(6 << 20, 10 << 20), record::Result::fail);
  EXPECT_EQ(left(0, 6 << 20), record::Result::fail);
}

TEST(ReturnedAfterFlush, TheDevicesCountIsNotJudgedWhereOthersUseTheGpu) {
  const auto result = judge_one("D30.returned_after_flush", kTwoRanks, [](Attempt& a) {
    memory_line(a, "solo_eager", "step", 4).fields["device"] = 4096LL << 20;
    memory_line(a, "solo_graph", "returned").fields["device"] = 4096LL << 20;
  });
  EXPECT_EQ(result.result, record::Result::pass) << record::to_text(result.message);
  EXPECT_NE(record::to_text(result.message).find("by the allocator's count alone: other processes"),
            std::string::npos)
      << record::to_text(result.message);
}

TEST(ReturnedAfterFlush, Rows) {
  judge_rows(
      "D30.returned_after_flush", kTwoRanks,
      {
          {.name = "one byte stays reserved (M89)",
           .change =
               [](Attempt& a) { memory_line(a, "solo_graph", "returned").fields["reserved"] = 1; },
           .rank = 1,
           .mentions = {"`reserved` memory was not returned", "1 bytes after a flush collective",
                        "0 at most"}},
          {.name = "two pages of the device stay used, and eager returned all of it",
           .change =
               [](Attempt& a) {
                 memory_line(a, "solo_graph", "returned").fields["device"] = 4 << 20;
               },
           .rank = 1,
           .mentions = {"`device` memory was not returned", "within 2097152"}},
          {.name = "absent",
           .change =
               [](Attempt& a) {
                 memory_line(a, "solo_eager", "returned").fields["when"] = "dropped";
               },
           .rank = 1,
           .mentions =
               {"`memory` line of a solo arm before it was built and after it was dropped"}},
          {.name = "it is unknown how much the device's own count varies",
           .change =
               [](Attempt& a) { memory_line(a, "solo_eager", "before").fields.erase("device"); },
           .rank = 1,
           .mentions = {"count of the device's bytes before arm solo_eager was built"}},
          rank_died({.rank = 1, .kind = "memory", .arm = "solo_graph"}),
      });
}

TEST(ReturnedAfterFlush, WhatTheEagerArmKeepsTooIsNoMemoryOfAGraph) {
  const auto left = [](std::int64_t bytes) {
    return judge_one("D30.returned_after_flush", kTwoRanks,
                     [bytes](Attempt& a) {
                       memory_line(a, "solo_eager", "returned").fields["allocated"] = 1536;
                       memory_line(a, "solo_graph", "returned").fields["allocated"] = bytes;
                     })
        .result;
  };
  EXPECT_EQ(left(1536), record::Result::pass);
  EXPECT_EQ(left(1537), record::Result::fail);
}

TEST(ReturnedAfterFlush, TheDevicesCountMayMoveAsItDoesAroundAnEagerArm) {
  const auto result = judge_one("D30.returned_after_flush", kTwoRanks, [](Attempt& a) {
    memory_line(a, "solo_eager", "returned").fields["device"] = 6 << 20;
    memory_line(a, "solo_graph", "returned").fields["device"] = 6 << 20;
  });
  EXPECT_EQ(result.result, record::Result::pass) << record::to_text(result.message);
}

}  // namespace
}  // namespace graphproof::checks
