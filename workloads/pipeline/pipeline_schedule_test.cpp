#include "workloads/pipeline/pipeline_schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <set>
#include <string>

#include "workloads/pipeline/refusal_of.h"

namespace graphproof::order {
namespace {

/// A random pipeline that can run. With several chunks, the groups of microbatches are at least as
/// large as the pipeline, as Megatron-LM requires.
Stage any_pipeline() {
  Stage stage{.pp = *rc::gen::inRange<std::int64_t>(1, 9)};
  stage.chunks = stage.pp == 1 ? 1 : *rc::gen::inRange<std::int64_t>(1, 5);
  stage.microbatches = *rc::gen::inRange<std::int64_t>(1, 13);
  if (stage.chunks > 1) {
    stage.group = stage.pp + *rc::gen::inRange<std::int64_t>(0, 4);
    // A last group that is smaller than the others is at least as large as the pipeline.
    const std::int64_t rest = *rc::gen::inRange<std::int64_t>(stage.pp - 1, stage.group);
    stage.microbatches =
        stage.group * *rc::gen::inRange<std::int64_t>(1, 4) + (rest < stage.pp ? 0 : rest);
  }
  return stage;
}

std::vector<std::vector<ScheduleSlot>> of_all_stages(Stage stage) {
  std::vector<std::vector<ScheduleSlot>> all;
  for (stage.rank = 0; stage.rank < stage.pp; ++stage.rank) all.push_back(schedule_slots(stage));
  return all;
}

/// The slots as text, for example "F0,0>1 B0": one word for each slot.
std::string text(const std::vector<ScheduleSlot>& slots) {
  std::string line;
  for (const ScheduleSlot& slot : slots) {
    std::string word =
        slot.work ? (slot.work->forward ? "F" : "B") + std::to_string(slot.work->microbatch) : "";
    if (slot.overlapped_forward) word += "+F" + std::to_string(slot.overlapped_forward->microbatch);
    for (const Transfer& transfer : slot.transfers)
      word += (word.empty() ? "" : ",") + std::to_string(transfer.from) + ">" +
              std::to_string(transfer.to);
    line += (line.empty() ? "" : " ") + word;
  }
  return line;
}

TEST(PipelineSchedule, TwoStagesExchangeAnActivationAndAGradientInOneSlot) {
  EXPECT_EQ(text(schedule_slots({.pp = 2, .rank = 0, .microbatches = 3})),
            "F0,0>1 F1,0>1 1>0 B0 F2,0>1,1>0 B1 1>0 B2");
  EXPECT_EQ(text(schedule_slots({.pp = 2, .rank = 1, .microbatches = 3})),
            "0>1 F0,0>1 B0,1>0 F1 B1,0>1,1>0 F2 B2,1>0");
}

TEST(PipelineSchedule, OneStageRunsEachMicrobatchForwardAndBackwardAndTransfersNothing) {
  EXPECT_EQ(text(schedule_slots({.microbatches = 2})), "F0 B0 F1 B1");
}

TEST(PipelineSchedule, InPairsABackwardSharesItsSlotWithTheForwardAfterIt) {
  EXPECT_EQ(text(schedule_slots({.microbatches = 3}, /*in_pairs=*/true)), "F0 B0+F1 B1+F2 B2");
  EXPECT_EQ(text(schedule_slots({.microbatches = 1}, /*in_pairs=*/true)), "F0 B0");
}

// layer_order() pairs the same entries of the chunk order.
TEST(PipelineSchedule, InPairsWorkIsTheChunkOrderAndEveryInputIsThereWhenItsPairBegins) {
  EXPECT_TRUE(rc::check([] {
    Stage stage = any_pipeline();
    stage.rank = *rc::gen::inRange<std::int64_t>(0, stage.pp);
    RC_PRE(stage.pp == 1 || stage.chunks > 1);
    std::vector<double> ran;
    std::set<Work> arrived;
    for (const ScheduleSlot& slot : schedule_slots(stage, /*in_pairs=*/true)) {
      for (const auto& work : {slot.work, slot.overlapped_forward})
        if (work)
          ran.push_back(static_cast<double>(work->forward ? work->chunk + 1 : -(work->chunk + 1)));
      RC_ASSERT(!slot.overlapped_forward ||
                (slot.overlapped_forward->forward && slot.work && !slot.work->forward));
      for (const auto& work : {slot.work, slot.overlapped_forward}) {
        const bool first =
            work && (work->forward ? stage.rank == 0 && work->chunk == 0
                                   : stage.rank == stage.pp - 1 && work->chunk == stage.chunks - 1);
        if (work && stage.pp > 1 && !first) RC_ASSERT(arrived.contains(*work));
      }
      for (const Transfer& transfer : slot.transfers)
        if (transfer.to == stage.rank) arrived.insert(transfer.consumer);
    }
    RC_ASSERT(ran == chunk_order(stage));
  }));
}

TEST(PipelineSchedule, WorkIsTheChunkOrderOfTheStage) {
  EXPECT_TRUE(rc::check([] {
    Stage stage = any_pipeline();
    stage.rank = *rc::gen::inRange<std::int64_t>(0, stage.pp);
    std::vector<double> entries;
    std::map<std::pair<bool, std::int64_t>, std::int64_t> next;
    for (const ScheduleSlot& slot : schedule_slots(stage)) {
      if (!slot.work) continue;
      entries.push_back(
          static_cast<double>((slot.work->forward ? 1 : -1) * (slot.work->chunk + 1)));
      RC_ASSERT((slot.work->microbatch == next[{slot.work->forward, slot.work->chunk}]++));
    }
    RC_ASSERT(entries == chunk_order(stage));
  }));
}

TEST(PipelineSchedule, BothEndsOfAnEdgeHaveTheSameTransfersInTheSameOrder) {
  EXPECT_TRUE(rc::check([] {
    const Stage stage = any_pipeline();
    std::map<Edge, std::vector<Transfer>> sent, received;
    const auto all = of_all_stages(stage);
    for (std::size_t s = 0; s < all.size(); ++s)
      for (const ScheduleSlot& slot : all[s])
        for (const Transfer& transfer : slot.transfers)
          (transfer.from == static_cast<std::int64_t>(s) ? sent
                                                         : received)[{transfer.from, transfer.to}]
              .push_back(transfer);
    RC_ASSERT(sent == received);
    std::vector<Edge> used;
    for (const auto& [edge, transfers] : sent) used.push_back(edge);
    RC_ASSERT(used == edges(stage.pp, stage.chunks));
  }));
}

// Simulates the schedule: a transfer ends only when both its ends have reached it (there is no
// buffering), each stage does one thing after the other, and the stage that proceeds is random.
TEST(PipelineSchedule, EveryStageEndsAndHasItsInputsInTimeIfASendEndsOnlyWhenItIsReceived) {
  EXPECT_TRUE(rc::check([] {
    const Stage stage = any_pipeline();
    const auto all = of_all_stages(stage);
    struct Position {
      std::size_t slot = 0, transfer = 0;
      bool worked = false;
    };
    std::vector<Position> at(all.size());
    std::vector<std::set<Work>> arrived(all.size());
    const auto waiting_in = [&](std::size_t s) -> const Transfer* {
      if (at[s].slot == all[s].size() || !at[s].worked) return nullptr;
      const ScheduleSlot& slot = all[s][at[s].slot];
      return at[s].transfer < slot.transfers.size() ? &slot.transfers[at[s].transfer] : nullptr;
    };
    const auto step = [&](std::size_t s) {
      if (at[s].slot == all[s].size()) return false;
      const ScheduleSlot& slot = all[s][at[s].slot];
      if (!at[s].worked) {
        at[s].worked = true;
        if (!slot.work) return true;
        const std::int64_t first_stage = slot.work->forward ? 0 : stage.pp - 1;
        const std::int64_t first_chunk = slot.work->forward ? 0 : stage.chunks - 1;
        const bool has_own_input = stage.pp == 1 || (static_cast<std::int64_t>(s) == first_stage &&
                                                     slot.work->chunk == first_chunk);
        RC_ASSERT(has_own_input || arrived[s].contains(*slot.work));
        return true;
      }
      if (at[s].transfer == slot.transfers.size()) {
        at[s] = {.slot = at[s].slot + 1};
        return true;
      }
      const Transfer& mine = slot.transfers[at[s].transfer];
      const auto other =
          static_cast<std::size_t>(mine.from == static_cast<std::int64_t>(s) ? mine.to : mine.from);
      const Transfer* theirs = waiting_in(other);
      if (theirs == nullptr || *theirs != mine) return false;
      arrived[static_cast<std::size_t>(mine.to)].insert(mine.consumer);
      ++at[s].transfer;
      ++at[other].transfer;
      return true;
    };
    for (bool moved = true; moved;) {
      moved = false;
      const auto first = *rc::gen::inRange<std::size_t>(0, all.size());
      for (std::size_t i = 0; i < all.size() && !moved; ++i) moved = step((first + i) % all.size());
    }
    for (std::size_t s = 0; s < all.size(); ++s) RC_ASSERT(at[s].slot == all[s].size());
  }));
}

TEST(PipelineSchedule, EdgesJoinNeighboursAndWithChunksTheLastStageAndTheFirst) {
  EXPECT_TRUE(edges(1, 1).empty());
  EXPECT_EQ(edges(2, 1), (std::vector<Edge>{{0, 1}, {1, 0}}));
  EXPECT_EQ(edges(2, 2), (std::vector<Edge>{{0, 1}, {1, 0}}));
  EXPECT_EQ(edges(4, 1).size(), 6u);
  EXPECT_EQ(edges(4, 2).size(), 8u);
}

TEST(PipelineSchedule, RefusesAnOrderInWhichStagesWaitInACircle) {
  const std::string circle =
      refusal_of([] { schedule_slots({.pp = 4, .chunks = 2, .microbatches = 4, .group = 1}); });
  EXPECT_NE(circle.find(
                "a pipeline of 4 stages with 2 chunks, 4 microbatches in groups of 1; got stage "),
            std::string::npos)
      << circle;
  EXPECT_NE(circle.find("for ever; want an order in which every stage gets its input"),
            std::string::npos)
      << circle;
  EXPECT_NE(circle.find("; next: give a multiple"), std::string::npos) << circle;
  EXPECT_NE(refusal_of([] {
              schedule_slots({.pp = 1, .chunks = 2, .microbatches = 2});
            }).find("2 on one stage"),
            std::string::npos);
}

}  // namespace
}  // namespace graphproof::order
