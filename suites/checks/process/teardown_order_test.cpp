#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

/// The line of one teardown step of rank 1.
Line& step(Attempt& attempt, std::string_view name) {
  for (Line& line : attempt.ranks[1].evidence->lines)
    if (line.kind == "teardown" && text(line, "step") == name) return line;
  throw std::logic_error("no such step");
}

TEST(TeardownOrder, Rows) {
  judge_rows("D29.teardown_order", {{"impl", "full_iteration"}, {"tp", 2}},
             {
                 {.name = "communicators before graphs",
                  .change =
                      [](Attempt& a) {
                        std::swap(step(a, "graphs").fields, step(a, "communicators").fields);
                      },
                  .rank = 1,
                  .mentions = {"rank 1 tore down `buffers` after `communicators`",
                               "graphs, buffers, communicators, device"}},
                 {.name = "numbers out of order",
                  .change = [](Attempt& a) { step(a, "device").fields["order"] = 3; },
                  .rank = 1,
                  .mentions = {"`device` as number 3"}},
                 {.name = "twice",
                  .change = [](Attempt& a) { step(a, "buffers").fields["step"] = "graphs"; },
                  .rank = 1,
                  .mentions = {"tore down `graphs` after `graphs`"}},
                 {.name = "an unknown step",
                  .change = [](Attempt& a) { step(a, "device").fields["step"] = "streams"; },
                  .rank = 1,
                  .mentions = {"`streams`"}},
                 {.name = "too long",
                  .change = [](Attempt& a) { step(a, "communicators").fields["ms"] = 30001.0; },
                  .rank = 1,
                  .mentions = {"the teardown of communicators on rank 1", "30001.0 ms",
                               "30000 ms at most"}},
                 {.name = "graphs are not among them",
                  .change =
                      [](Attempt& a) {
                        step(a, "graphs").fields["step"] = "arms";
                        std::erase_if(a.ranks[1].evidence->lines, [](const Line& line) {
                          return text(line, "step") == "arms";
                        });
                        a.ranks[1].evidence->lines.back().fields["lines"] =
                            a.ranks[1].evidence->lines.size() - 1;
                      },
                  .rank = 1,
                  .mentions = {"`teardown` line of the graphs"},
                  .also = {"D29.idle_when_dropped"}},
                 {.name = "communicators are not among them",
                  .change =
                      [](Attempt& a) {
                        std::erase_if(a.ranks[1].evidence->lines, [](const Line& line) {
                          return line.kind == "teardown" && text(line, "step") == "communicators";
                        });
                        a.ranks[1].evidence->lines.back().fields["lines"] =
                            a.ranks[1].evidence->lines.size() - 1;
                      },
                  .rank = 1,
                  .mentions = {"rank 1 left no `teardown` line of the communicators"}},
                 {.name = "absent",
                  .change = [](Attempt& a) { erase(a, {.rank = 1, .kind = "teardown"}); },
                  .rank = 1,
                  .mentions = {"`teardown` line"},
                  .also = {"D29.idle_when_dropped"}},
                 {.name = "the rank died",
                  .change = [](Attempt& a) { die_before(a, {.rank = 1, .kind = "teardown"}); },
                  .want = record::Result::unexercised,
                  .rank = std::nullopt,
                  .mentions = {"rank 1"},
                  .also = {"*"}},
             });
}

TEST(TeardownOrder, IsTheOneThatTheCaseAsksFor) {
  const nlohmann::json comm_first = {{"impl", "manual"}, {"tp", 2}, {"teardown", "comm_first"}};
  EXPECT_EQ(judge_one("D29.teardown_order", comm_first, [](Attempt&) {}).result,
            record::Result::pass);
  const record::CheckResult result = judge_one("D29.teardown_order", comm_first, [](Attempt& a) {
    std::swap(step(a, "graphs").fields, step(a, "communicators").fields);
  });
  EXPECT_EQ(result.result, record::Result::fail);
  EXPECT_EQ(result.message.want, "communicators, graphs, buffers, device, in this order");
}

}  // namespace
}  // namespace graphproof::checks
