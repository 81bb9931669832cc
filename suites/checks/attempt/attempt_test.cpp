#include "suites/checks/attempt/attempt.h"

#include <gtest/gtest.h>

#include "suites/checks/attempt/expected.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

template <record::LineKind... Lines>
RankFiles files_of(const Lines&... lines) {
  RankFiles files;
  record::Evidence& evidence = files.evidence.emplace();
  const auto add = [&](const auto& line) {
    evidence.lines.push_back({.kind = std::string(line.kKind),
                              .fields = record::line_json(line),
                              .line = evidence.lines.size() + 1});
  };
  (add(lines), ...);
  record::type_lines(evidence);
  return files;
}

TEST(Axes, NeverGuessAValue) {
  const Axes axes(json{{"impl", "none"}, {"steps", "5"}});
  EXPECT_EQ(axes.text("impl"), "none");
  EXPECT_THROW(axes.integer("steps"), std::invalid_argument);
  EXPECT_THROW(axes.flag("dropout"), std::invalid_argument);
}

TEST(RankProgress, KnowsTheErrorAndWhereItWas) {
  const record::RankEvidence progress = rank_progress(
      files_of(record::StartLine{.device = "sim"},
               record::CaptureLine{.arm = "solo_graph", .status = "ok", .mode = "global"},
               record::ErrorLine{.phase = record::Phase::capture,
                                 .type = "cuda",
                                 .code = 900,
                                 .call = "aten::item",
                                 .message = "no"}));
  ASSERT_TRUE(progress.error);
  EXPECT_EQ(progress.error->code, 900);
  EXPECT_EQ(progress.error->phase, record::Phase::capture);
  EXPECT_EQ(progress.last_phase, record::Phase::capture);
  EXPECT_FALSE(progress.complete);
}

TEST(RankProgress, StepsOfEagerArmsAreOfPhaseEager) {
  for (const auto& [arm, phase] : {std::pair{"eager_a", record::Phase::eager},
                                   {"solo_eager", record::Phase::eager},
                                   {"lockstep_eager", record::Phase::replay}})
    EXPECT_EQ(rank_progress(
                  files_of(record::ReplayLine{}, record::StepLine{.arm = arm, .input = "fresh"}))
                  .last_phase,
              phase)
        << arm;
}

TEST(StoppedBecause, NamesAPeersVote) {
  const std::string why =
      stopped_because(files_of(record::StartLine{.device = "sim"},
                               record::VoteLine{.phase = record::Phase::build, .codes = {0, 3}},
                               record::EndLine{.complete = false, .lines = 2}));
  EXPECT_EQ(why, "rank 0 stopped after phase build, where rank 1 voted code 3");
}

TEST(StoppedBecause, ARankWithADamagedLineHasFinishedAllTheSame) {
  RankFiles files = files_of(record::StartLine{.device = "sim"},
                             record::VoteLine{.phase = record::Phase::build, .codes = {0, 0}},
                             record::EndLine{.complete = true, .lines = 2});
  files.evidence->lines[1].fields["codes"] = "x";
  record::type_lines(*files.evidence);
  EXPECT_EQ(stopped_because(files), "");
  EXPECT_FALSE(rank_progress(files).complete);
}

TEST(Groups, TensorParallelRanksAreNeighbours) {
  const Axes axes(json{{"tp", 2}, {"cp", 1}, {"dp", 3}, {"pp", 1}, {"ep", 1}, {"etp", 1}});
  EXPECT_EQ(symmetric_groups(axes), (std::vector<std::string>{"tp", "dp"}));
  EXPECT_EQ(groups(axes, 6, "tp"), (std::vector<std::vector<int>>{{0, 1}, {2, 3}, {4, 5}}));
  EXPECT_EQ(groups(axes, 6, "dp"), (std::vector<std::vector<int>>{{0, 2, 4}, {1, 3, 5}}));
  EXPECT_EQ(ranks_by_stage(axes, 6), (std::vector<std::vector<int>>{{0, 1, 2, 3, 4, 5}}));
}

TEST(Groups,
     ContextParallelRanksLieBetweenTensorAndDataParallelOnesAndShareTheReductionOfGradients) {
  const Axes axes(json{{"tp", 2}, {"cp", 2}, {"dp", 2}, {"pp", 1}, {"ep", 1}, {"etp", 1}});
  EXPECT_EQ(symmetric_groups(axes), (std::vector<std::string>{"tp", "cp", "dp_cp"}));
  EXPECT_EQ(groups(axes, 8, "cp"), (std::vector<std::vector<int>>{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(groups(axes, 8, "dp"), (std::vector<std::vector<int>>{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(groups(axes, 8, "dp_cp"), (std::vector<std::vector<int>>{{0, 2, 4, 6}, {1, 3, 5, 7}}));
}

TEST(Groups, ExpertTensorParallelRanksAreNeighboursAndExpertParallelOnesThatFarApart) {
  const Axes axes(json{{"tp", 1}, {"cp", 1}, {"dp", 8}, {"pp", 1}, {"ep", 2}, {"etp", 2}});
  EXPECT_EQ(symmetric_groups(axes), (std::vector<std::string>{"dp", "ep", "etp"}));
  EXPECT_EQ(groups(axes, 8, "ep"), (std::vector<std::vector<int>>{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(groups(axes, 8, "etp"),
            (std::vector<std::vector<int>>{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
}

}  // namespace
}  // namespace graphproof::checks
