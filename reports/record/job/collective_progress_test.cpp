#include "reports/record/job/collective_progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace graphproof::record {
namespace {

/// A collective of a rank's program: its group, and the world ranks of that group.
struct Step {
  std::string op, group;
  std::vector<int> ranks;
};

/// Ranks that run their programs again and again, as replays do. A collective ends when every rank
/// of its group has begun it. With `buffered` a sender ends a transfer without its receiver.
class Ranks {
 public:
  Ranks(std::vector<std::vector<Step>> programs, bool buffered)
      : programs_(std::move(programs)),
        buffered_(buffered),
        at_(programs_.size(), 0),
        inside_(programs_.size(), false) {
    for (std::size_t rank = 0; rank < programs_.size(); ++rank)
      for (const Step& step : programs_[rank]) counts_[rank].try_emplace(step.group);
  }

  /// Runs until nothing moves, with `stuck` held ahead of its collective number `held`, from 0.
  void run(std::size_t stuck, std::size_t held) {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
        const Step& step = step_of(rank);
        GroupProgress& own = counts_[rank].at(step.group);
        if (!inside_[rank]) {
          if (rank == stuck && at_[rank] == held) continue;
          own.op = step.op;
          own.sequence = static_cast<std::int64_t>(at_[rank] % programs_[rank].size());
          ++own.begun;
          inside_[rank] = moved = true;
        } else if ((buffered_ && step.op == "transfer" &&
                    step.ranks.front() == static_cast<int>(rank)) ||
                   std::ranges::all_of(step.ranks, [&](int other) {
                     return counts_[static_cast<std::size_t>(other)].at(step.group).begun >=
                            own.begun;
                   })) {
          ++own.ended;
          ++at_[rank];
          inside_[rank] = false;
          moved = true;
        }
      }
    }
  }
  const Step& step_of(std::size_t rank) const {
    return programs_[rank][at_[rank] % programs_[rank].size()];
  }
  std::vector<CollectiveProgress> progress() const {
    std::vector<CollectiveProgress> all;
    for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
      all.emplace_back();
      for (const auto& [name, counts] : counts_.at(rank)) {
        all.back().push_back(counts);
        all.back().back().group = name;
        for (const Step& step : programs_[rank])
          if (step.group == name)
            all.back().back().first_rank = *std::ranges::min_element(step.ranks);
      }
    }
    return all;
  }

 private:
  std::vector<std::vector<Step>> programs_;
  bool buffered_;
  std::vector<std::size_t> at_;  // by rank: which of its collectives is next, or is under way
  std::vector<bool> inside_;
  std::map<std::size_t, std::map<std::string, GroupProgress>> counts_;
};

/// Every rank holds in turn ahead of every collective of three rounds of its program.
void expect_every_stall_named(const std::vector<std::vector<Step>>& programs) {
  for (const bool buffered : {false, true})
    for (std::size_t rank = 0; rank < programs.size(); ++rank)
      for (std::size_t held = 0; held < 3 * programs[rank].size(); ++held) {
        SCOPED_TRACE("rank " + std::to_string(rank) + " held ahead of " + std::to_string(held) +
                     (buffered ? ", buffered transfers" : ""));
        Ranks ranks(programs, buffered);
        ranks.run(rank, held);
        const auto stall = stall_of(ranks.progress());
        ASSERT_TRUE(stall);
        EXPECT_EQ(stall->kind, Stall::Kind::not_begun);
        EXPECT_EQ(stall->rank, static_cast<int>(rank));
        EXPECT_EQ(stall->collective.group, ranks.step_of(rank).group);
        EXPECT_EQ(stall->collective.op, ranks.step_of(rank).op);
      }
}

Step tp(std::vector<int> ranks) { return {"all_reduce", "tp", std::move(ranks)}; }
Step dp(std::vector<int> ranks) { return {"reduce_scatter", "dp", std::move(ranks)}; }
/// `ranks`: the sender first.
Step edge(std::string name, std::vector<int> ranks) {
  return {"transfer", std::move(name), std::move(ranks)};
}

TEST(StallOf, NamesTheStuckRankAndItsCollectiveInOneGroup) {
  const std::vector<Step> program{tp({0, 1}), tp({0, 1}), tp({0, 1})};
  expect_every_stall_named({program, program});
}

TEST(StallOf, NamesTheStuckRankAndItsCollectiveInTwoGroups) {
  // Ranks 0 and 1, and 2 and 3, are tensor parallel; 0 and 2, and 1 and 3, data parallel.
  const auto program = [](std::vector<int> t, std::vector<int> d) {
    return std::vector<Step>{tp(t), tp(t), tp(t), dp(d), dp(d), tp(t), dp(d)};
  };
  expect_every_stall_named({program({0, 1}, {0, 2}), program({0, 1}, {1, 3}),
                            program({2, 3}, {0, 2}), program({2, 3}, {1, 3})});
}

TEST(StallOf, NamesTheStuckRankAndItsCollectiveInAPipeline) {
  const auto first = [](std::vector<int> t, std::vector<int> pair) {
    return std::vector<Step>{tp(t),
                             tp(t),
                             edge("pp.0>1", pair),
                             tp(t),
                             edge("pp.0>1", pair),
                             edge("pp.1>0", {pair[1], pair[0]}),
                             tp(t),
                             edge("pp.1>0", {pair[1], pair[0]}),
                             tp(t)};
  };
  const auto second = [](std::vector<int> t, std::vector<int> pair) {
    return std::vector<Step>{edge("pp.0>1", pair),
                             tp(t),
                             edge("pp.0>1", pair),
                             tp(t),
                             edge("pp.1>0", {pair[1], pair[0]}),
                             tp(t),
                             tp(t),
                             edge("pp.1>0", {pair[1], pair[0]})};
  };
  expect_every_stall_named({first({0, 1}, {0, 2}), first({0, 1}, {1, 3}), second({2, 3}, {0, 2}),
                            second({2, 3}, {1, 3})});
}

TEST(StallOf, FollowsAChainOfWaitsToItsEnd) {
  const std::vector<CollectiveProgress> ranks{
      {{.group = "dp", .first_rank = 0, .begun = 5, .ended = 4, .op = "all_reduce"}},
      {{.group = "dp", .first_rank = 0, .begun = 4, .ended = 4, .op = "all_reduce"},
       {.group = "tp", .first_rank = 1, .begun = 9, .ended = 8, .op = "all_gather", .sequence = 3}},
      {{.group = "tp", .first_rank = 1, .begun = 8, .ended = 8, .op = "all_gather"}}};
  EXPECT_EQ(stall_of(ranks), (Stall{.kind = Stall::Kind::not_begun,
                                    .rank = 2,
                                    .collective = {3, "all_gather", "tp"},
                                    .waiting = {0, 1}}));
}

TEST(StallOf, GroupsOfOneNameWithOtherRanksAreNotCompared) {
  const std::vector<CollectiveProgress> ranks{
      {{.group = "tp", .first_rank = 0, .begun = 5, .ended = 5}},
      {{.group = "tp", .first_rank = 1, .begun = 7, .ended = 6, .op = "all_reduce"}}};
  const auto stall = stall_of(ranks);
  ASSERT_TRUE(stall);
  EXPECT_EQ(stall->rank, 1);
  EXPECT_EQ(stall->kind, Stall::Kind::inside);
  EXPECT_TRUE(stall->waiting.empty());
}

TEST(StallOf, ARankInACollectiveThatItsPeersEndedIsStuckInIt) {
  const std::vector<CollectiveProgress> ranks{
      {{.group = "tp", .begun = 5, .ended = 4, .op = "all_reduce", .sequence = 5}},
      {{.group = "tp", .begun = 6, .ended = 5, .op = "all_reduce", .sequence = 6}}};
  EXPECT_EQ(stall_of(ranks), (Stall{.kind = Stall::Kind::inside,
                                    .rank = 0,
                                    .collective = {5, "all_reduce", "tp"},
                                    .waiting = {1}}));
}

TEST(StallOf, RanksThatWaitForEachOtherAreACircle) {
  const std::vector<CollectiveProgress> ranks{
      {{.group = "pp.0>1", .begun = 3, .ended = 2, .op = "transfer", .sequence = 3},
       {.group = "pp.1>0", .begun = 2, .ended = 2, .op = "transfer", .sequence = 2}},
      {{.group = "pp.0>1", .begun = 2, .ended = 2, .op = "transfer", .sequence = 2},
       {.group = "pp.1>0", .begun = 3, .ended = 2, .op = "transfer", .sequence = 3}}};
  EXPECT_EQ(stall_of(ranks), (Stall{.kind = Stall::Kind::in_a_circle,
                                    .rank = 0,
                                    .collective = {3, "transfer", "pp.0>1"},
                                    .waiting = {1}}));
}

TEST(StallOf, AReceiverWhoseSenderIsDoneIsStuckThoughNobodyWaits) {
  const std::vector<CollectiveProgress> ranks{
      {{.group = "pp.0>1", .begun = 2, .ended = 2, .op = "transfer", .sequence = 2},
       {.group = "pp.1>0", .begun = 1, .ended = 1, .op = "transfer", .sequence = 1}},
      {{.group = "pp.0>1", .begun = 2, .ended = 2, .op = "transfer", .sequence = 2},
       {.group = "pp.1>0", .begun = 2, .ended = 2, .op = "transfer", .sequence = 2}}};
  EXPECT_EQ(stall_of(ranks), (Stall{.kind = Stall::Kind::not_begun,
                                    .rank = 0,
                                    .collective = {2, "transfer", "pp.1>0"},
                                    .waiting = {}}));
}

TEST(StallOf, RanksOutsideCollectivesAreNotStuckInOne) {
  EXPECT_EQ(stall_of({}), std::nullopt);
  EXPECT_EQ(stall_of({{}, {{.group = "tp", .begun = 2, .ended = 2}}}), std::nullopt);
}

}  // namespace
}  // namespace graphproof::record
