#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using record::Phase;

/// M61: rank 1 stopped in a replay, rank 0 waits for it in a collective.
void hang(Attempt& attempt) {
  for (record::RankContext& facts : attempt.context.ranks) {
    facts.case_ended = false;
    facts.phase = Phase::replay;
    facts.arm = "lockstep_graph";
    facts.step = 3;
    facts.silent_ms = 10100;
  }
  attempt.context.hang = record::Hang{
      .phase = Phase::replay,
      .limit_ms = 5000,
      .missing_rank = 1,
      .waiting_ranks = {0},
      .last_collective = record::Collective{.sequence = 16, .op = "all_reduce", .group = "tp"},
      .stacks = "stacks"};
}

TEST(Progress, Rows) {
  judge_rows("D22.progress", {{"impl", "full_iteration"}, {"tp", 2}},
             {
                 {.name = "a rank stopped (M61)",
                  .change = hang,
                  .rank = 1,
                  .mentions = {"rank 1 stopped in phase replay, arm lockstep_graph, step 3",
                               "silent for 10100 ms", "collective 16, all_reduce in group tp",
                               "waiting for it: rank 0 for 10100 ms", "every rank within 5000 ms",
                               "stacks"},
                  .also = {"D23.executed"}},
                 {.name = "a rank that went on while its stack was taken",
                  .change =
                      [](Attempt& a) {
                        hang(a);
                        a.context.hang->silent_ms = 5003;
                        a.context.hang->went_on = true;
                        a.context.ranks[1].silent_ms = 0;
                      },
                  .rank = 1,
                  .mentions = {"silent for 5003 ms", "slow and not stuck"},
                  .also = {"D23.executed"}},
                 {.name = "no collective, and no rank waits",
                  .change =
                      [](Attempt& a) {
                        hang(a);
                        a.context.hang->last_collective.reset();
                        a.context.hang->waiting_ranks.clear();
                        a.context.hang->stacks.clear();
                      },
                  .rank = 1,
                  .mentions = {"last: no collective", "waiting for it: no rank",
                               "no stack could be taken"},
                  .also = {"D23.executed"}},
                 {.name = "silent beyond the limit, and no hang reported",
                  .change =
                      [](Attempt& a) {
                        auto& facts = a.context.ranks[1];
                        facts.case_ended = false;
                        facts.phase = Phase::eager;
                        facts.silent_ms = 10001;
                      },
                  .rank = 1,
                  .mentions = {"rank 1 was silent in phase eager", "10001 ms", "within 10000 ms"}},
                 {.name = "a finished rank without heartbeats",
                  .change = [](Attempt& a) { a.context.ranks.pop_back(); },
                  .rank = 1,
                  .mentions = {"the launcher had no heartbeat of rank 1"}},
                 {.name = "a rank without a heartbeat",
                  .change =
                      [](Attempt& a) {
                        a.context.ranks[1].phase.reset();
                        a.context.ranks[1].case_ended = false;
                        a.ranks[1].evidence.reset();
                      },
                  .want = record::Result::unexercised,
                  .rank = std::nullopt,
                  .mentions = {"the launcher saw no heartbeat of rank 1"},
                  .also = {"*"}},
             });
}

TEST(Progress, ADeadRankIsNoSilence) {
  const record::CheckResult result = judge_one("D22.progress", {{"tp", 2}}, [](Attempt& a) {
    a.context.ranks[1].case_ended = false;
    a.context.ranks[1].exit = record::Exit{"signal", 11};
    die_before(a, {.rank = 1, .kind = "step", .arm = "solo_eager"});
  });
  EXPECT_EQ(result.result, record::Result::pass);
}

}  // namespace
}  // namespace graphproof::checks
