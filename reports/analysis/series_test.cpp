#include "reports/analysis/series.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "reports/record/evidence/evidence.h"
#include "reports/record/testing/scratch_folder.h"

namespace graphproof::reports {
namespace {

record::StepLine step(const char* arm, int index, std::vector<double> loss) {
  return {.arm = arm, .step = index, .input = "fresh", .loss = std::move(loss)};
}

record::CompareLine compare(int index, double max_abs) {
  record::CompareLine line{.left = "lockstep_eager",
                           .right = "lockstep_graph",
                           .compared = "lockstep",
                           .step = index,
                           .input = "fresh",
                           .equal = max_abs == 0};
  if (max_abs != 0) line.mismatch = record::TensorMismatch{.tensor = "t", .max_abs = max_abs};
  return line;
}

TEST(Series, LossIsOfTheLastRankAndDifferencesAreTheLargestOfAll) {
  const record::ScratchFolder folder;
  for (int rank = 0; rank < 2; ++rank) {
    record::EvidenceWriter writer(folder.path() / record::evidence_file_name(rank));
    writer.write(step("eager_a", 0, {1.0 + rank, 2.0 + rank}));
    writer.write(compare(0, rank == 0 ? 0 : 0.5));
    writer.write(compare(1, rank == 0 ? std::nan("") : 0.25));
    writer.write(record::MemoryLine{.arm = "lockstep", .allocated = 100 * (rank + 1)});
    writer.write(record::TimingLine{.arm = "solo_graph", .step = 0, .wall_ms = 2.0 + rank});
  }
  const Series series = series_of(record::read_evidence_of_attempt(folder.path()));
  EXPECT_EQ(series.loss.at("eager_a"), (Curve{{0}, {2.5}}));
  EXPECT_EQ(series.difference.at("lockstep").steps, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(series.difference.at("lockstep").values[0], 0.5);
  EXPECT_TRUE(std::isnan(series.difference.at("lockstep").values[1]))
      << "a NaN on one rank hides behind no number";
  EXPECT_EQ(series.memory.at("lockstep allocated"), (Curve{{0}, {200}}));
  EXPECT_EQ(series.step_ms.at("solo_graph"), (Curve{{0}, {3}})) << "the slowest rank";
  EXPECT_EQ(series.grad_norm.at("eager_a"), (Curve{{0}, {0}}));
  EXPECT_EQ(series.ulp.at("lockstep").steps, (std::vector<std::int64_t>{0, 1}));
  EXPECT_TRUE(to_json(series)["difference"]["lockstep"]["values"][1].is_null())
      << "JSON has no NaN";
}

TEST(Series, LongCurvesKeepTheirFirstAndLastStep) {
  const record::ScratchFolder folder;
  {
    record::EvidenceWriter writer(folder.path() / record::evidence_file_name(0));
    for (int index = 0; index < 1001; ++index)
      writer.write(step("free_eager", index, {double(index)}));
  }
  const Curve curve =
      series_of(record::read_evidence_of_attempt(folder.path())).loss.at("free_eager");
  EXPECT_LE(curve.steps.size(), 402u);
  EXPECT_EQ(curve.steps.front(), 0);
  EXPECT_EQ(curve.steps.back(), 1000);
}

TEST(Series, BrokenLinesAndAnAbsentFolderLeaveTheRest) {
  const record::ScratchFolder folder;
  record::Json broken = record::line_json(step("eager_a", 0, {1.0}));
  broken["loss"] = {"x"};
  std::ofstream(folder.path() / record::evidence_file_name(0))
      << broken.dump() << "\n"
      << R"({"kind":"compare","compared":7})"
      << "\n"
      << record::line_json(step("eager_a", 1, {3.0})).dump() << "\n"
      << R"({"kind":"step","arm":"eag)";
  EXPECT_EQ(series_of(record::read_evidence_of_attempt(folder.path())).loss.at("eager_a"),
            (Curve{{1}, {3.0}}));
  EXPECT_TRUE(series_of(record::read_evidence_of_attempt(folder.path() / "absent")).empty());
}

}  // namespace
}  // namespace graphproof::reports
