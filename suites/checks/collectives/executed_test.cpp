#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using record::Phase;

/// M360: rank 1 stands between two collectives of a replay, rank 0 is in the later one.
void hang(Attempt& attempt) {
  for (record::RankContext& facts : attempt.context.ranks) {
    facts.case_ended = false;
    facts.phase = Phase::replay;
    facts.arm = "lockstep_graph";
    facts.step = 3;
    facts.silent_ms = 10100;
    facts.progress = {{.group = "tp",
                       .first_rank = 0,
                       .begun = 41 - facts.rank,
                       .ended = 40,
                       .op = "all_reduce",
                       .sequence = 17 - facts.rank}};
  }
  attempt.context.hang = record::Hang{.phase = Phase::replay,
                                      .limit_ms = 5000,
                                      .missing_rank = 1,
                                      .waiting_ranks = {0},
                                      .last_collective = {},
                                      .stacks = "stacks"};
}

nlohmann::json executed(std::int64_t begun, std::int64_t ended) {
  return {{{"group", "tp"}, {"first_rank", 0}, {"begun", begun}, {"ended", ended}}};
}

TEST(Executed, Rows) {
  const Where counts{.rank = 1, .kind = "executed"};
  judge_rows(
      "D23.executed", kTwoRanks,
      {
          {.name = "a rank stands ahead of a collective (M360)",
           .change = hang,
           .rank = 1,
           .mentions = {"rank 1 is stuck ahead of all_reduce number 17 of group tp",
                        "rank 1: tp 40 begun and 40 ended",
                        "(rank 0 in all_reduce number 17 of group tp)",
                        "ranks that get no further: 0"},
           .also = {"D22.progress"}},
          {.name = "all ranks are inside the collective",
           .change =
               [](Attempt& a) {
                 hang(a);
                 a.context.ranks[1].progress = a.context.ranks[0].progress;
               },
           .rank = 0,
           .mentions = {"rank 0 is stuck in all_reduce number 17 of group tp",
                        "every rank of its group has begun it"},
           .also = {"D22.progress"}},
          {.name = "two ranks wait for each other (M57)",
           .change =
               [](Attempt& a) {
                 hang(a);
                 for (const int rank : {0, 1}) {
                   record::CollectiveProgress& progress = *a.context.ranks[rank].progress;
                   progress[0] = {.group = "pp.0>1",
                                  .begun = 7 - rank,
                                  .ended = 6,
                                  .op = "transfer",
                                  .sequence = 2};
                   if (rank == 1) progress[0].ended = 6;
                   progress.push_back({.group = "pp.1>0",
                                       .begun = 6 + rank,
                                       .ended = 6,
                                       .op = "transfer",
                                       .sequence = 1});
                 }
               },
           .rank = 0,
           .mentions = {"rank 0 is stuck in transfer number 2 of group pp.0>1",
                        "ranks wait in a circle"},
           .also = {"D22.progress"}},
          {.name = "a hang outside collectives",
           .change =
               [](Attempt& a) {
                 hang(a);
                 for (record::RankContext& facts : a.context.ranks) (*facts.progress)[0].begun = 40;
               },
           .want = record::Result::unexercised,
           .rank = std::nullopt,
           .mentions = {"no rank was inside a collective"},
           .also = {"D22.progress"}},
          {.name = "a hang, and a rank without counts",
           .change =
               [](Attempt& a) {
                 hang(a);
                 a.context.ranks[1].progress.reset();
                 die_before(a, {.rank = 1, .kind = "step", .arm = "lockstep_graph"});
               },
           .want = record::Result::unexercised,
           .rank = std::nullopt,
           .mentions = {"the launcher saw no count of collectives of rank 1"},
           .also = {"*"}},
          {.name = "a device executed one collective less",
           .change = [=](Attempt& a) { set(a, counts, "groups", executed(399, 399)); },
           .rank = 1,
           .mentions = {"the devices of ranks 0 and 1 executed different numbers of collectives of "
                        "group tp",
                        "399 begun, 399 ended", "400 begun, as rank 0"}},
          {.name = "a collective that is still under way",
           .change = [=](Attempt& a) { set(a, counts, "groups", executed(400, 399)); },
           .rank = 1,
           .mentions = {"the device of rank 1 did not end all collectives of group tp",
                        "400 begun, 399 ended"}},
          {.name = "nothing was executed",
           .change =
               [](Attempt& a) { set(a, {.kind = "executed"}, "groups", nlohmann::json::array()); },
           .rank = 0,
           .mentions = {"count of an executed collective"}},
          {.name = "no counts",
           .change = [=](Attempt& a) { erase(a, counts); },
           .rank = 1,
           .mentions = {"`executed` line"}},
      });
}

}  // namespace
}  // namespace graphproof::checks
