#include "reports/analysis/divergence.h"

#include <gtest/gtest.h>

#include <fstream>

#include "reports/record/evidence/evidence.h"
#include "reports/record/testing/scratch_folder.h"

namespace graphproof::reports {
namespace {

namespace fs = std::filesystem;

struct Divergence : testing::Test {
  void leaves(int rank, const std::string& fields) const {
    fs::create_directories(divergence_folder(attempt));
    std::ofstream(divergence_folder(attempt) / record::evidence_file_name(rank))
        << R"({"kind":"divergence","left":"divergence_eager","right":"divergence_graph","step":3,)"
        << fields << "}\n";
  }
  static std::string differs(const std::string& module, int taps) {
    return R"("found":true,"microbatch":1,"layer":0,"module":")" + module +
           R"(","direction":"forward","operator":"aten::mul","taps":)" + std::to_string(taps) +
           R"(,"mismatch":{"tensor":"aten::mul","element":17,"left":0.125,"right":0.25,)" +
           R"("max_abs":0.125,"max_rel":0.5,"max_ulp":8388608,"elements":2048,)" +
           R"("differing":190},"why":"")";
  }
  static std::string agrees(const std::string& why) {
    return R"("found":false,"microbatch":-1,"layer":-1,"module":"","direction":"","operator":"",)"
           R"("taps":400,"mismatch":null,"why":")" +
           why + "\"";
  }
  record::ScratchFolder scratch;
  const fs::path attempt = scratch.path();
};

TEST_F(Divergence, NamesTheRankThatIsFirstInTheOrderOfTheStep) {
  leaves(0, differs("mlp", 30));
  leaves(1, differs("attn", 12));
  EXPECT_EQ(divergence_text(attempt, 2),
            "rank 1, step 3, microbatch 1, layer 0, attn, forward, aten::mul, element 17: eager "
            "0.125, graph 0.25 "
            "(190 of 2048 elements differ; 11 results before it agree)");
}

TEST_F(Divergence, NamesTheStageThatMadeATensorAndNotTheOneThatReceivedIt) {
  leaves(0, differs("mlp", 30));
  leaves(1, differs("transfer", 12));
  EXPECT_EQ(divergence_text(attempt, 2).substr(0, 28), "rank 0, step 3, microbatch 1");
  leaves(0, differs("transfer", 30));
  EXPECT_EQ(divergence_text(attempt, 2).substr(0, 28), "rank 1, step 3, microbatch 1")
      << "where all have received it";
}

TEST_F(Divergence,
       AWrittenTensorOfTheStepIsNamedBesideItsOperatorAndWhatIsOutsideTheLayersIsLeftOut) {
  leaves(0, R"("found":true,"microbatch":-1,"layer":-1,"module":"optimizer","direction":"",)"
            R"("operator":"aten::addcmul_","taps":1,)"
            R"("mismatch":{"tensor":"param:embedding.weight","element":0,"left":1,"right":"nan",)"
            R"("max_abs":0,"max_rel":0,"max_ulp":0,"elements":8,"differing":8},"why":"")");
  EXPECT_EQ(divergence_text(attempt, 1),
            "rank 0, step 3, optimizer, aten::addcmul_ into param:embedding.weight, element 0: "
            "eager 1.0, graph nan (8 of 8 "
            "elements differ; 0 results before it agree)");
}

TEST_F(Divergence, AnOperatorThatTheGraphDoesNotHoldIsNamedWithTheReason) {
  leaves(0, R"("found":true,"microbatch":0,"layer":0,"module":"mlp","direction":"forward",)"
            R"("operator":"aten::add","taps":40,"mismatch":null,)"
            R"("why":"the graph holds no such operator")");
  EXPECT_EQ(divergence_text(attempt, 1),
            "rank 0, step 3, microbatch 0, layer 0, mlp, forward, aten::add: the graph holds no "
            "such operator");
}

TEST_F(Divergence, WithoutADifferenceItSaysWhyAndWithoutALineThatTheRunFailed) {
  EXPECT_EQ(divergence_text(attempt, 2), "") << "nobody looked";
  fs::create_directories(divergence_folder(attempt));
  EXPECT_NE(divergence_text(attempt, 2).find("not found: the run that searched for it failed"),
            std::string::npos);
  leaves(0, agrees("a race"));
  EXPECT_EQ(divergence_text(attempt, 2), "none: a race");
}

}  // namespace
}  // namespace graphproof::reports
