#include <gtest/gtest.h>

#include "suites/checks/attempt/expected.h"
#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const nlohmann::json kScaledAxes = {
    {"impl", "local"}, {"tp", 2}, {"microbatches", 2}, {"precision", "fp8_delayed"}};

TEST(Fp8Scaling, Rows) {
  const Where at_three{.rank = 1, .kind = "fp8_scaling", .arm = "lockstep_graph", .step = 3};
  judge_rows(
      "D70.fp8_scaling", kScaledAxes,
      {
          {.name = "no update at a replay (M322)",
           .change = [=](Attempt& a) { set(a, at_three, "updates", std::vector<int>{0, 0}); },
           .rank = 1,
           .mentions = {"the forward passes of chunk 0 had another number of updates of fp8 in "
                        "step 3 of arm lockstep_graph",
                        "got 0", "want 2, one on leaving the context of each microbatch",
                        "scales that stay behind their history"}},
          {.name = "one update for two microbatches of the backward (M324)",
           .change = [=](Attempt& a) { set(a, at_three, "updates", std::vector<int>{2, 1}); },
           .rank = 1,
           .mentions = {"the backward passes of chunk 0", "got 1", "two microbatches share"}},
          {.name = "more updates",
           .change = [=](Attempt& a) { set(a, at_three, "updates", std::vector<int>{3, 2}); },
           .rank = 1,
           .mentions = {"got 3", "leave the history too early"}},
          {.name = "a reduction in every graph (M321)",
           .change = [=](Attempt& a) { set(a, at_three, "reductions", std::vector<int>{10, 2}); },
           .rank = 1,
           .mentions = {"another number of reductions", "got 10", "every graph waits"}},
          {.name = "no reduction",
           .change = [=](Attempt& a) { set(a, at_three, "reductions", std::vector<int>{2, 0}); },
           .rank = 1,
           .mentions = {"another number of reductions", "got 0", "scale differently"}},
          {.name = "scales that differ",
           .change = [=](Attempt& a) { set(a, at_three, "scales", "0123456789abcdef"); },
           .rank = 1,
           .mentions = {"differ between ranks of a stage after step 3", "0123456789abcdef",
                        "as the first rank of the stage has"}},
          {.name = "other chunks than the case has",
           .change = [=](Attempt& a) { set(a, at_three, "updates", std::vector<int>{2}); },
           .rank = 1,
           .mentions = {"`fp8_scaling` line of 1 chunks of arm lockstep_graph"}},
          {.name = "absent",
           .change = [=](Attempt& a) { erase(a, at_three); },
           .rank = 1,
           .mentions = {"`fp8_scaling` line of 1 chunks of arm lockstep_graph at step 3"}},
      });
}

TEST(Fp8Scaling, KnowsWhichChunksMultiplyInFp8) {
  struct Row {
    nlohmann::json axes;
    std::int64_t stage;
    std::vector<std::int64_t> updates;
  };
  const nlohmann::json interleaved = {{"layers", 4}, {"pp", 2}, {"vpp", 2}, {"microbatches", 2}};
  nlohmann::json ends = interleaved;
  ends["first_last_layers_bf16"] = true;
  nlohmann::json seeing = ends;  // with an encoder whose middle layer is in fp8
  seeing["model"] = "vlm";
  seeing["encoder_layers"] = 3;
  nlohmann::json ahead = ends;  // whose last chunk ends with a layer in fp8
  ahead["mtp_num_layers"] = 1;
  for (const Row& row : std::vector<Row>{{interleaved, 0, {2, 2, 2, 2}},
                                         {ends, 0, {0, 2, 0, 2}},
                                         {ends, 1, {2, 0, 2, 0}},
                                         {seeing, 0, {2, 2, 2, 2}},
                                         {seeing, 1, {2, 0, 2, 0}},
                                         {ahead, 0, {0, 2, 0, 2}},
                                         {ahead, 1, {2, 2, 2, 2}}}) {
    nlohmann::json axes = row.axes;
    axes["precision"] = "fp8_delayed";
    const auto result = judge_one("D70.fp8_scaling", axes, [&](Attempt& attempt) {
      EXPECT_EQ(fp8_updates(attempt.axes, row.stage), row.updates) << axes.dump();
    });
    EXPECT_EQ(record::name(result.result), "pass") << "stages have scales of their own";
  }
}

TEST(Fp8Scaling, IsNotApplicableWithoutDelayedScaling) {
  for (const char* precision : {"bf16", "fp8_current"})
    EXPECT_EQ(record::name(judge_one("D70.fp8_scaling",
                                     {{"impl", "local"}, {"precision", precision}}, [](Attempt&) {})
                               .result),
              "not_applicable");
}

}  // namespace
}  // namespace graphproof::checks
