#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

TEST(StaticInputs, OfVirtualStagesFollowTheInterleavedOrder) {
  // The first of two stages, with two chunks: four forwards before the first backward, and one more
  // with it.
  const json chunks = {
      {"impl", "transformer_engine"}, {"pp", 2}, {"vpp", 2}, {"microbatches", 4}, {"layers", 4}};
  const auto at = [](std::int64_t addresses) {
    return [addresses](Attempt& a) {
      json list = json::array();
      for (std::int64_t i = 0; i < 8; ++i) list.push_back("0x" + std::to_string(i % addresses + 1));
      set(a, {.rank = 0, .kind = "capture", .arm = "solo_graph"}, "owned_inputs", list);
    };
  };
  EXPECT_EQ(judge_one("D31.static_inputs", chunks, at(5)).result, record::Result::pass);
  EXPECT_EQ(judge_one("D31.static_inputs", chunks, at(4)).result, record::Result::fail);
  EXPECT_EQ(judge_one("D31.static_inputs", chunks, at(6)).result, record::Result::fail);
}

TEST(StaticInputs, Rows) {
  const json pipeline = {{"impl", "transformer_engine"}, {"pp", 2}, {"microbatches", 4}};
  const Where capture{.rank = 0, .kind = "capture", .arm = "solo_graph"};
  const auto at = [=](const json& addresses) {
    return [=](Attempt& a) { set(a, capture, "owned_inputs", addresses); };
  };
  judge_rows("D31.static_inputs", pipeline,
             {
                 {.name = "inputs of its own for every microbatch (M393)",
                  .change = at({"0x1000", "0x2000", "0x3000", "0x4000"}),
                  .rank = 0,
                  .mentions = {"the graphs of arm solo_graph do not share their static inputs",
                               "4 addresses for 4 static inputs",
                               "2: those of 2 of 4 forward passes of a chunk are in use"}},
                 {.name = "one for two microbatches that are in use",
                  .change = at({"0x1000", "0x1000", "0x1000", "0x1000"}),
                  .rank = 0,
                  .mentions = {"1 addresses for 4 static inputs"}},
                 {.name = "no inputs",
                  .change =
                      [](Attempt& a) {
                        for (const char* arm : {"lockstep_graph", "free_graph", "solo_graph"})
                          unset(a, {.rank = 1, .kind = "capture", .arm = arm}, "owned_inputs");
                      },
                  .rank = 1,
                  .mentions = {"static inputs in a `capture` line"}},
                 {.name = "the rank died",
                  .change = [](Attempt& a) { die_before(a, {.rank = 1, .kind = "capture"}); },
                  .want = record::Result::unexercised,
                  .rank = std::nullopt,
                  .mentions = {"rank 1"},
                  .also = {"*"}},
             });
}

}  // namespace
}  // namespace graphproof::checks
