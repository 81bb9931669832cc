#include <gtest/gtest.h>

#include <algorithm>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

TEST(CaptureChangesNothing, Rows) {
  const Where state{.rank = 0, .kind = "state", .arm = "solo_graph"};
  judge_rows("D36.capture_changes_nothing", {{"impl", "manual"}},
             {
                 {.name = "a parameter changed",
                  .change = [=](Attempt& a) { set(a, state, "after", "ff"); },
                  .rank = 0,
                  .mentions = {"the capture of arm solo_graph changed the state",
                               "digest ff after it", "0b1c2d3e00000000, as before it"}},
                 {.name = "no digests",
                  .change =
                      [=](Attempt& a) {
                        set(a, state, "before", "");
                        set(a, state, "after", "");
                      },
                  .rank = 0,
                  .mentions = {"digest none"}},
                 {.name = "absent",
                  .change = [=](Attempt& a) { erase(a, state); },
                  .rank = 0,
                  .mentions = {"`state` line of the capture of arm solo_graph"}},
                 {.name = "of another kind",
                  .change = [=](Attempt& a) { set(a, state, "what", "warmup"); },
                  .rank = 0,
                  .mentions = {"arm solo_graph"}},
                 {.name = "the rank died",
                  .change = [=](Attempt& a) { die_before(a, state); },
                  .want = record::Result::unexercised,
                  .rank = std::nullopt,
                  .mentions = {"rank 0"},
                  .also = {"*"}},
             });
}

TEST(CaptureChangesNothing, AsManyLooksAsCaptures) {
  judge_rows("D36.capture_changes_nothing", {{"impl", "full_iteration"}, {"optimizer_graph", true}},
             {{.name = "a `state` line for one of two captures",
               .change =
                   [](Attempt& a) {
                     auto& lines = a.ranks[0].evidence->lines;
                     lines.erase(std::ranges::find_if(lines, [](const Line& line) {
                       return line.kind == "state" && text(line, "arm") == "free_graph";
                     }));
                     set(a, {.rank = 0, .kind = "end"}, "lines", lines.size() - 1);
                   },
               .rank = 0,
               .mentions = {"`state` line of every capture of arm free_graph"}}});
}

}  // namespace
}  // namespace graphproof::checks
