#include "reports/analysis/drift.h"

#include <gtest/gtest.h>

#include <fstream>

#include "reports/record/testing/scratch_folder.h"

namespace graphproof::reports {
namespace {

namespace fs = std::filesystem;

/// Writes an attempt of one rank: two steps of eager_a, another arm, and a bound for losses unless
/// it is empty.
fs::path attempt_in(const fs::path& folder, const std::string& loss, const std::string& digest,
                    const std::string& bound = "0.001", double ms = 3.1) {
  fs::create_directories(folder);
  std::ofstream out(folder / "rank-0.evidence.jsonl");
  out << R"({"kind":"start","schema":"graphproof-evidence/1"})" << "\n";
  for (int step = 0; step < 2; ++step)
    out << R"({"kind":"step","arm":"eager_a","step":)" << step << R"(,"loss":[)"
        << (step == 1 ? loss : "5.125") << R"(],"grad_norm":1.5,"digest":{"losses":")" << digest
        << R"("},"learning_rate":0.1,"ms":)" << ms << "}\n";
  out << R"({"kind":"step","arm":"lockstep_eager","step":0,"loss":[9],"ms":1})" << "\n";
  if (!bound.empty())
    out << R"({"kind":"reference","compared":"losses","bound":)" << bound << "}\n";
  return folder;
}

TEST(Drift, HasTheClassOfTheLargestDifference) {
  const record::ScratchFolder scratch;
  const fs::path before = attempt_in(scratch.path() / "a", "5.25", "aa");
  struct Row {
    const char *name, *loss, *digest, *bound;
    DriftClass want;
  };
  const Row rows[] = {
      {"the same", "5.25", "aa", "0.001", DriftClass::bitwise},
      {"only a digest differs", "5.25", "bb", "0.001", DriftClass::ulp},
      {"one unit in the last place", "5.2500004768371582", "bb", "0.001", DriftClass::ulp},
      {"within the bound", "5.2509", "bb", "0.001", DriftClass::tolerance},
      {"beyond the bound", "5.2511", "bb", "0.001", DriftClass::beyond},
      {"not a number", "null", "bb", "0.001", DriftClass::beyond},
  };
  int number = 0;
  for (const Row& row : rows) {
    const fs::path now =
        attempt_in(scratch.path() / std::to_string(number++), row.loss, row.digest, row.bound, 4.5);
    const auto found = drift(before, now);
    ASSERT_TRUE(found) << row.name;
    EXPECT_EQ(name(found->drift_class), name(row.want)) << row.name << ": " << found->what;
  }
  EXPECT_EQ(drift(before, scratch.path() / "4")->what,
            "a loss of step 1 on rank 0: 5.25 -> 5.2511");
}

TEST(Drift, ReadsEvidenceInWhichAnotherArmRepeatsEachStep) {
  const record::ScratchFolder scratch;
  const auto older = [&](const char* name, const char* loss) {
    std::ofstream out(scratch.path() / name / "rank-0.evidence.jsonl");
    for (const char* first : {"5.125", loss})
      for (const char* arm : {"eager_a", "eager_b"})
        out << R"({"kind":"step","arm":")" << arm << R"(","step":0,"loss":[)" << first
            << R"(],"grad_norm":1.5,"digest":{"losses":"aa"},"learning_rate":0.1,"ms":1})" << "\n";
    return scratch.path() / name;
  };
  for (const char* name : {"a", "b"}) fs::create_directories(scratch.path() / name);
  const auto found = drift(older("a", "5.25"), older("b", "5.5"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->drift_class, DriftClass::beyond) << "the second step is read too";
}

// Its eager runs differ within one run already.
TEST(Drift, ACaseWithAToleranceHasTheBoundOfItsRoundings) {
  const record::ScratchFolder scratch;
  const auto attempt = [&](const char* folder, const char* loss) {
    const fs::path made = attempt_in(scratch.path() / folder, loss, loss, "");
    std::ofstream(made / "rank-0.evidence.jsonl", std::ios::app)
        << R"({"kind":"distances","compared":"eager_repeats","tensors":[{"tensor":"grad:a",)"
        << R"("largest":1000},{"tensor":"losses","largest":5}],"rounding":0.0002})" << "\n";
    return made;
  };
  const fs::path before = attempt("a", "5.25");
  EXPECT_EQ(drift(before, attempt("b", "5.2509"))->drift_class, DriftClass::tolerance);
  EXPECT_EQ(drift(before, attempt("c", "5.2511"))->drift_class, DriftClass::beyond);
}

TEST(Drift, ACaseWithoutABoundIsBeyondAndSaysSo) {
  const record::ScratchFolder scratch;
  const auto found = drift(attempt_in(scratch.path() / "a", "5.25", "aa", ""),
                           attempt_in(scratch.path() / "b", "5.2501", "bb", ""));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->drift_class, DriftClass::beyond);
  EXPECT_NE(found->what.find("no bound"), std::string::npos) << found->what;
}

TEST(Drift, WithoutEvidenceOrWithOtherRanksThereIsNone) {
  const record::ScratchFolder scratch;
  const fs::path one = attempt_in(scratch.path() / "a", "5.25", "aa");
  EXPECT_FALSE(drift(one, scratch.path() / "absent"));
  const fs::path two = attempt_in(scratch.path() / "b", "5.25", "aa");
  fs::copy(two / "rank-0.evidence.jsonl", two / "rank-1.evidence.jsonl");
  EXPECT_FALSE(drift(one, two));
}

}  // namespace
}  // namespace graphproof::reports
