#include "suites/checks/attempt/attempt.h"

#include <gtest/gtest.h>

#include "suites/checks/attempt/expected.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

RankFiles files_of(std::vector<json> lines) {
  RankFiles files;
  files.evidence.emplace();
  for (json& fields : lines) {
    const std::string kind = fields["kind"];
    files.evidence->lines.push_back(
        {.kind = kind, .fields = std::move(fields), .line = files.evidence->lines.size() + 1});
  }
  return files;
}

TEST(Axes, NeverGuessAValue) {
  const Axes axes(json{{"impl", "none"}, {"steps", "5"}});
  EXPECT_EQ(axes.text("impl"), "none");
  EXPECT_THROW(axes.integer("steps"), std::invalid_argument);
  EXPECT_THROW(axes.flag("dropout"), std::invalid_argument);
}

TEST(Lines, ReadDamagedFieldsAsAbsent) {
  const RankFiles files = files_of({{{"kind", "knob"},
                                     {"host", "nan"},
                                     {"step", 1.5},
                                     {"equal", "true"},
                                     {"codes", {0, "1"}},
                                     {"loss", {1.0, nullptr}}}});
  const Line& line = *files.first("knob");
  EXPECT_FALSE(number(line, "host"));
  EXPECT_FALSE(integer(line, "step"));
  EXPECT_FALSE(flag(line, "equal"));
  EXPECT_FALSE(integers(line, "codes"));
  EXPECT_FALSE(finite(line, "loss"));
  EXPECT_EQ(text(line, "absent"), "");
}

TEST(WayOf, KnowsTheErrorAndWhereItWas) {
  const record::RankEvidence way =
      rank_progress(files_of({{{"kind", "start"}},
                              {{"kind", "capture"}, {"arm", "solo_graph"}},
                              {{"kind", "error"},
                               {"type", "cuda"},
                               {"code", 900},
                               {"call", "aten::item"},
                               {"message", "no"}}}));
  ASSERT_TRUE(way.error);
  EXPECT_EQ(way.error->code, 900);
  EXPECT_EQ(way.error->phase,
            record::Phase::capture);  // where the rank was, since the line does not say
  EXPECT_FALSE(way.complete);
}

TEST(WayOf, StepsOfEagerArmsAreOfPhaseEager) {
  for (const auto& [arm, phase] : {std::pair{"eager_a", record::Phase::eager},
                                   {"solo_eager", record::Phase::eager},
                                   {"lockstep_eager", record::Phase::replay}})
    EXPECT_EQ(rank_progress(files_of({{{"kind", "replay"}}, {{"kind", "step"}, {"arm", arm}}}))
                  .last_phase,
              phase)
        << arm;
}

TEST(WayOf, ARefusalThatDoesNotSaySoHasTouchedTheDevice) {
  const record::RankEvidence way =
      rank_progress(files_of({{{"kind", "refused"}, {"rule", "R035"}}}));
  ASSERT_TRUE(way.refused);
  EXPECT_TRUE(way.refused->device_initialised);
}

TEST(StoppedBecause, NamesAPeersVote) {
  const std::string why =
      stopped_because(files_of({{{"kind", "start"}},
                                {{"kind", "vote"}, {"phase", "build"}, {"codes", {0, 3}}},
                                {{"kind", "end"}, {"complete", false}, {"lines", 2}}}));
  EXPECT_EQ(why, "rank 0 stopped after phase build, where rank 1 voted code 3");
}

TEST(Groups, TensorParallelRanksAreNeighbours) {
  const Axes axes(json{{"tp", 2}, {"cp", 1}, {"dp", 3}, {"pp", 1}, {"ep", 1}, {"etp", 1}});
  EXPECT_EQ(alike_groups(axes), (std::vector<std::string>{"tp", "dp"}));
  EXPECT_EQ(groups(axes, 6, "tp"), (std::vector<std::vector<int>>{{0, 1}, {2, 3}, {4, 5}}));
  EXPECT_EQ(groups(axes, 6, "dp"), (std::vector<std::vector<int>>{{0, 2, 4}, {1, 3, 5}}));
  EXPECT_EQ(roles(axes, 6), (std::vector<std::vector<int>>{{0, 1, 2, 3, 4, 5}}));
}

TEST(Groups,
     ContextParallelRanksLieBetweenTensorAndDataParallelOnesAndShareTheReductionOfGradients) {
  const Axes axes(json{{"tp", 2}, {"cp", 2}, {"dp", 2}, {"pp", 1}, {"ep", 1}, {"etp", 1}});
  EXPECT_EQ(alike_groups(axes), (std::vector<std::string>{"tp", "cp", "dp_cp"}));
  EXPECT_EQ(groups(axes, 8, "cp"), (std::vector<std::vector<int>>{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(groups(axes, 8, "dp"), (std::vector<std::vector<int>>{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(groups(axes, 8, "dp_cp"), (std::vector<std::vector<int>>{{0, 2, 4, 6}, {1, 3, 5, 7}}));
}

TEST(Groups, ExpertTensorParallelRanksAreNeighboursAndExpertParallelOnesThatFarApart) {
  const Axes axes(json{{"tp", 1}, {"cp", 1}, {"dp", 8}, {"pp", 1}, {"ep", 2}, {"etp", 2}});
  EXPECT_EQ(alike_groups(axes), (std::vector<std::string>{"dp", "ep", "etp"}));
  EXPECT_EQ(groups(axes, 8, "ep"), (std::vector<std::vector<int>>{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(groups(axes, 8, "etp"),
            (std::vector<std::vector<int>>{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
}

}  // namespace
}  // namespace graphproof::checks
