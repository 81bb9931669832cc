#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

TEST(EvidenceComplete, Rows) {
  const Where start{.rank = 1, .kind = "start"}, end{.rank = 1, .kind = "end"};
  judge_rows(
      "D21.evidence_complete", {{"impl", "none"}, {"tp", 2}},
      {
          {.name = "a rank outside the world",
           .change = [](Attempt& a) { a.foreign_ranks = {2}; },
           .rank = 2,
           .mentions = {"rank 2 is not in the world", "ranks 0 to 1"}},
          {.name = "no file",
           .change = [](Attempt& a) { a.ranks[1].evidence.reset(); },
           .rank = 1,
           .mentions = {"rank 1 left no evidence", "no file"},
           .also = {"*"}},
          {.name = "an empty file",
           .change = [](Attempt& a) { a.ranks[1].evidence = record::Evidence{}; },
           .rank = 1,
           .mentions = {"an empty file"},
           .also = {"*"}},
          {.name = "a torn last line",
           .change =
               [](Attempt& a) {
                 a.ranks[1].evidence->dropped = {"line 41 is torn after 17 bytes"};
               },
           .rank = 1,
           .mentions = {"line 41 is torn"}},
          {.name = "no end",
           .change = [=](Attempt& a) { die_before(a, {.rank = 1, .kind = "compare", .step = 4}); },
           .rank = 1,
           .mentions = {"ends before its case did", "last phase eager"},
           .also = {"*"}},
          {.name = "ended early",
           .change = [=](Attempt& a) { set(a, end, "complete", false); },
           .rank = 1,
           .mentions = {"ended its case early"}},
          {.name = "lines lost in the middle",
           .change = [=](Attempt& a) { set(a, end, "lines", 99); },
           .rank = 1,
           .mentions = {"lines of rank 1 were lost", "99, as the rank counted"}},
          {.name = "two starts",
           .change = [](Attempt& a) { add(a, 1, a.ranks[1].evidence->lines.front().fields); },
           .rank = 1,
           .mentions = {"has 2 start lines"}},
          {.name = "another case",
           .change = [=](Attempt& a) { set(a, start, "case", "0011223344556677"); },
           .rank = 1,
           .mentions = {"belongs to something else", "case \"0011223344556677\""}},
          {.name = "another attempt",
           .change = [=](Attempt& a) { set(a, start, "attempt", 2); },
           .rank = 1,
           .mentions = {"attempt 2"}},
          {.name = "another rank's evidence",
           .change = [=](Attempt& a) { set(a, start, "rank", 0); },
           .rank = 1,
           .mentions = {"rank 0"}},
          {.name = "another world",
           .change = [=](Attempt& a) { set(a, start, "world_size", 1); },
           .rank = 1,
           .mentions = {"world_size 1"}},
          {.name = "another device",
           .change = [=](Attempt& a) { set(a, start, "device", "cuda"); },
           .rank = 1,
           .mentions = {"device \"cuda\""}},
          {.name = "newer than the judge",
           .change = [=](Attempt& a) { set(a, start, "revision", record::kEvidenceRevision + 1); },
           .rank = 1,
           .mentions = {"the evidence of rank 1 is newer than this judge"}},
          {.name = "a fault that the case does not name",
           .change = [=](Attempt& a) { set(a, start, "fault", "M23"); },
           .rank = 1,
           .mentions = {"fault \"M23\""}},
      });
}

}  // namespace
}  // namespace graphproof::checks
