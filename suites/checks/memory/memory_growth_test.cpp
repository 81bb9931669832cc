#include <gtest/gtest.h>

#include <algorithm>

#include "suites/checks/testing/check_rows.h"
#include "suites/checks/testing/memory_lines.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

/// Makes a field of solo_graph on rank 1 grow by `bytes` per step.
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

TEST(AllocatorSeries, Rows) {
  judge_rows(
      "D31.allocator_series", kTwoRanks,
      {
          {.name = "512 bytes a step",
           .change = grow("allocated", 512),
           .rank = 1,
           .mentions = {"`allocated` bytes of arm solo_graph", "3150848 bytes after the last step",
                        "3147776, as 6 steps before"}},
          {.name = "the last step alone",
           .change =
               [](Attempt& a) { memory_line(a, "solo_eager", "step", 10).fields["reserved"] = 1; },
           .rank = 1,
           .mentions = {"`reserved` bytes of arm solo_eager", "1 bytes after the last step"}},
          {.name = "a `memory` line in the middle is absent",
           .change =
               [](Attempt& a) {
                 erase(a, {.rank = 1, .kind = "memory", .arm = "solo_graph", .step = 7});
               },
           .rank = 1,
           .mentions = {"`memory` line of arm solo_graph at step 7"},
           .also = {"D31.device_trend", "D31.resident_trend", "D31.heap_trend"}},
          {.name = "the last `memory` line is absent",
           .change =
               [](Attempt& a) {
                 erase(a, {.rank = 1, .kind = "memory", .arm = "solo_eager", .step = 10});
               },
           .rank = 1,
           .mentions = {"`memory` line of arm solo_eager at step 10"},
           .also = {"D31.device_trend", "D31.resident_trend", "D31.heap_trend"}},
          {.name = "absent",
           .change = [](Attempt& a) { drop_steps(a, "solo_eager"); },
           .rank = 1,
           .mentions = {"`memory` line of arm solo_eager at step 4"},
           .also = {"D31.device_trend", "D31.resident_trend", "D31.heap_trend"}},
          rank_died({.rank = 1, .kind = "memory", .arm = "solo_graph"}),
      });
}

/// One block of 2 MiB more after each of these steps.
auto rising(const char* what, std::int64_t first, std::int64_t last) {
  return [=](Attempt& a) {
    for (Line& line : a.ranks[1].evidence->lines)
      if (line.kind == "memory" && text(line, "when") == "step" && *integer(line, "step") >= first)
        line.fields[what] = line.fields.at(what).get<std::int64_t>() +
                            (std::min(*integer(line, "step"), last) - first + 1) * (2 << 20);
  };
}

/// The axes of a model with experts over two ranks, and those of `more`.
json experts(const json& more) {
  json axes = {{"dp", 2},      {"ep", 2},   {"microbatches", 2},       {"model", "moe"},
               {"experts", 4}, {"topk", 2}, {"dispatcher", "alltoall"}};
  axes.update(more);
  return axes;
}

// One more block at step 7, and at 8, of steps 4 to 10.
TEST(AllocatorSeries, DroplessExpertsMayTakeABlockNowAndThen) {
  const json dropless =
      experts({{"impl", "local"}, {"modules", {"attn"}}, {"dispatch", "dropless"}});
  const auto judged = [&](const json& axes, const char* what, std::int64_t first,
                          std::int64_t last) {
    return judge_one("D31.allocator_series", axes, rising(what, first, last)).result;
  };
  EXPECT_EQ(judged(dropless, "reserved", 7, 8), record::Result::pass);
  EXPECT_EQ(judged(dropless, "reserved", 5, 7), record::Result::pass);
  EXPECT_EQ(judged(dropless, "reserved", 5, 8), record::Result::fail) << "in four of six";
  EXPECT_EQ(judged(dropless, "allocated", 7, 7), record::Result::fail);
  EXPECT_EQ(judged(kTwoRanks, "reserved", 7, 7), record::Result::fail);
}

// PyTorch's process groups give memory back when their stream has passed it.
TEST(AllocatorSeries, ProcessGroupsMayTakeABlockNowAndThen) {
  const json c10d = {{"impl", "manual"}, {"dp", 2}, {"microbatches", 2}, {"comm", "c10d"}};
  const auto judged = [&](const char* what, std::int64_t first, std::int64_t last) {
    return judge_one("D31.allocator_series", c10d, rising(what, first, last)).result;
  };
  EXPECT_EQ(judged("reserved", 7, 7), record::Result::pass);
  EXPECT_EQ(judged("reserved", 5, 9), record::Result::fail);
  EXPECT_EQ(judged("allocated", 7, 7), record::Result::fail);
}

// The allocator gives memory back when the stream of the shared experts has passed it.
TEST(AllocatorSeries, OverlappedSharedExpertsMayTakeABlockNowAndThen) {
  const auto judged = [&](bool overlap, const char* what, std::int64_t first, std::int64_t last) {
    const json padded = experts({{"impl", "manual"},
                                 {"dispatch", "drop_and_pad"},
                                 {"shared_expert", true},
                                 {"shared_expert_overlap", overlap}});
    return judge_one("D31.allocator_series", padded, rising(what, first, last)).result;
  };
  EXPECT_EQ(judged(true, "reserved", 7, 7), record::Result::pass);
  EXPECT_EQ(judged(false, "reserved", 7, 7), record::Result::fail);
  EXPECT_EQ(judged(true, "reserved", 5, 9), record::Result::fail);
  EXPECT_EQ(judged(true, "allocated", 7, 7), record::Result::fail);
}

// The modules of a real program keep tensors as long as the last microbatch's tokens were many.
TEST(AllocatorSeries, DroplessExpertsOfARealProgramMayKeepMoreOrLess) {
  const json dropless = experts({{"subject", "megatron_core"},
                                 {"impl", "transformer_engine"},
                                 {"layer_spec", "transformer_engine"},
                                 {"modules", {"attn"}},
                                 {"comm", "c10d"},
                                 {"precision", "bf16"},
                                 {"dispatch", "dropless"}});
  // 512 bytes more after one step, or from one step on.
  const auto judged = [&](std::int64_t first, std::int64_t last) {
    return judge_one("D31.allocator_series", dropless,
                     [=](Attempt& a) {
                       for (Line& line : a.ranks[1].evidence->lines)
                         if (line.kind == "memory" && text(line, "when") == "step" &&
                             *integer(line, "step") >= first && *integer(line, "step") <= last)
                           line.fields["allocated"] =
                               line.fields.at("allocated").get<std::int64_t>() + 512;
                     })
        .result;
  };
  EXPECT_EQ(judged(6, 6), record::Result::pass);
  EXPECT_EQ(judged(5, 100), record::Result::pass) << "no more than after a step before";
  EXPECT_EQ(judge_one("D31.allocator_series", dropless, rising("allocated", 5, 100)).result,
            record::Result::fail)
      << "more after each step";
}

// Memory that the allocator took from the device is judged by the allocator's own series.
TEST(DeviceTrend, LeavesOutWhatTheAllocatorReserved) {
  const auto both = [](Attempt& a) {
    grow("device", 2 << 20)(a);
    grow("reserved", 2 << 20)(a);
  };
  EXPECT_EQ(judge_one("D31.device_trend", kTwoRanks, both).result, record::Result::pass);
  EXPECT_EQ(judge_one("D31.allocator_series", kTwoRanks, both).result, record::Result::fail);
}

TEST(DeviceTrend, Rows) {
  judge_rows(
      "D31.device_trend", kTwoRanks,
      {
          {.name = "2 MiB a step",
           .change = grow("device", 2 << 20),
           .rank = 1,
           .mentions = {"`device` memory of arm solo_graph grows", "2097152 bytes a step",
                        "one jump of 2097152 bytes"}},
          {.name = "a gap",
           .change =
               [](Attempt& a) { memory_line(a, "solo_graph", "step", 6).fields.erase("device"); },
           .rank = 1,
           .mentions = {"the memory series `device` of arm solo_graph has a gap"}},
          {.name = "absent",
           .change = [](Attempt& a) { drop_steps(a, "solo_graph"); },
           .rank = 1,
           .mentions = {"`memory` line of arm solo_graph at step 4"},
           .also = {"D31.allocator_series", "D31.resident_trend", "D31.heap_trend"}},
          rank_died({.rank = 1, .kind = "memory", .arm = "solo_graph"}),
      });
}

TEST(DeviceTrend, IsNobodysOwnWhereRanksShareGpus) {
  const auto grown = [](Attempt& a) {
    share_gpus(a);
    grow("device", 2 << 20)(a);
  };
  EXPECT_EQ(judge_one("D31.device_trend", kTwoRanks, grown).result, record::Result::unexercised)
      << "never a pass; a plan does not require the check of such a case";
  EXPECT_EQ(judge_one("D31.resident_trend", kTwoRanks,
                      [](Attempt& a) {
                        share_gpus(a);
                        grow("resident", 1 << 20)(a);
                      })
                .result,
            record::Result::fail);
}

TEST(DeviceTrend, IsNobodysOwnWhereOthersUseTheGpu) {
  const auto result = judge_one("D31.device_trend", kTwoRanks, [](Attempt& a) {
    memory_line(a, "solo_eager", "step", 4).fields["device"] = 4096LL << 20;
    grow("device", 2 << 20)(a);
  });
  EXPECT_EQ(result.result, record::Result::unexercised) << "never a pass";
  EXPECT_NE(record::to_text(result.message).find("other processes used the GPU of rank 1"),
            std::string::npos)
      << record::to_text(result.message);
}

TEST(DeviceTrend, OneJumpOfAPageIsNoTrend) {
  const auto result = judge_one("D31.device_trend", kTwoRanks, [](Attempt& a) {
    for (Line& line : a.ranks[1].evidence->lines)
      if (line.kind == "memory" && text(line, "when") == "step" && *integer(line, "step") >= 7)
        line.fields["device"] = line.fields["device"].get<std::int64_t>() + (2 << 20);
  });
  EXPECT_EQ(result.result, record::Result::pass) << record::to_text(result.message);
}

TEST(ResidentTrend, Rows) {
  judge_rows("D31.resident_trend", kTwoRanks,
             {
                 {.name = "1 MiB a step",
                  .change = grow("resident", 1 << 20),
                  .rank = 1,
                  .mentions = {"`resident` memory of arm solo_graph grows"}},
                 rank_died({.rank = 1, .kind = "memory", .arm = "solo_graph"}),
             });
}

// As seen once in a case of 600 MB, whose heap had no hole for a block of a step.
TEST(ResidentTrend, OneRiseOfAnySizeIsNoTrendAndTwoAre) {
  const auto rising_after = [](std::vector<std::int64_t> steps) {
    return judge_one("D31.resident_trend", kTwoRanks,
                     [&](Attempt& a) {
                       for (Line& line : a.ranks[1].evidence->lines)
                         if (line.kind == "memory" && text(line, "arm") == "solo_graph" &&
                             text(line, "when") == "step")
                           for (const std::int64_t step : steps)
                             if (*integer(line, "step") >= step)
                               line.fields["resident"] =
                                   line.fields["resident"].get<std::int64_t>() + 2228224;
                       type_again(a);
                     })
        .result;
  };
  EXPECT_EQ(rising_after({7}), record::Result::pass);
  EXPECT_EQ(rising_after({6, 8}), record::Result::fail);
}

TEST(HeapTrend, Rows) {
  judge_rows("D31.heap_trend", kTwoRanks,
             {
                 {.name = "64 KiB a step (M358)",
                  .change = grow("heap", 64 << 10),
                  .rank = 1,
                  .mentions = {"`heap` memory of arm solo_graph grows"}},
                 {.name = "a `memory` line without it",
                  .change =
                      [](Attempt& a) {
                        memory_line(a, "solo_graph", "step", 7).fields.erase("heap");
                        type_again(a);
                      },
                  .rank = 1,
                  .mentions = {"the memory series `heap` of arm solo_graph has a gap"},
                  .also = {"*"}},
                 rank_died({.rank = 1, .kind = "memory", .arm = "solo_graph"}),
             });
}

TEST(HeapTrend, TablesThatGrowAreNoTrend) {
  const auto result = judge_one("D31.heap_trend", kTwoRanks, [](Attempt& a) {
    for (Line& line : a.ranks[1].evidence->lines) {
      if (line.kind != "memory" || text(line, "when") != "step") continue;
      auto& heap = line.fields["heap"];
      if (*integer(line, "step") >= 7) heap = heap.get<std::int64_t>() + (4 << 20);
      if (*integer(line, "step") >= 9) heap = heap.get<std::int64_t>() + (180 << 10);
    }
  });
  EXPECT_EQ(result.result, record::Result::pass) << record::to_text(result.message);
}

TEST(HeapTrend, ALossOfAPageInEveryStepIsSeen) {
  const auto result = judge_one("D31.heap_trend", kTwoRanks, grow("heap", 4 << 10));
  EXPECT_EQ(result.result, record::Result::fail) << record::to_text(result.message);
}

/// Makes a count of the long job's arm grow by `more` in every cycle, on rank 1.
std::function<void(Attempt&)> grow_by_cycle(const char* what, std::int64_t more,
                                            std::int64_t cycle_steps = 50) {
  return [=](Attempt& a) {
    for (Line& line : a.ranks[1].evidence->lines)
      if (line.kind == "memory" && text(line, "arm") == "soak_graph")
        line.fields[what] = line.fields.at(what).get<std::int64_t>() +
                            more * (*integer(line, "step") / cycle_steps);
  };
}

/// Makes it grow by `bytes` in every step of the long job.
std::function<void(Attempt&)> grow_in_long_job(const char* what, std::int64_t bytes) {
  return grow_by_cycle(what, bytes, 1);
}

TEST(HeapOfReplays, Rows) {
  judge_rows("D31.heap_of_replays", kLongJob,
             {
                 {.name = "512 bytes in every replay (M524)",
                  .change = grow_in_long_job("heap", 512),
                  .rank = 1,
                  .mentions = {"`heap` memory of arm soak_graph grows", "bytes a step"},
                  .also = {"D31.heap_trend"}},
                 {.name = "kept until the graph is destroyed",
                  .change =
                      [](Attempt& a) {
                        for (Line& line : a.ranks[1].evidence->lines)
                          if (line.kind == "memory" && text(line, "arm") == "soak_graph")
                            line.fields["heap"] = line.fields.at("heap").get<std::int64_t>() +
                                                  512 * (*integer(line, "step") % 50);
                      },
                  .rank = 1,
                  .mentions = {"`heap` memory of arm soak_graph grows"}},
                 {.name = "a sample lacks it",
                  .change =
                      [](Attempt& a) {
                        memory_line(a, "soak_graph", "step", 499).fields.erase("heap");
                        type_again(a);
                      },
                  .rank = 1,
                  .mentions = {"the memory series `heap` of arm soak_graph has a gap"},
                  .also = {"D31.heap_trend"}},
             });
}

// 48 KB for each, as seen on H100.
TEST(HeapOfReplays, WhatADriverKeepsOfEveryCaptureIsNoLossOfReplays) {
  const auto change = grow_by_cycle("heap", 48 << 10);
  EXPECT_EQ(judge_one("D31.heap_of_replays", kLongJob, change).result, record::Result::pass);
  EXPECT_EQ(judge_one("D31.heap_trend", kLongJob, change).result, record::Result::fail)
      << "on the simulated device nothing may keep memory for a capture";
}

// As a table of a pipeline stage on the simulated device, in every cycle behind its first sample.
TEST(HeapOfReplays, ATableThatGrowsOnceInEveryCycleIsNoTrend) {
  const auto result = judge_one("D31.heap_of_replays", kLongJob, [](Attempt& a) {
    for (Line& line : a.ranks[1].evidence->lines)
      if (line.kind == "memory" && text(line, "arm") == "soak_graph" &&
          *integer(line, "step") % 50 > 30)
        line.fields["heap"] = line.fields.at("heap").get<std::int64_t>() + 4224;
  });
  EXPECT_EQ(result.result, record::Result::pass) << record::to_text(result.message);
}

TEST(Threads, Rows) {
  judge_rows("D31.threads", kLongJob,
             {
                 {.name = "one more in every recapture (M367)",
                  .change = grow_by_cycle("threads", 1),
                  .rank = 1,
                  .mentions = {"`threads` of arm soak_graph grows", "threads a step",
                               "one jump of 1 threads"}},
                 {.name = "a sample lacks it",
                  .change =
                      [](Attempt& a) {
                        memory_line(a, "soak_graph", "step", 499).fields.erase("threads");
                        type_again(a);
                      },
                  .rank = 1,
                  .mentions = {"the memory series `threads` of arm soak_graph has a gap"}},
                 rank_died({.rank = 1, .kind = "memory", .arm = "soak_graph"}),
             });
}

TEST(OpenFiles, Rows) {
  judge_rows("D31.open_files", kLongJob,
             {
                 {.name = "one more in every checkpoint (M368)",
                  .change = grow_by_cycle("files", 1),
                  .rank = 1,
                  .mentions = {"`files` of arm soak_graph grows", "descriptors a step"}},
                 {.name = "the last sample is absent",
                  .change =
                      [](Attempt& a) {
                        erase(a, {.rank = 1, .kind = "memory", .arm = "soak_eager", .step = 499});
                      },
                  .rank = 1,
                  .mentions = {"`memory` line of arm soak_eager at step 499"},
                  .also = {"*"}},
             });
}

TEST(Threads, OneMoreThatALibraryStartsIsNoTrend) {
  const auto result = judge_one("D31.threads", kLongJob, [](Attempt& a) {
    for (Line& line : a.ranks[1].evidence->lines)
      if (line.kind == "memory" && text(line, "arm") == "soak_graph" &&
          *integer(line, "step") >= 275)
        line.fields["threads"] = 6;
  });
  EXPECT_EQ(result.result, record::Result::pass) << record::to_text(result.message);
}

// The same losses are too small for the seven steps of a solo arm.
TEST(LongJob, ShowsLossesThatAShortCaseCannotShow) {
  struct {
    const char *check, *what;
    std::int64_t bytes;
    record::Result in_long_job;
  } rows[] = {{"D31.resident_trend", "resident", 64 << 10, record::Result::fail},
              {"D31.resident_trend", "resident", 8 << 10, record::Result::fail},
              {"D31.resident_trend", "resident", 4 << 10, record::Result::pass},
              {"D31.heap_trend", "heap", 64, record::Result::fail},
              {"D31.heap_trend", "heap", 16, record::Result::pass},
              {"D31.device_trend", "device", 16 << 10, record::Result::fail},
              {"D31.allocator_series", "allocated", 1, record::Result::fail}};
  for (const auto& [check, what, bytes, want] : rows) {
    SCOPED_TRACE(std::string(what) + " " + std::to_string(bytes));
    const auto result = judge_one(check, kLongJob, grow_in_long_job(what, bytes));
    EXPECT_EQ(result.result, want) << record::to_text(result.message);
    if (std::string_view(check) == "D31.allocator_series") continue;  // it sees every byte
    EXPECT_EQ(judge_one(check, kTwoRanks, grow(what, bytes)).result, record::Result::pass);
  }
}

TEST(ResidentTrend, WhatEagerGrowsByIsUsual) {
  const auto result = judge_one("D31.resident_trend", kTwoRanks, [](Attempt& a) {
    for (Line& line : a.ranks[1].evidence->lines)
      if (line.kind == "memory" && text(line, "when") == "step")
        line.fields["resident"] = 70000000 + (1 << 20) * *integer(line, "step");
  });
  EXPECT_EQ(result.result, record::Result::pass) << record::to_text(result.message);
}

}  // namespace
}  // namespace graphproof::checks
