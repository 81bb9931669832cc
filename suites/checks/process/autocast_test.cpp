#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

const Where kEager{.rank = 0, .kind = "products", .arm = "eager_a", .step = 1},
    kCaptured{.rank = 0, .kind = "products", .arm = "lockstep_graph", .step = 2};

json cast_axes(json others = json::object()) {
  json axes = {
      {"impl", "full_iteration"}, {"microbatches", 2}, {"layers", 2}, {"autocast", "bf16"}};
  axes.update(others);
  return axes;
}
std::function<void(Attempt&)> counts(const Where& where, const char* name, std::int64_t value) {
  return [=](Attempt& a) { set(a, where, name, value); };
}

TEST(Autocast, Rows) {
  judge_rows(
      "D86.autocast", cast_axes(),
      {
          {.name = "nothing was cast (M400)",
           .change =
               [](Attempt& a) {
                 set(a, kEager, "in_16_bits", 0);
                 set(a, kEager, "in_32_bits", 54);
                 set(a, kEager, "parameters", 0);
                 set(a, kEager, "casts", 0);
               },
           .rank = 0,
           .mentions = {"step 1 of arm eager_a has no matrix product in 16 bits",
                        "got 0 in 16 bits, 54 in 32 bits", "want all in 16 bits"}},
          {.name = "a product that autocast did not see",
           .change = counts(kCaptured, "in_32_bits", 1),
           .rank = 0,
           .mentions = {"step 2 of arm lockstep_graph has matrix products that autocast did not "
                        "cast"}},
          {.name = "a capture of nothing",
           .change = counts(kCaptured, "in_16_bits", 0),
           .rank = 0,
           .mentions = {"step 2 of arm lockstep_graph has no matrix product in 16 bits"}},
          {.name = "a layer that does not cast its weight",
           .change = counts(kEager, "parameters", 8),
           .rank = 0,
           .mentions = {"cast another number of parameters", "got 8",
                        "want 9, the weights of the linear layers"}},
          {.name = "kept without a cache",
           .change = counts(kEager, "casts", 9),
           .rank = 0,
           .mentions = {"did not cast parameters for every use", "got 9", "want 18 casts",
                        "kept beyond"}},
          {.name = "cast too often",
           .change = counts(kEager, "casts", 19),
           .rank = 0,
           .mentions = {"got 19", "more often than products need them"}},
          {.name = "absent",
           .change = [](Attempt& a) { erase(a, kCaptured); },
           .rank = 0,
           .mentions = {"`products` line of arm lockstep_graph at step 2"}},
      });
}

TEST(Autocast, ReplaysOfAStageWhoseLayersAreAllInGraphsHaveNoProducts) {
  const json axes = cast_axes({{"impl", "local"}, {"pp", 2}});
  for (const int step : {0, 1}) {
    const Where at{.rank = 0, .kind = "products", .arm = "lockstep_graph", .step = step};
    EXPECT_EQ(judge_one("D86.autocast", axes, counts(at, "in_16_bits", 0)).result,
              step == 0 ? record::Result::fail : record::Result::pass);
  }
}

TEST(Autocast, ACacheCastsAWeightOnceInEachRegion) {
  judge_rows("D86.autocast", cast_axes({{"autocast_cache", true}, {"mtp_num_layers", 1}}),
             {{.name = "cast for every use (M401)",
               .change = counts(kEager, "casts", 30),
               .rank = 0,
               .mentions = {"step 1 of arm eager_a did not cast every parameter once in the region "
                            "of each microbatch",
                            "got 30", "want 28 casts, of 14 parameters in 2 microbatches",
                            "the cache kept nothing"}},
              {.name = "kept into the next microbatch",
               .change = counts(kCaptured, "casts", 14),
               .rank = 0,
               .mentions = {"step 2 of arm lockstep_graph", "got 14", "beyond its region"}}});
}

TEST(Autocast, WhatRunsAgainCastsAgain) {
  judge_rows("D86.autocast",
             cast_axes({{"recompute", "full(uniform,1)"}, {"autocast_cache", true}}),
             {{.name = "again in the backward",
               .change = counts(kEager, "casts", 34),
               .want = record::Result::pass,
               .rank = std::nullopt,
               .mentions = {}},
              {.name = "less often than the forward",
               .change = counts(kEager, "casts", 17),
               .rank = 0,
               .mentions = {"cast parameters too seldom", "got 17", "want at least 18 casts"}}});
  judge_rows("D86.autocast", cast_axes({{"impl", "local"}}),
             {{.name = "parts run more than once until they are captured",
               .change =
                   [](Attempt& a) {
                     set(a, {.rank = 0, .kind = "products", .arm = "lockstep_graph", .step = 1},
                         "casts", 58);
                   },
               .want = record::Result::pass,
               .rank = std::nullopt,
               .mentions = {}},
              {.name = "but in 16 bits",
               .change =
                   [](Attempt& a) {
                     set(a, {.rank = 0, .kind = "products", .arm = "lockstep_graph", .step = 1},
                         "in_32_bits", 3);
                   },
               .rank = 0,
               .mentions = {"step 1 of arm lockstep_graph has matrix products that autocast did "
                            "not cast"}}});
}

TEST(Autocast, IsNotApplicableWithoutIt) {
  EXPECT_EQ(record::name(judge_one("D86.autocast", {{"impl", "manual"}}, [](Attempt&) {}).result),
            "not_applicable");
}

}  // namespace
}  // namespace graphproof::checks
