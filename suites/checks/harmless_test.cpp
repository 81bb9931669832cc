#include "suites/checks/harmless.h"

#include <gtest/gtest.h>

#include "suites/checks/check_table.h"
#include "suites/checks/testing/clean_attempt.h"

namespace graphproof::checks {
namespace {

class HarmlessTest : public testing::Test {
 protected:
  /// Each rank with two failed captures that left `bytes`.
  Attempt attempt(const char* fault, std::int64_t bytes, int code = 900) const {
    Attempt made = clean_attempt(
        catalogue_, {{"impl", "full_iteration"}, {"tp", 2}, {"microbatches", 2}, {"fault", fault}});
    for (const int rank : {0, 1})
      for (int time = 0; time < 2; ++time)
        add(made, rank,
            {{"kind", "failed_capture"},
             {"arm", "lockstep_graph"},
             {"graph", "training"},
             {"code", code},
             {"site", "aten::item"},
             {"message", "m"},
             {"pool_bytes", bytes}});
    return made;
  }
  inline static const matrix::Catalogue catalogue_ = matrix::load_catalogue();
};

TEST_F(HarmlessTest, FailedCapturesThatLeftNothingAreTheEvidence) {
  EXPECT_EQ(harmless_because(attempt("M19", 0)),
            "4 captures failed and were undone, and each left 0 bytes in its pool");
  EXPECT_EQ(judge(attempt("M19", 0), catalogue_.checks).harmless_because,
            harmless_because(attempt("M19", 0)));
}

TEST_F(HarmlessTest, NothingIsHarmlessWithoutEvidence) {
  EXPECT_EQ(harmless_because(attempt("M19", 2097152)), "") << "it bites";
  EXPECT_EQ(harmless_because(attempt("M19", 0, /*code=*/0)), "") << "no capture failed";
  EXPECT_EQ(harmless_because(attempt("M23", 0)), "") << "another fault";
  EXPECT_EQ(harmless_because(attempt("none", 0)), "") << "no fault";
  Attempt half = attempt("M19", 0);
  erase(half, {.rank = 1, .kind = "failed_capture"});
  EXPECT_EQ(harmless_because(half), "") << "one rank has no such line";
}

}  // namespace
}  // namespace graphproof::checks
