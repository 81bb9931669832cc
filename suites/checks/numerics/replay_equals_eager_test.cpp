#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;
using record::Result;

const json kReplayAxes = {{"impl", "full_iteration"}, {"tp", 2}, {"microbatches", 2}};

json mismatch() {
  return {{"tensor", "param:layers.0.mlp.up.weight"},
          {"element", 17},
          {"left", 0.125},
          {"right", 0.25},
          {"max_abs", 0.5},
          {"max_rel", 1.0},
          {"max_ulp", 8388608},
          {"elements", 4096},
          {"differing", 4000}};
}

void differ(Attempt& attempt, const Where& where) {
  set(attempt, where, "equal", false);
  set(attempt, where, "mismatch", mismatch());
}

Where lockstep_at(int rank, std::int64_t step) {
  return {.rank = rank, .kind = "compare", .step = step, .name = "lockstep"};
}

TEST(Lockstep, Rows) {
  judge_rows(
      "D01.lockstep", kReplayAxes,
      {
          {.name = "a tensor differs",
           .change = [](Attempt& a) { differ(a, lockstep_at(1, 3)); },
           .rank = 1,
           .mentions = {"lockstep_graph differs from lockstep_eager at step 3",
                        "`param:layers.0.mlp.up.weight` element 17 is 0.25, 4000 of 4096", "0.125"},
           .also = {"D06.freed_memory"}},
          {.name = "the earliest step is named",
           .change =
               [](Attempt& a) {
                 differ(a, lockstep_at(0, 4));
                 differ(a, lockstep_at(1, 3));
               },
           .rank = 1,
           .mentions = {"step 3"},
           .also = {"D06.freed_memory"}},
          {.name = "a warm-up step differs",
           .change = [](Attempt& a) { differ(a, lockstep_at(0, 1)); },
           .rank = 0,
           .mentions = {"step 1"},
           .also = {"D06.freed_memory"}},
          {.name = "equal and a mismatch at once",
           .change = [](Attempt& a) { set(a, lockstep_at(0, 3), "mismatch", mismatch()); },
           .rank = 0,
           .mentions = {"differs"}},
          {.name = "unequal, and no tensor named",
           .change = [](Attempt& a) { set(a, lockstep_at(0, 3), "equal", false); },
           .rank = 0,
           .mentions = {"the comparison names no tensor"},
           .also = {"D06.freed_memory"}},
          {.name = "no tensor compared",
           .change = [](Attempt& a) { set(a, lockstep_at(0, 3), "tensors", 0); },
           .rank = 0,
           .mentions = {"compared nothing", "0 tensors"}},
          {.name = "no byte compared",
           .change = [](Attempt& a) { set(a, lockstep_at(0, 3), "bytes", 0); },
           .rank = 0,
           .mentions = {"0 bytes"}},
          {.name = "an arm compared with itself",
           .change = [](Attempt& a) { set(a, lockstep_at(0, 3), "right", "lockstep_eager"); },
           .rank = 0,
           .mentions = {"wrong arms", "lockstep_eager with lockstep_eager"}},
          {.name = "a step is not compared",
           .change = [](Attempt& a) { erase(a, lockstep_at(1, 3)); },
           .rank = 1,
           .mentions = {"rank 1 left no comparison `lockstep` at step 3",
                        "steps 5, warmup_steps 2"}},
          {.name = "only capture inputs were replayed",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 0, .kind = "compare", .name = "lockstep"}, "input", "capture");
               },
           .rank = 0,
           .mentions = {"with fresh inputs"}},
          {.name = "NaN in both arms",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 0, .kind = "step", .arm = "lockstep_eager", .step = 4}, "loss",
                     {1.5, "nan"});
                 set(a, {.rank = 0, .kind = "step", .arm = "lockstep_graph", .step = 4}, "loss",
                     {1.5, "nan"});
               },
           .rank = 0,
           .mentions = {"no finite number at step 4", "nan", "NaN equals nothing"},
           .also = {"D02.graph_repeats"}},
          {.name = "one loss is NaN",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 0, .kind = "step", .arm = "lockstep_graph", .step = 4}, "loss",
                     {1.5, "nan"});
               },
           .rank = 0,
           .mentions = {"no finite number"},
           .also = {"D02.graph_repeats"}},
          {.name = "a microbatch without a loss",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 0, .kind = "step", .arm = "lockstep_eager", .step = 4}, "loss",
                     {1.5});
               },
           .rank = 0,
           .mentions = {"arm lockstep_eager lacks a loss at step 4",
                        "a finite loss of each of 2 microbatches"}},
          {.name = "one tensor fewer than in other comparisons",
           .change = [](Attempt& a) { set(a, lockstep_at(0, 3), "tensors", 32); },
           .rank = 0,
           .mentions = {"`lockstep` of step 3 compared other tensors than the first", "32 tensors",
                        "33 tensors, 262144 bytes"}},
          {.name = "a part of a tensor",
           .change = [](Attempt& a) { set(a, lockstep_at(0, 3), "bytes", 4096); },
           .rank = 0,
           .mentions = {"33 tensors, 4096 bytes"}},
          {.name = "digests differ although the comparison found no difference",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 1, .kind = "step", .arm = "lockstep_graph", .step = 2}, "digest",
                     {{"grads", "8a1f000000000002"}, {"params", "0"}, {"losses", "0"}});
               },
           .rank = 1,
           .mentions = {"the digests of arms lockstep_eager and lockstep_graph differ at step 2"},
           .also = {"D02.graph_repeats", "D11.accumulated_gradients"}},
          {.name = "a step of an arm is missing",
           .change =
               [](Attempt& a) {
                 erase(a, {.rank = 1, .kind = "step", .arm = "lockstep_graph", .step = 4});
               },
           .rank = 1,
           .mentions = {"`step` line of arm lockstep_graph at step 4"},
           .also = {"D02.graph_repeats", "D11.accumulated_gradients"}},
          {.name = "the rank died",
           .change = [](Attempt& a) { die_before(a, lockstep_at(1, 3)); },
           .want = Result::unexercised,
           .rank = std::nullopt,
           .mentions = {"evidence of rank 1 is not complete; the last phase in it is replay"},
           .also = {"*"}},
          {.name = "the rank died after a difference",
           .change =
               [](Attempt& a) {
                 differ(a, lockstep_at(1, 2));
                 die_before(a, lockstep_at(1, 3));
               },
           .rank = 1,
           .mentions = {"step 2"},
           .also = {"*"}},
      });
}

TEST(Lockstep, IsUnexercisedWhereNoReplaySeesFreshInputs) {
  const record::CheckResult result = judge_one(
      "D01.lockstep", {{"impl", "manual"}, {"steps", 3}, {"warmup_steps", 2}}, [](Attempt&) {});
  EXPECT_EQ(result.result, Result::unexercised);
  EXPECT_EQ(result.message.why, "no replay would see fresh inputs");
}

TEST(Lockstep, DoesNotApplyToEager) {
  const record::CheckResult result = judge_one("D01.lockstep", json::object(), [](Attempt&) {});
  EXPECT_EQ(result.result, Result::not_applicable);
  EXPECT_EQ(result.message.why, "the check applies to cases with `impl != none`");
}

TEST(CaptureInputsLast, Rows) {
  const Where last{.rank = 1, .kind = "compare", .name = "capture_inputs_last"};
  judge_rows(
      "D01.capture_inputs_last", kReplayAxes,
      {
          {.name = "differs",
           .change = [=](Attempt& a) { differ(a, last); },
           .rank = 1,
           .mentions = {"`capture_inputs_last`: lockstep_graph differs", "step 5"},
           .also = {"D06.freed_memory"}},
          {.name = "absent",
           .change = [=](Attempt& a) { erase(a, last); },
           .rank = 1,
           .mentions = {"rank 1 left no comparison of the capture inputs at step 5"},
           .also = {"D06.freed_memory"}},
          {.name = "fresh inputs instead",
           .change = [=](Attempt& a) { set(a, last, "input", "fresh"); },
           .rank = 1,
           .mentions = {"comparison of the capture inputs"}},
          {.name = "another step",
           .change = [=](Attempt& a) { set(a, last, "step", 4); },
           .rank = 1,
           .mentions = {"at step 5"}},
          {.name = "digests differ although the comparison found no difference",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 1, .kind = "step", .arm = "lockstep_graph", .step = 5}, "digest",
                     {{"grads", "8a1f000000000005"}, {"params", "0"}, {"losses", "0"}});
               },
           .rank = 1,
           .mentions = {"the digests of arms lockstep_eager and lockstep_graph differ at step 5"}},
          {.name = "the step itself is absent",
           .change =
               [](Attempt& a) {
                 erase(a, {.rank = 1, .kind = "step", .arm = "lockstep_eager", .step = 5});
               },
           .rank = 1,
           .mentions = {"`step` line of arm lockstep_eager at step 5"},
           .also = {"D11.accumulated_gradients"}},
          {.name = "the rank died",
           .change = [=](Attempt& a) { die_before(a, last); },
           .want = Result::unexercised,
           .rank = std::nullopt,
           .mentions = {},
           .also = {"*"}},
      });
}

TEST(FreeRun, Rows) {
  const Where end{.rank = 0, .kind = "compare", .name = "free_run"};
  judge_rows("D01.free_run", kReplayAxes,
             {
                 {.name = "differs",
                  .change = [=](Attempt& a) { differ(a, end); },
                  .rank = 0,
                  .mentions = {"free_graph differs from eager_a at step 4"}},
                 {.name = "absent",
                  .change = [=](Attempt& a) { erase(a, end); },
                  .rank = 0,
                  .mentions = {"comparison `free_run` of eager_a with free_graph at step 4"}},
                 {.name = "compared too early",
                  .change = [=](Attempt& a) { set(a, end, "step", 3); },
                  .rank = 0,
                  .mentions = {"at step 4"}},
                 {.name = "eager with eager",
                  .change = [=](Attempt& a) { set(a, end, "right", "eager_a"); },
                  .rank = 0,
                  .mentions = {"eager_a with eager_a"}},
             });
}

}  // namespace
}  // namespace graphproof::checks
