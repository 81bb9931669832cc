#include <gtest/gtest.h>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

json digests(const char* tp, const char* dp) { return {{"tp", tp}, {"dp", dp}}; }

TEST(CollectiveLedger, Rows) {
  const auto lockstep_of = [](int rank) {
    return Where{.rank = rank, .kind = "collectives", .arm = "lockstep"};
  };
  judge_rows(
      "D25.collective_ledger", {{"impl", "manual"}, {"tp", 2}, {"dp", 2}},
      {
          {.name = "another order in a tp group",
           .change =
               [=](Attempt& a) {
                 set(a, lockstep_of(3), "digest", digests("00", "99aa000000000064"));
               },
           .rank = 3,
           .mentions =
               {"ranks 2 and 3 of one tp group issued different collectives in arm lockstep",
                "digest 00", "99aa000000000074"}},
          {.name = "another order in a dp group",
           .change =
               [=](Attempt& a) {
                 set(a, lockstep_of(3), "digest", digests("99aa000000000074", "00"));
               },
           .rank = 3,
           .mentions = {"ranks 1 and 3 of one dp group"}},
          {.name = "another number",
           .change = [=](Attempt& a) { set(a, lockstep_of(1), "count", 41); },
           .rank = 1,
           .mentions = {"41 collectives", "42 collectives"}},
          {.name = "no dp collective at all",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = std::nullopt, .kind = "collectives"}, "digest",
                     json{{"tp", "11"}});
               },
           .rank = 0,
           .mentions = {"rank 0 issued no collective in its dp group"}},
          {.name = "none at all",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = std::nullopt, .kind = "collectives"}, "count", 0);
               },
           .rank = 0,
           .mentions = {"0 collectives"}},
          {.name = "one rank has no counts of an arm",
           .change = [=](Attempt& a) { erase(a, lockstep_of(1)); },
           .rank = 1,
           .mentions = {"`collectives` line of arm lockstep, which rank 0 has"}},
          {.name = "no rank has counts",
           .change = [](Attempt& a) { erase(a, {.rank = std::nullopt, .kind = "collectives"}); },
           .rank = 0,
           .mentions = {"rank 0 left no `collectives` line of arm eager_a"}},
          {.name = "no rank has counts of an arm",
           .change =
               [](Attempt& a) {
                 erase(a, {.rank = std::nullopt, .kind = "collectives", .arm = "solo_graph"});
               },
           .rank = 0,
           .mentions = {"rank 0 left no `collectives` line of arm solo_graph"}},
          {.name = "a rank died",
           .change = [](Attempt& a) { die_before(a, {.rank = 2, .kind = "collectives"}); },
           .want = record::Result::unexercised,
           .rank = std::nullopt,
           .mentions = {"rank 2"},
           .also = {"*"}},
      });
}

TEST(CollectiveLedger, OfContextParallelRanks) {
  const auto lockstep_of = [](int rank) {
    return Where{.rank = rank, .kind = "collectives", .arm = "lockstep"};
  };
  judge_rows(
      "D25.collective_ledger", {{"impl", "manual"}, {"cp", 2}, {"dp", 2}},
      {{.name = "another order in a cp group",
        .change =
            [=](Attempt& a) {
              set(a, lockstep_of(3), "digest", json{{"cp", "00"}, {"dp_cp", "99aa000000000064"}});
            },
        .rank = 3,
        .mentions = {"ranks 2 and 3 of one cp group issued different collectives in arm lockstep"}},
       {.name = "gradients that were not reduced over both",
        .change =
            [](Attempt& a) {
              set(a, {.rank = std::nullopt, .kind = "collectives"}, "digest", json{{"cp", "11"}});
            },
        .rank = 0,
        .mentions = {"rank 0 issued no collective in its dp_cp group"}}});
}

TEST(CollectiveLedger, GroupsMayDifferFromEachOther) {
  const record::CheckResult result = judge_one(
      "D25.collective_ledger", {{"impl", "manual"}, {"tp", 2}, {"dp", 2}}, [](Attempt& a) {
        for (int rank : {2, 3})
          set(a, {.rank = rank, .kind = "collectives"}, "digest",
              digests("second tp group", "99aa000000000064"));
      });
  EXPECT_EQ(result.result, record::Result::pass) << record::to_text(result.message);
}

TEST(CollectiveLedger, StagesAgreeOnTheirEdgeAndMayIssueMoreElsewhere) {
  const nlohmann::json axes = {{"impl", "manual"}, {"pp", 4}, {"layers", 4}};
  const record::CheckResult more = judge_one("D25.collective_ledger", axes, [](Attempt& a) {
    set(a, {.rank = 1, .kind = "collectives"}, "count", 57);
  });
  EXPECT_EQ(more.result, record::Result::pass) << record::to_text(more.message);
  const record::CheckResult other = judge_one("D25.collective_ledger", axes, [](Attempt& a) {
    set(a, {.rank = 2, .kind = "collectives"}, "digest",
        {{"pp.1>2", "99aa0000000000ff"},
         {"pp.2>1", "99aa000000000021"},
         {"pp.2>3", "99aa000000000023"},
         {"pp.3>2", "99aa000000000032"}});
  });
  EXPECT_EQ(other.result, record::Result::fail);
  EXPECT_NE(record::to_text(other.message)
                .find("ranks 1 and 2 of one pp.1>2 group issued different collectives"),
            std::string::npos)
      << record::to_text(other.message);
}

TEST(CollectiveLedger, FirstAndLastStageAgreeOnTheGradientOfAnEmbeddingThatBothHold) {
  for (const json& asked : {json{{"tied_embeddings", true}}, json{{"mtp_num_layers", 1}}}) {
    json axes = {{"impl", "manual"}, {"pp", 4}, {"layers", 4}};
    axes.update(asked);
    EXPECT_EQ(judge_one("D25.collective_ledger", axes, [](Attempt&) {}).result,
              record::Result::pass);
    for (const int rank : {0, 3}) {
      const record::CheckResult alone = judge_one("D25.collective_ledger", axes, [&](Attempt& a) {
        for (Line& line : a.ranks[static_cast<std::size_t>(rank)].evidence->lines)
          if (line.kind == "collectives") line.fields["digest"].erase("embd");
      });
      EXPECT_NE(record::to_text(alone.message).find("embd group"), std::string::npos)
          << rank << ": " << record::to_text(alone.message);
      EXPECT_EQ(alone.result, record::Result::fail);
    }
  }
}

TEST(CollectiveLedger, StagesAgreeOnTheNormAndOnWhatIsInfinite) {
  for (const nlohmann::json& asked :
       {nlohmann::json{{"clip_grad", true}}, nlohmann::json{{"precision", "fp16"}}}) {
    nlohmann::json axes = {{"impl", "manual"}, {"pp", 2}, {"microbatches", 2}};
    axes.update(asked);
    for (const int rank : {0, 1}) {
      const record::CheckResult alone = judge_one("D25.collective_ledger", axes, [&](Attempt& a) {
        set(a, {.rank = rank, .kind = "collectives"}, "digest",
            {{"pp.0>1", "99aa000000000001"}, {"pp.1>0", "99aa000000000010"}});
      });
      EXPECT_EQ(alone.result, record::Result::fail);
      EXPECT_NE(record::to_text(alone.message)
                    .find(concat("rank ", rank, " issued no collective in its pp group")),
                std::string::npos)
          << record::to_text(alone.message);
    }
  }
}

// Experts in fp16 are compared with one rank in fp32. No gradient may be infinite in that
// comparison, so the stages exchange no flag.
TEST(CollectiveLedger, AReferenceInSinglePrecisionAsksNoStageUnlessForTheNorm) {
  const auto result_of = [](const char* reference_precision, bool clip_grad) {
    return judge_one("D25.collective_ledger",
                     {{"impl", "manual"},
                      {"pp", 2},
                      {"microbatches", 2},
                      {"precision", "fp16"},
                      {"clip_grad", clip_grad}},
                     [&](Attempt& a) {
                       set(a, {.rank = std::nullopt, .kind = "reference"}, "precision",
                           reference_precision);
                       for (int rank : {0, 1})
                         add(a, rank,
                             {{"kind", "collectives"},
                              {"arm", "reference"},
                              {"count", 4},
                              {"last", nullptr},
                              {"digest",
                               {{"pp.0>1", "99aa000000000001"}, {"pp.1>0", "99aa000000000010"}}}});
                     })
        .result;
  };
  EXPECT_EQ(result_of("fp32", false), record::Result::pass);
  EXPECT_EQ(result_of("fp16", false), record::Result::fail);
  EXPECT_EQ(result_of("fp32", true), record::Result::fail);
}

}  // namespace
}  // namespace graphproof::checks
