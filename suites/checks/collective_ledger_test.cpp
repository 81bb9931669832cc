#include <gtest/gtest.h>

#include "suites/checks/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

json digests(const char* tp, const char* dp) { return {{"tp", tp}, {"dp", dp}}; }

TEST(CollectiveLedger, Rows) {
  const auto lockstep_of = [](int rank) { return Where{.rank = rank, .kind = "collectives", .arm = "lockstep"}; };
  judge_rows("D25.collective_ledger", {{"impl", "manual"}, {"tp", 2}, {"dp", 2}},
             {
                 {.name = "another order in a tp group",
                  .change = [=](Attempt& a) { set(a, lockstep_of(3), "digest", digests("00", "99aa000000000064")); },
                  .rank = 3,
                  .said = {"ranks 2 and 3 of one tp group issued other collectives in arm lockstep", "digest 00",
                           "99aa000000000074"}},
                 {.name = "another order in a dp group",
                  .change = [=](Attempt& a) { set(a, lockstep_of(3), "digest", digests("99aa000000000074", "00")); },
                  .rank = 3,
                  .said = {"ranks 1 and 3 of one dp group"}},
                 {.name = "another number",
                  .change = [=](Attempt& a) { set(a, lockstep_of(1), "count", 41); },
                  .rank = 1,
                  .said = {"41 collectives", "42 collectives"}},
                 {.name = "no dp collective at all",
                  .change =
                      [](Attempt& a) {
                        set(a, {.rank = std::nullopt, .kind = "collectives"}, "digest", json{{"tp", "11"}});
                      },
                  .rank = 0,
                  .said = {"rank 0 issued no collective in its dp group"}},
                 {.name = "none at all",
                  .change = [](Attempt& a) { set(a, {.rank = std::nullopt, .kind = "collectives"}, "count", 0); },
                  .rank = 0,
                  .said = {"0 collectives"}},
                 {.name = "one rank has no ledger of an arm",
                  .change = [=](Attempt& a) { erase(a, lockstep_of(1)); },
                  .rank = 1,
                  .said = {"`collectives` line of arm lockstep, which rank 0 has"}},
                 {.name = "no rank has a ledger",
                  .change = [](Attempt& a) { erase(a, {.rank = std::nullopt, .kind = "collectives"}); },
                  .rank = 0,
                  .said = {"rank 0 left no evidence for this check"}},
                 {.name = "a rank died",
                  .change = [](Attempt& a) { die_before(a, {.rank = 2, .kind = "collectives"}); },
                  .want = record::Result::unexercised,
                  .rank = std::nullopt,
                  .said = {"rank 2"},
                  .also = {"*"}},
             });
}

TEST(CollectiveLedger, GroupsMayDifferFromEachOther) {
  const record::CheckResult result =
      judge_one("D25.collective_ledger", {{"impl", "manual"}, {"tp", 2}, {"dp", 2}}, [](Attempt& a) {
        for (int rank : {2, 3})
          set(a, {.rank = rank, .kind = "collectives"}, "digest", digests("second tp group", "99aa000000000064"));
      });
  EXPECT_EQ(result.result, record::Result::pass) << record::to_text(result.message);
}

}  // namespace
}  // namespace graphproof::checks
