#include <gtest/gtest.h>

#include <algorithm>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

const json kCase = {{"impl", "full_iteration"}, {"tp", 2}, {"microbatches", 2}};

Line& memory(Attempt& attempt, std::string_view arm, std::string_view when, std::int64_t step = 0) {
  for (Line& line : attempt.ranks[1].evidence->lines)
    if (line.kind == "memory" && text(line, "arm") == arm && text(line, "when") == when &&
        integer(line, "step") == step)
      return line;
  throw std::logic_error("no such memory line");
}

/// Lets a field of solo_graph on rank 1 grow by `bytes` a step.
std::function<void(Attempt&)> grow(const char* what, std::int64_t bytes) {
  return [=](Attempt& a) {
    for (Line& line : a.ranks[1].evidence->lines)
      if (line.kind == "memory" && text(line, "arm") == "solo_graph" &&
          text(line, "when") == "step")
        line.fields[what] =
            line.fields.at(what).get<std::int64_t>() + bytes * *integer(line, "step");
  };
}

void drop_steps(Attempt& attempt, const char* arm) {
  std::erase_if(attempt.ranks[1].evidence->lines, [=](const Line& line) {
    return line.kind == "memory" && text(line, "arm") == arm && text(line, "when") == "step";
  });
  attempt.ranks[1].evidence->lines.back().fields["lines"] =
      attempt.ranks[1].evidence->lines.size() - 1;
}

Row died(const char* arm) {
  return {.name = "the rank died",
          .change = [=](Attempt& a) { die_before(a, {.rank = 1, .kind = "memory", .arm = arm}); },
          .want = record::Result::unexercised,
          .rank = std::nullopt,
          .said = {"rank 1"},
          .also = {"*"}};
}

TEST(AllocatorSeries, Rows) {
  judge_rows(
      "D31.allocator_series", kCase,
      {
          {.name = "512 bytes a step",
           .change = grow("allocated", 512),
           .rank = 1,
           .said = {"`allocated` bytes of arm solo_graph", "3150848 bytes after the last step",
                    "3147776, as 6 steps before"}},
          {.name = "the last step alone",
           .change = [](Attempt& a) { memory(a, "solo_eager", "step", 10).fields["reserved"] = 1; },
           .rank = 1,
           .said = {"`reserved` bytes of arm solo_eager", "1 bytes after the last step"}},
          {.name = "a look in the middle is absent",
           .change =
               [](Attempt& a) {
                 erase(a, {.rank = 1, .kind = "memory", .arm = "solo_graph", .step = 7});
               },
           .rank = 1,
           .said = {"`memory` line of arm solo_graph at step 7"},
           .also = {"D31.device_trend", "D31.resident_trend"}},
          {.name = "the last look is absent",
           .change =
               [](Attempt& a) {
                 erase(a, {.rank = 1, .kind = "memory", .arm = "solo_eager", .step = 10});
               },
           .rank = 1,
           .said = {"`memory` line of arm solo_eager at step 10"},
           .also = {"D31.device_trend", "D31.resident_trend"}},
          {.name = "absent",
           .change = [](Attempt& a) { drop_steps(a, "solo_eager"); },
           .rank = 1,
           .said = {"`memory` line of arm solo_eager at step 4"},
           .also = {"D31.device_trend", "D31.resident_trend"}},
          died("solo_graph"),
      });
}

// One more block at step 7, and at 8, of steps 4 to 10.
TEST(AllocatorSeries, DroplessExpertsMayTakeABlockNowAndThen) {
  const json dropless = {
      {"impl", "local"},        {"modules", {"attn"}},     {"dp", 2},      {"ep", 2},
      {"microbatches", 2},      {"model", "moe"},          {"experts", 4}, {"topk", 2},
      {"dispatch", "dropless"}, {"dispatcher", "alltoall"}};
  const auto rising_from = [](const char* what, std::int64_t first, std::int64_t last) {
    return [=](Attempt& a) {
      for (Line& line : a.ranks[1].evidence->lines)
        if (line.kind == "memory" && text(line, "when") == "step" &&
            *integer(line, "step") >= first)
          line.fields[what] = line.fields.at(what).get<std::int64_t>() +
                              (std::min(*integer(line, "step"), last) - first + 1) * (2 << 20);
    };
  };
  const auto judged = [&](const json& axes, const char* what, std::int64_t first,
                          std::int64_t last) {
    return judge_one("D31.allocator_series", axes, rising_from(what, first, last)).result;
  };
  EXPECT_EQ(judged(dropless, "reserved", 7, 8), record::Result::pass);
  EXPECT_EQ(judged(dropless, "reserved", 5, 7), record::Result::pass);
  EXPECT_EQ(judged(dropless, "reserved", 5, 8), record::Result::fail) << "in four of six";
  EXPECT_EQ(judged(dropless, "allocated", 7, 7), record::Result::fail);
  EXPECT_EQ(judged(kCase, "reserved", 7, 7), record::Result::fail);
}

// What the allocator took from the device is the allocator's, whose series is judged apart.
TEST(DeviceTrend, LeavesOutWhatTheAllocatorReserved) {
  const auto both = [](Attempt& a) {
    grow("device", 2 << 20)(a);
    grow("reserved", 2 << 20)(a);
  };
  EXPECT_EQ(judge_one("D31.device_trend", kCase, both).result, record::Result::pass);
  EXPECT_EQ(judge_one("D31.allocator_series", kCase, both).result, record::Result::fail);
}

TEST(DeviceTrend, Rows) {
  judge_rows(
      "D31.device_trend", kCase,
      {
          {.name = "2 MiB a step",
           .change = grow("device", 2 << 20),
           .rank = 1,
           .said = {"`device` memory of arm solo_graph grows", "2097152 bytes a step",
                    "one jump of 2097152 bytes"}},
          {.name = "a gap",
           .change = [](Attempt& a) { memory(a, "solo_graph", "step", 6).fields.erase("device"); },
           .rank = 1,
           .said = {"the memory series `device` of arm solo_graph has a gap"}},
          {.name = "absent",
           .change = [](Attempt& a) { drop_steps(a, "solo_graph"); },
           .rank = 1,
           .said = {"`memory` line of arm solo_graph at step 4"},
           .also = {"D31.allocator_series", "D31.resident_trend"}},
          died("solo_graph"),
      });
}

void share_gpus(Attempt& a) {
  for (RankFiles& files : a.ranks)
    for (Line& line : files.evidence->lines)
      if (line.kind == "start") line.fields["shared_gpus"] = 1;
}

TEST(DeviceTrend, IsNobodysOwnWhereRanksShareGpus) {
  const auto grown = [](Attempt& a) {
    share_gpus(a);
    grow("device", 2 << 20)(a);
  };
  EXPECT_EQ(judge_one("D31.device_trend", kCase, grown).result, record::Result::unexercised)
      << "never a pass; whoever plans such a case does not ask";
  EXPECT_EQ(judge_one("D31.resident_trend", kCase,
                      [](Attempt& a) {
                        share_gpus(a);
                        grow("resident", 1 << 20)(a);
                      })
                .result,
            record::Result::fail);
}

TEST(ReturnedAfterFlush, WhereRanksShareGpusTheAllocatorsCountStillBinds) {
  const auto left = [](const char* what) {
    return judge_one("D30.returned_after_flush", kCase,
                     [what](Attempt& a) {
                       share_gpus(a);
                       memory(a, "solo_graph", "returned").fields[what] = 64 << 20;
                     })
        .result;
  };
  EXPECT_EQ(left("device"), record::Result::pass);
  EXPECT_EQ(left("reserved"), record::Result::fail);
}

TEST(DeviceTrend, OneJumpOfAPageIsNoTrend) {
  const auto result = judge_one("D31.device_trend", kCase, [](Attempt& a) {
    for (Line& line : a.ranks[1].evidence->lines)
      if (line.kind == "memory" && text(line, "when") == "step" && *integer(line, "step") >= 7)
        line.fields["device"] = line.fields["device"].get<std::int64_t>() + (2 << 20);
  });
  EXPECT_EQ(result.result, record::Result::pass) << record::to_text(result.message);
}

TEST(ResidentTrend, Rows) {
  judge_rows("D31.resident_trend", kCase,
             {
                 {.name = "1 MiB a step",
                  .change = grow("resident", 1 << 20),
                  .rank = 1,
                  .said = {"`resident` memory of arm solo_graph grows"}},
                 died("solo_graph"),
             });
}

TEST(ResidentTrend, WhatEagerGrowsByIsUsual) {
  const auto result = judge_one("D31.resident_trend", kCase, [](Attempt& a) {
    for (Line& line : a.ranks[1].evidence->lines)
      if (line.kind == "memory" && text(line, "when") == "step")
        line.fields["resident"] = 70000000 + (1 << 20) * *integer(line, "step");
  });
  EXPECT_EQ(result.result, record::Result::pass) << record::to_text(result.message);
}

TEST(PoolSharing, Rows) {
  const Where capture{.rank = 1, .kind = "capture", .arm = "solo_graph"};
  judge_rows("D31.pool_sharing", kCase,
             {
                 {.name = "a pool for every graph (M63)",
                  .change = [=](Attempt& a) { set(a, capture, "pools", 4); },
                  .rank = 1,
                  .said = {"the graphs of arm solo_graph do not share their memory", "4 pools",
                           "1 at most, as axis pool says: single"}},
                 {.name = "nobody counted",
                  .change = [=](Attempt& a) { unset(a, capture, "pools"); },
                  .rank = 1,
                  .said = {"unknown pools"}},
                 {.name = "the rank died",
                  .change = [](Attempt& a) { die_before(a, {.rank = 1, .kind = "capture"}); },
                  .want = record::Result::unexercised,
                  .rank = std::nullopt,
                  .said = {"rank 1"},
                  .also = {"*"}},
             });
}

TEST(PoolSharing, AsManyPoolsAsMicrobatchesWhereTheCaseAsksForIt) {
  const json per_microbatch = {{"impl", "manual"}, {"microbatches", 2}, {"pool", "per_microbatch"}};
  const auto pools = [](int count) {
    return [count](Attempt& a) { set(a, {.rank = 0, .kind = "capture"}, "pools", count); };
  };
  EXPECT_EQ(judge_one("D31.pool_sharing", per_microbatch, pools(2)).result, record::Result::pass);
  EXPECT_EQ(judge_one("D31.pool_sharing", per_microbatch, pools(3)).result, record::Result::fail);
}

TEST(PoolSharing, ValidationHasAPoolOfItsOwn) {
  const auto second_pool = [](const char* graph) {
    return [graph](Attempt& a) {
      set(a, {.rank = 0, .kind = "capture"}, "pools", 2);
      set(a, {.rank = 0, .kind = "capture"}, "graph", graph);
    };
  };
  EXPECT_EQ(judge_one("D31.pool_sharing", kCase, second_pool("validation")).result,
            record::Result::pass);
  EXPECT_EQ(judge_one("D31.pool_sharing", kCase, second_pool("training")).result,
            record::Result::fail);
}

TEST(ReturnedAfterFlush, Rows) {
  judge_rows(
      "D30.returned_after_flush", kCase,
      {
          {.name = "one byte stays reserved (M89)",
           .change = [](Attempt& a) { memory(a, "solo_graph", "returned").fields["reserved"] = 1; },
           .rank = 1,
           .said = {"`reserved` memory did not come back", "1 bytes after a flush collective",
                    "0 at most"}},
          {.name = "two pages of the device stay used, and eager returned all of it",
           .change =
               [](Attempt& a) { memory(a, "solo_graph", "returned").fields["device"] = 4 << 20; },
           .rank = 1,
           .said = {"`device` memory did not come back", "within 2097152"}},
          {.name = "absent",
           .change =
               [](Attempt& a) { memory(a, "solo_eager", "returned").fields["when"] = "dropped"; },
           .rank = 1,
           .said = {"`memory` line of a solo arm before it was built and after it was gone"}},
          {.name = "nobody knows how far the device's own count moves",
           .change = [](Attempt& a) { memory(a, "solo_eager", "before").fields.erase("device"); },
           .rank = 1,
           .said = {"count of the device's bytes before arm solo_eager was built"}},
          died("solo_graph"),
      });
}

TEST(ReturnedAfterFlush, TheDevicesCountMayMoveAsItDoesAroundAnEagerArm) {
  const auto result = judge_one("D30.returned_after_flush", kCase, [](Attempt& a) {
    memory(a, "solo_eager", "returned").fields["device"] = 6 << 20;
    memory(a, "solo_graph", "returned").fields["device"] = 6 << 20;
  });
  EXPECT_EQ(result.result, record::Result::pass) << record::to_text(result.message);
}

TEST(PoolsReleased, Rows) {
  judge_rows(
      "D32.pools_released", kCase,
      {
          {.name = "a segment is left",
           .change =
               [](Attempt& a) { memory(a, "solo_graph", "returned").fields["pool"] = 2097152; },
           .rank = 1,
           .said = {"a graph pool of arm solo_graph outlives its graphs",
                    "2097152 bytes in graph pools", "0 at most"}},
          {.name = "absent",
           .change =
               [](Attempt& a) { memory(a, "solo_graph", "returned").fields["when"] = "dropped"; },
           .rank = 1,
           .said = {"`memory` line of arm solo_graph"},
           .also = {"D30.returned_after_flush"}},
          died("solo_graph"),
      });
}

}  // namespace
}  // namespace graphproof::checks
