#include "workloads/pipeline/pipeline_turns.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <set>
#include <string>

#include "workloads/pipeline/refusal_of.h"

namespace graphproof::order {
namespace {

/// A pipeline that can run: interleaved ones have microbatches in whole groups of at least the
/// pipeline size, as Megatron-LM requires.
Stage any_pipeline() {
  Stage stage{.pp = *rc::gen::inRange<std::int64_t>(1, 9)};
  stage.chunks = stage.pp == 1 ? 1 : *rc::gen::inRange<std::int64_t>(1, 5);
  stage.microbatches = *rc::gen::inRange<std::int64_t>(1, 13);
  if (stage.chunks > 1) {
    stage.group = stage.pp + *rc::gen::inRange<std::int64_t>(0, 4);
    // A last group that is not whole is at least as long as the pipeline.
    const std::int64_t rest = *rc::gen::inRange<std::int64_t>(stage.pp - 1, stage.group);
    stage.microbatches =
        stage.group * *rc::gen::inRange<std::int64_t>(1, 4) + (rest < stage.pp ? 0 : rest);
  }
  return stage;
}

std::vector<std::vector<Turn>> of_all_stages(Stage stage) {
  std::vector<std::vector<Turn>> all;
  for (stage.rank = 0; stage.rank < stage.pp; ++stage.rank) all.push_back(turns(stage));
  return all;
}

/// "F0,0>1 B0": a turn a word.
std::string text(const std::vector<Turn>& turns) {
  std::string line;
  for (const Turn& turn : turns) {
    std::string word =
        turn.work ? (turn.work->forward ? "F" : "B") + std::to_string(turn.work->microbatch) : "";
    if (turn.beside) word += "+F" + std::to_string(turn.beside->microbatch);
    for (const Transfer& transfer : turn.transfers)
      word += (word.empty() ? "" : ",") + std::to_string(transfer.from) + ">" +
              std::to_string(transfer.to);
    line += (line.empty() ? "" : " ") + word;
  }
  return line;
}

TEST(PipelineTurns, TwoStagesExchangeAnActivationAndAGradientInOneTurn) {
  EXPECT_EQ(text(turns({.pp = 2, .rank = 0, .microbatches = 3})),
            "F0,0>1 F1,0>1 1>0 B0 F2,0>1,1>0 B1 1>0 B2");
  EXPECT_EQ(text(turns({.pp = 2, .rank = 1, .microbatches = 3})),
            "0>1 F0,0>1 B0,1>0 F1 B1,0>1,1>0 F2 B2,1>0");
}

TEST(PipelineTurns, OneStageRunsEachMicrobatchForwardAndBackwardAndTransfersNothing) {
  EXPECT_EQ(text(turns({.microbatches = 2})), "F0 B0 F1 B1");
}

TEST(PipelineTurns, InPairsABackwardHasTheForwardBehindItBeside) {
  EXPECT_EQ(text(turns({.microbatches = 3}, /*in_pairs=*/true)), "F0 B0+F1 B1+F2 B2");
  EXPECT_EQ(text(turns({.microbatches = 1}, /*in_pairs=*/true)), "F0 B0");
}

/// The order that layer_order() is made of.
TEST(PipelineTurns, InPairsWorkIsTheChunkOrderAndEveryInputIsThereWhenItsPairBegins) {
  EXPECT_TRUE(rc::check([] {
    Stage stage = any_pipeline();
    stage.rank = *rc::gen::inRange<std::int64_t>(0, stage.pp);
    RC_PRE(stage.pp == 1 || stage.chunks > 1);
    std::vector<double> ran;
    std::set<Work> arrived;
    for (const Turn& turn : turns(stage, /*in_pairs=*/true)) {
      for (const auto& work : {turn.work, turn.beside})
        if (work)
          ran.push_back(static_cast<double>(work->forward ? work->chunk + 1 : -(work->chunk + 1)));
      RC_ASSERT(!turn.beside || (turn.beside->forward && turn.work && !turn.work->forward));
      for (const auto& work : {turn.work, turn.beside}) {
        const bool first =
            work && (work->forward ? stage.rank == 0 && work->chunk == 0
                                   : stage.rank == stage.pp - 1 && work->chunk == stage.chunks - 1);
        if (work && stage.pp > 1 && !first) RC_ASSERT(arrived.contains(*work));
      }
      for (const Transfer& transfer : turn.transfers)
        if (transfer.to == stage.rank) arrived.insert(transfer.takes);
    }
    RC_ASSERT(ran == chunk_order(stage));
  }));
}

TEST(PipelineTurns, WorkIsTheChunkOrderOfTheStage) {
  EXPECT_TRUE(rc::check([] {
    Stage stage = any_pipeline();
    stage.rank = *rc::gen::inRange<std::int64_t>(0, stage.pp);
    std::vector<double> entries;
    std::map<std::pair<bool, std::int64_t>, std::int64_t> next;
    for (const Turn& turn : turns(stage)) {
      if (!turn.work) continue;
      entries.push_back(
          static_cast<double>((turn.work->forward ? 1 : -1) * (turn.work->chunk + 1)));
      RC_ASSERT((turn.work->microbatch == next[{turn.work->forward, turn.work->chunk}]++));
    }
    RC_ASSERT(entries == chunk_order(stage));
  }));
}

TEST(PipelineTurns, BothEndsOfAnEdgeHaveTheSameTransfersInTheSameOrder) {
  EXPECT_TRUE(rc::check([] {
    const Stage stage = any_pipeline();
    std::map<Edge, std::vector<Transfer>> sent, received;
    const auto all = of_all_stages(stage);
    for (std::size_t s = 0; s < all.size(); ++s)
      for (const Turn& turn : all[s])
        for (const Transfer& transfer : turn.transfers)
          (transfer.from == static_cast<std::int64_t>(s) ? sent
                                                         : received)[{transfer.from, transfer.to}]
              .push_back(transfer);
    RC_ASSERT(sent == received);
    std::vector<Edge> used;
    for (const auto& [edge, transfers] : sent) used.push_back(edge);
    RC_ASSERT(used == edges(stage.pp, stage.chunks));
  }));
}

// The proof by running it: transfers end only when both ends are there (no buffering at all), a
// stage does one thing after the other, and which stage goes on next is drawn.
TEST(PipelineTurns, EveryStageEndsAndHasItsInputsInTimeWhereASendEndsOnlyWhenItIsReceived) {
  EXPECT_TRUE(rc::check([] {
    const Stage stage = any_pipeline();
    const auto all = of_all_stages(stage);
    struct Position {
      std::size_t turn = 0, transfer = 0;
      bool worked = false;
    };
    std::vector<Position> at(all.size());
    std::vector<std::set<Work>> arrived(all.size());
    const auto waiting_in = [&](std::size_t s) -> const Transfer* {
      if (at[s].turn == all[s].size() || !at[s].worked) return nullptr;
      const Turn& turn = all[s][at[s].turn];
      return at[s].transfer < turn.transfers.size() ? &turn.transfers[at[s].transfer] : nullptr;
    };
    const auto step = [&](std::size_t s) {
      if (at[s].turn == all[s].size()) return false;
      const Turn& turn = all[s][at[s].turn];
      if (!at[s].worked) {
        at[s].worked = true;
        if (!turn.work) return true;
        const std::int64_t first_stage = turn.work->forward ? 0 : stage.pp - 1;
        const std::int64_t first_chunk = turn.work->forward ? 0 : stage.chunks - 1;
        const bool has_own_input = stage.pp == 1 || (static_cast<std::int64_t>(s) == first_stage &&
                                                     turn.work->chunk == first_chunk);
        RC_ASSERT(has_own_input || arrived[s].contains(*turn.work));
        return true;
      }
      if (at[s].transfer == turn.transfers.size()) {
        at[s] = {.turn = at[s].turn + 1};
        return true;
      }
      const Transfer& mine = turn.transfers[at[s].transfer];
      const auto other =
          static_cast<std::size_t>(mine.from == static_cast<std::int64_t>(s) ? mine.to : mine.from);
      const Transfer* theirs = waiting_in(other);
      if (theirs == nullptr || *theirs != mine) return false;
      arrived[static_cast<std::size_t>(mine.to)].insert(mine.takes);
      ++at[s].transfer;
      ++at[other].transfer;
      return true;
    };
    for (bool moved = true; moved;) {
      moved = false;
      const auto first = *rc::gen::inRange<std::size_t>(0, all.size());
      for (std::size_t i = 0; i < all.size() && !moved; ++i) moved = step((first + i) % all.size());
    }
    for (std::size_t s = 0; s < all.size(); ++s) RC_ASSERT(at[s].turn == all[s].size());
  }));
}

TEST(PipelineTurns, EdgesAreThoseBetweenNeighboursAndWithChunksTheWayBackToTheFirstStage) {
  EXPECT_TRUE(edges(1, 1).empty());
  EXPECT_EQ(edges(2, 1), (std::vector<Edge>{{0, 1}, {1, 0}}));
  EXPECT_EQ(edges(2, 2), (std::vector<Edge>{{0, 1}, {1, 0}}));
  EXPECT_EQ(edges(4, 1).size(), 6u);
  EXPECT_EQ(edges(4, 2).size(), 8u);
}

TEST(PipelineTurns, RefusesAnOrderInWhichStagesWaitInACircleAndSaysWhatToChange) {
  const std::string circle =
      refusal_of([] { turns({.pp = 4, .chunks = 2, .microbatches = 4, .group = 1}); });
  EXPECT_NE(circle.find(
                "a pipeline of 4 stages with 2 chunks, 4 microbatches in groups of 1; got stage "),
            std::string::npos)
      << circle;
  EXPECT_NE(circle.find("for ever; want an order in which every stage gets its input"),
            std::string::npos)
      << circle;
  EXPECT_NE(circle.find("; next: give a multiple"), std::string::npos) << circle;
  EXPECT_NE(
      refusal_of([] { turns({.pp = 1, .chunks = 2, .microbatches = 2}); }).find("2 on one stage"),
      std::string::npos);
}

}  // namespace
}  // namespace graphproof::order
