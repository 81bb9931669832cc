#include <gtest/gtest.h>

#include "suites/checks/process/log_signatures.h"
#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

TEST(LogSignatures, FindTheirExampleAndLeaveTheBenignLineAlone) {
  for (const LogSignature& signature : log_signatures()) {
    SCOPED_TRACE(signature.name);
    const auto hits = scan_log(signature.example, 10);
    ASSERT_EQ(hits.size(), 1u);
    EXPECT_EQ(hits.front().signature->name, signature.name);
    EXPECT_TRUE(scan_log(signature.benign, 10).empty())
        << scan_log(signature.benign, 10).front().signature->name;
    EXPECT_FALSE(signature.why.empty());
  }
}

TEST(LogSignatures, LeaveWhatHealthyRanksSayAlone) {
  for (const char* line :
       {"node1:4710:4710 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>",
        "node1:4710:4720 [0] NCCL INFO Channel 00/16 : 0 1 2 3", "NCCL version 2.28.9+cuda13.0",
        "[W1121 graph.cpp:12] Warning: expandable_segments not supported on this platform "
        "(function operator())",
        "case 9d2c0f6a1b3e4d57, rank 0: 5 steps, no error", "libnccl.so.2 => /opt/lib/libnccl.so.2",
        ""}) {
    EXPECT_TRUE(scan_log(line, 1).empty()) << line;
  }
}

TEST(LogSignatures, SeeASignatureFarOutInALongLine) {
  const std::string line = std::string(100000, 'x') + " CUDA error: unknown";
  EXPECT_EQ(scan_log(line, 1).size(), 1u);
  EXPECT_LT(scan_log(line, 1).front().line.size(), 300u);
}

TEST(LogSignatures, NumberLinesAndStopAtTheLimit) {
  const auto hits = scan_log("well\nCUDA error: a\nwell\nCUDA error: b\nCUDA error: c\n", 2);
  ASSERT_EQ(hits.size(), 2u);
  EXPECT_EQ(hits[0].line_number, 2u);
  EXPECT_EQ(hits[1].line_number, 4u);
}

TEST(LogClean, Rows) {
  judge_rows(
      "D21.log_clean", {{"impl", "none"}, {"tp", 2}},
      {
          {.name = "an error in a log",
           .change =
               [](Attempt& a) { *a.ranks[1].log += "x NCCL WARN Cuda failure 'out of memory'\n"; },
           .rank = 1,
           .mentions = {"the log of rank 1 names an error (nccl_warn)", "line 3: x NCCL WARN",
                        "NCCL reports"}},
          {.name = "no log",
           .change = [](Attempt& a) { a.ranks[0].log.reset(); },
           .rank = 0,
           .mentions = {"the log of rank 0 is missing"}},
      });
}

TEST(LogClean, ASilentLogIsClean) {
  EXPECT_EQ(
      judge_one("D21.log_clean", nlohmann::json::object(), [](Attempt& a) { a.ranks[0].log = ""; })
          .result,
      record::Result::pass);
}

}  // namespace
}  // namespace graphproof::checks
