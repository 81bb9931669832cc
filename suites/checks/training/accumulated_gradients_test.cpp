#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

const json kCase = {{"impl", "full_iteration"}, {"tp", 2}, {"microbatches", 2}};
const Where kThird{.rank = 1, .kind = "step", .arm = "lockstep_graph", .step = 3};

/// Gives a `step` line of a rank another digest of the gradients.
void gradients(Attempt& attempt, const Where& where, const char* digest) {
  record::StepDigests digests = attempt.ranks[static_cast<std::size_t>(*where.rank)]
                                    .find<record::StepLine>(where.arm, *where.step)
                                    .front()
                                    ->digest;
  digests.grads = digest;
  set(attempt, where, "digest", record::FieldType<record::StepDigests>::write(digests));
}

TEST(AccumulatedGradients, Rows) {
  judge_rows(
      "D11.accumulated_gradients", kCase,
      {
          {.name = "other gradients under equal losses (M36, M37)",
           .change =
               [](Attempt& a) {
                 // The comparison of step digests is D01's; this row is about the
                 // result of D11.
                 gradients(a, kThird, "ffffffffffffffff");
               },
           .rank = 1,
           .mentions = {"the replay of step 3 added up its microbatches' gradients wrongly",
                        "ffffffffffffffff under equal losses", "the sum over 2 microbatches"},
           .also = {"D01.lockstep", "D02.graph_repeats"}},
          {.name = "the losses differ too, so the sums are not at fault",
           .change =
               [](Attempt& a) {
                 gradients(a, kThird, "ffffffffffffffff");
                 set(a, kThird, "loss_bits", "eeeeeeeeeeeeeeee");
               },
           .want = record::Result::unexercised,
           .rank = std::nullopt,
           .mentions = {"the losses differ from step 3 on"},
           .also = {"D01.lockstep", "D02.graph_repeats"}},
          {.name = "the last inputs",
           .change =
               [](Attempt& a) {
                 gradients(a, {.rank = 0, .kind = "step", .arm = "lockstep_graph", .step = 5},
                           "abababababababab");
               },
           .rank = 0,
           .mentions = {"step 5", "abababababababab"},
           .also = {"D01.capture_inputs_last"}},
          {.name = "no digest in either arm, so the two are equal",
           .change =
               [](Attempt& a) {
                 for (const char* arm : {"lockstep_eager", "lockstep_graph"})
                   gradients(a, {.rank = 0, .kind = "step", .arm = arm, .step = 5}, "");
               },
           .rank = 0,
           .mentions = {"digest of the gradients in a `step` line at step 5"}},
          {.name = "absent",
           .change = [](Attempt& a) { erase(a, kThird); },
           .rank = 1,
           .mentions = {"`step` line of both lockstep arms"},
           .also = {"D01.lockstep", "D02.graph_repeats"}},
          {.name = "the rank died",
           .change = [](Attempt& a) { die_before(a, kThird); },
           .want = record::Result::unexercised,
           .rank = std::nullopt,
           .mentions = {"rank 1"},
           .also = {"*"}},
      });
}

TEST(AccumulatedGradients, OneMicrobatchHasNothingToAddUp) {
  const auto result = judge_one("D11.accumulated_gradients", {{"impl", "manual"}}, [](Attempt&) {});
  EXPECT_EQ(result.result, record::Result::not_applicable);
  EXPECT_EQ(result.message.why,
            "the check applies to cases with `microbatches > 1 and impl != none and model != "
            "\"collective\"`");
}

}  // namespace
}  // namespace graphproof::checks
