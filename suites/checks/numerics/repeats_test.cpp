#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using record::Result;

TEST(EagerRepeats, Rows) {
  const Where at_four{.rank = 1, .kind = "compare", .step = 4, .name = "eager_repeats"};
  judge_rows(
      "D02.eager_repeats", {{"impl", "none"}, {"tp", 2}},
      {
          {.name = "differs",
           .change = [=](Attempt& a) { set(a, at_four, "equal", false); },
           .rank = 1,
           .mentions = {"solo_eager differs from eager_a at step 4"}},
          {.name = "the last comparison is absent",
           .change = [=](Attempt& a) { erase(a, at_four); },
           .rank = 1,
           .mentions = {"comparison `eager_repeats` of eager_a with solo_eager at step 4"}},
          {.name = "no comparison has a tensor",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 1, .kind = "compare", .name = "eager_repeats"}, "tensors", 0);
               },
           .rank = 1,
           .mentions = {"compared nothing", "0 tensors"}},
          {.name = "no comparison has a byte",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 1, .kind = "compare", .name = "eager_repeats"}, "bytes", 0);
               },
           .rank = 1,
           .mentions = {"compared nothing", " 0 bytes"}},
          {.name = "fewer steps than the axes demand",
           .change =
               [](Attempt& a) {
                 erase(a, {.rank = 0, .kind = "step", .arm = "solo_eager", .step = 3});
               },
           .rank = 0,
           .mentions = {"`step` line of arm solo_eager at step 3"}},
          {.name = "loss bits differ",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 0, .kind = "step", .arm = "solo_eager", .step = 2}, "loss_bits",
                     "00");
               },
           .rank = 0,
           .mentions = {"the loss bits of arms eager_a and solo_eager differ at step 2",
                        "solo_eager has 00"}},
          {.name = "other digests",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 0, .kind = "step", .arm = "eager_a", .step = 2}, "digest",
                     {{"grads", "0"}, {"params", "0"}, {"losses", "0"}});
               },
           .rank = 0,
           .mentions = {"the digests", "as eager_a"}},
          {.name = "infinite loss",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 0, .kind = "step", .arm = "eager_a", .step = 0}, "loss", {"inf"});
               },
           .rank = 0,
           .mentions = {"no finite number at step 0"}},
          {.name = "no loss at all",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 0, .kind = "step", .arm = "eager_a", .step = 0}, "loss",
                     nlohmann::json::array());
               },
           .rank = 0,
           .mentions = {"no finite number at step 0"}},
          {.name = "an error in phase eager",
           .change =
               [](Attempt& a) {
                 add(a, 1,
                     {{"kind", "error"},
                      {"phase", "eager"},
                      {"arm", "eager_a"},
                      {"step", 1},
                      {"type", "cuda"},
                      {"code", 700},
                      {"call", "aten::mm"},
                      {"message", "illegal address"}});
               },
           .rank = 1,
           .mentions = {"cuda error 700 at aten::mm: illegal address"},
           .also = {"D26.votes"}},
          {.name = "the rank died",
           .change =
               [](Attempt& a) {
                 die_before(a, {.rank = 0, .kind = "step", .arm = "solo_eager", .step = 1});
               },
           .want = Result::unexercised,
           .rank = std::nullopt,
           .mentions = {"rank 0"},
           .also = {"*"}},
      });
}

TEST(GraphRepeats, Rows) {
  const Where last{.rank = 0, .kind = "compare", .step = 4, .name = "graph_repeats"};
  judge_rows(
      "D02.graph_repeats", {{"impl", "manual"}},
      {
          {.name = "differs",
           .change = [=](Attempt& a) { set(a, last, "equal", false); },
           .rank = 0,
           .mentions = {"solo_graph differs from lockstep_graph at step 4"}},
          {.name = "differs on the way",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 0, .kind = "compare", .step = 3, .name = "graph_repeats"}, "equal",
                     false);
               },
           .rank = 0,
           .mentions = {"step 3"}},
          {.name = "digests differ although the comparison found no difference",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 0, .kind = "step", .arm = "solo_graph", .step = 3}, "loss_bits",
                     "00");
               },
           .rank = 0,
           .mentions = {"the loss bits of arms lockstep_graph and solo_graph differ at step 3"}},
          {.name = "a step is absent",
           .change =
               [](Attempt& a) {
                 erase(a, {.rank = 0, .kind = "step", .arm = "solo_graph", .step = 1});
               },
           .rank = 0,
           .mentions = {"`step` line of arm solo_graph at step 1"}},
          {.name = "the last comparison is absent",
           .change = [=](Attempt& a) { erase(a, last); },
           .rank = 0,
           .mentions = {"comparison `graph_repeats`"}},
          {.name = "all are absent",
           .change =
               [](Attempt& a) {
                 erase(a, {.rank = 0, .kind = "compare", .name = "graph_repeats"});
               },
           .rank = 0,
           .mentions = {"rank 0 left no"}},
      });
}

}  // namespace
}  // namespace graphproof::checks
