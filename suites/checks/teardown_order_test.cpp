#include <gtest/gtest.h>

#include "suites/checks/check_rows.h"

namespace graphproof::checks {
namespace {

/// The line of one teardown step of rank 1.
Line& step(Attempt& attempt, std::string_view name) {
  for (Line& line : attempt.ranks[1].evidence->lines)
    if (line.kind == "teardown" && text(line, "step") == name) return line;
  throw std::logic_error("no such step");
}

TEST(TeardownOrder, Rows) {
  judge_rows(
      "D29.teardown_order", {{"impl", "full_iteration"}, {"tp", 2}},
      {
          {.name = "communicators before graphs",
           .change = [](Attempt& a) { std::swap(step(a, "graphs").fields, step(a, "communicators").fields); },
           .rank = 1,
           .said = {"rank 1 tore down `buffers` after `communicators`", "graphs, buffers, communicators, device"}},
          {.name = "numbers out of order",
           .change = [](Attempt& a) { step(a, "device").fields["order"] = 3; },
           .rank = 1,
           .said = {"`device` as number 3"}},
          {.name = "twice",
           .change = [](Attempt& a) { step(a, "buffers").fields["step"] = "graphs"; },
           .rank = 1,
           .said = {"tore down `graphs` after `graphs`"}},
          {.name = "a step that nobody knows",
           .change = [](Attempt& a) { step(a, "device").fields["step"] = "streams"; },
           .rank = 1,
           .said = {"`streams`"}},
          {.name = "too long",
           .change = [](Attempt& a) { step(a, "communicators").fields["ms"] = 30001.0; },
           .rank = 1,
           .said = {"the teardown of communicators on rank 1", "30001.0 ms", "30000 ms at most"}},
          {.name = "not timed",
           .change = [](Attempt& a) { step(a, "communicators").fields["ms"] = nullptr; },
           .rank = 1,
           .said = {"was not timed"}},
          {.name = "graphs are not among them",
           .change =
               [](Attempt& a) {
                 step(a, "graphs").fields["step"] = "arms";
                 std::erase_if(a.ranks[1].evidence->lines,
                               [](const Line& line) { return text(line, "step") == "arms"; });
                 a.ranks[1].evidence->lines.back().fields["lines"] = a.ranks[1].evidence->lines.size() - 1;
               },
           .rank = 1,
           .said = {"`teardown` line of the graphs"}},
          {.name = "absent",
           .change = [](Attempt& a) { erase(a, {.rank = 1, .kind = "teardown"}); },
           .rank = 1,
           .said = {"`teardown` line"}},
          {.name = "the rank died",
           .change = [](Attempt& a) { die_before(a, {.rank = 1, .kind = "teardown"}); },
           .want = record::Result::unexercised,
           .rank = std::nullopt,
           .said = {"rank 1"},
           .also = {"*"}},
      });
}

TEST(TeardownOrder, OfAnotherOrderIsUnexercised) {
  const record::CheckResult result =
      judge_one("D29.teardown_order", {{"impl", "manual"}, {"teardown", "comm_first"}}, [](Attempt&) {});
  EXPECT_EQ(result.result, record::Result::unexercised);
  EXPECT_EQ(result.message.got, "the case asks for another order (axis teardown)");
}

}  // namespace
}  // namespace graphproof::checks
