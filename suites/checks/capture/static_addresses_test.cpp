#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

TEST(StaticAddresses, Rows) {
  const Where at_three{.rank = 1, .kind = "address", .arm = "lockstep_graph", .step = 3};
  const json moved = {
      {{"tensor", "tokens.0"}, {"captured", "0x7f12c0000000"}, {"now", "0x7f12c0200000"}},
      {{"tensor", "labels.0"}, {"captured", "0x1"}, {"now", "0x2"}}};
  judge_rows(
      "D07.static_addresses", {{"impl", "full_iteration"}, {"tp", 2}},
      {
          {.name = "a static input moved (M26)",
           .change = [=](Attempt& a) { set(a, at_three, "moved", moved); },
           .rank = 1,
           .mentions = {"`tokens.0` of graph training moved after the capture, as did 1 others",
                        "address 0x7f12c0200000 before the replay of step 3",
                        "0x7f12c0000000, as captured"}},
          {.name = "nothing registered",
           .change = [](Attempt& a) { set(a, {.rank = 0, .kind = "address"}, "registered", 0); },
           .rank = 0,
           .mentions = {"0 tensors registered"}},
          {.name = "fewer registered later",
           .change = [=](Attempt& a) { set(a, at_three, "registered", 30); },
           .rank = 1,
           .mentions = {"30 tensors registered at step 3", "31, as before the first replay"}},
          {.name = "absent",
           .change = [=](Attempt& a) { erase(a, at_three); },
           .rank = 1,
           .mentions = {"`address` line of arm lockstep_graph at step 3"}},
      });
}

TEST(StaticAddresses, OfEveryGraphThatAStepLaunches) {
  judge_rows("D07.static_addresses", {{"impl", "full_iteration"}, {"optimizer_graph", true}},
             {{.name = "no `address` line of the optimizer in one step",
               .change =
                   [](Attempt& a) {
                     auto& lines = a.ranks[0].evidence->lines;
                     std::erase_if(lines, [](const Line& line) {
                       return line.kind == "address" && text(line, "graph") == "optimizer" &&
                              integer(line, "step") == 4;
                     });
                     set(a, {.rank = 0, .kind = "end"}, "lines", lines.size() - 1);
                   },
               .rank = 0,
               .mentions = {"`address` line of graph optimizer of arm lockstep_graph at step 4"}}});
}

}  // namespace
}  // namespace graphproof::checks
