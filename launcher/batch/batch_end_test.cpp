// Whose doing an end was: one row a situation of two ranks.
#include "launcher/batch/batch_end.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <string>

namespace graphproof::launcher {
namespace {

/// Two ranks that have sent hello.
HangDetector two_ranks() {
  record::Limits limits;
  for (std::size_t i = 0; i < record::kPhaseCount; ++i)
    limits[static_cast<record::Phase>(i)] = 1000;
  HangDetector ranks(2, {{"case", 1, limits}}, 0);
  for (int rank = 0; rank < 2; ++rank) {
    record::Heartbeat hello;
    hello.event = "hello";
    hello.rank = rank;
    hello.pid = 100 + rank;
    ranks.heartbeat(hello, 0);
  }
  return ranks;
}

void bye(HangDetector& ranks, int rank) {
  record::Heartbeat line;
  line.event = "bye";
  line.rank = rank;
  ranks.heartbeat(line, 5);
}

constexpr Exit kWell{}, kStatus7{.value = 7}, kSegfault{.value = 128 + SIGSEGV},
    kKilled{.signalled = true, .value = SIGKILL};

struct Row {
  const char* name;
  std::function<void(HangDetector&)> shown;
  StarterReport report;
  std::optional<Exit> starter;
  std::optional<Culprit> expected;
};

TEST(BatchEndTest, TheCulpritIsTheRankThatTheStarterNamesOrTheFirstThatWasGone) {
  const Row rows[] = {
      {"all ended well", [](HangDetector&) {}, {}, kWell, {}},
      {"the starter names the rank",
       [](HangDetector& ranks) { ranks.gone(0, 10); },
       {.rank = 1, .exit = record::Exit{"signal", SIGSEGV}, .infra = {}},
       kStatus7,
       Culprit{1, {"signal", SIGSEGV}}},
      {"the starter names a rank that there is not",
       [](HangDetector& ranks) { ranks.gone(1, 10); },
       {.rank = 5, .exit = record::Exit{"exited", 1}, .infra = {}},
       kStatus7,
       Culprit{1, {"exited", 7}}},
      {"the starter has the exit code alone: the first rank that was gone",
       [](HangDetector& ranks) {
         ranks.gone(1, 10);
         ranks.gone(0, 20);
       },
       {},
       kSegfault,
       Culprit{1, {"signal", SIGSEGV}}},
      {"the starter has the exit code alone, and no rank was seen to be gone",
       [](HangDetector&) {},
       {},
       kStatus7,
       Culprit{0, {"exited", 7}}},
      {"the starter goes on, and a rank is gone without its last heartbeat",
       [](HangDetector& ranks) { ranks.gone(1, 10); },
       {},
       std::nullopt,
       Culprit{1, {"exited", 0}}},
      {"the starter goes on, and a rank is gone after its last heartbeat",
       [](HangDetector& ranks) {
         bye(ranks, 1);
         ranks.gone(1, 10);
       },
       {},
       std::nullopt,
       {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    HangDetector ranks = two_ranks();
    row.shown(ranks);
    const auto found = culprit(ranks, row.report, row.starter);
    ASSERT_EQ(found.has_value(), row.expected.has_value());
    if (!found) continue;
    EXPECT_EQ(found->rank, row.expected->rank);
    EXPECT_EQ(found->exit, row.expected->exit);
  }
}

TEST(BatchEndTest, EachRankHasItsExit) {
  HangDetector ranks = two_ranks();
  bye(ranks, 1);
  const Culprit first{0, {"signal", SIGSEGV}};
  EXPECT_EQ(exit_of(0, ranks, first, kSegfault, 0), (record::Exit{"signal", SIGSEGV}));
  EXPECT_EQ(exit_of(1, ranks, first, kSegfault, 0), (record::Exit{"exited", 0}))
      << "it had sent its last heartbeat";
  EXPECT_EQ(exit_of(0, ranks, {}, kWell, 0), (record::Exit{"exited", 0}));
  EXPECT_EQ(exit_of(0, ranks, {}, std::nullopt, SIGKILL), (record::Exit{"killed", SIGKILL}));
  EXPECT_EQ(exit_of(0, ranks, {}, kStatus7, 0), (record::Exit{"killed", SIGTERM}))
      << "the starter ended it";
}

TEST(BatchEndTest, ASignalThatNeitherACaseNorTheLauncherSendsIsTheInfrastructures) {
  const Culprit terminated{1, {"signal", SIGTERM}}, crashed{1, {"signal", SIGSEGV}};
  EXPECT_FALSE(ended_from_outside({}, kWell));
  EXPECT_FALSE(ended_from_outside(crashed, kSegfault));
  const auto kind = [](const std::optional<record::Infra>& infra) {
    return infra ? infra->kind : "";
  };
  EXPECT_EQ(kind(ended_from_outside({}, kKilled)), "preempted");
  EXPECT_EQ(kind(ended_from_outside({}, Exit{.signalled = true, .value = SIGSEGV})), "launch");
  EXPECT_EQ(kind(ended_from_outside(terminated, kStatus7)), "preempted");
  EXPECT_EQ(ended_from_outside(terminated, kStatus7)->why,
            "rank 1 was ended by SIGTERM, which the launcher did not send");
}

}  // namespace
}  // namespace graphproof::launcher
