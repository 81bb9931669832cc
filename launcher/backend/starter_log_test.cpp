// The texts are those that Open MPI 4.1.4 and rank_starter.cpp print.
#include "launcher/backend/starter_log.h"

#include <gtest/gtest.h>

namespace graphproof::launcher {
namespace {

struct Row {
  const char* text;
  int rank;
  record::Exit exit;
};

const Row kRows[] = {
    {"--------------------------------------------------------------------------\n"
     "Primary job  terminated normally, but 1 process returned\na non-zero exit code. Per "
     "user-direction, the job has been aborted.\n"
     "--------------------------------------------------------------------------\n"
     "mpirun detected that one or more processes exited with non-zero status, thus causing\nthe "
     "job to be terminated. The first process to do so was:\n\n"
     "  Process name: [[36113,1],1]\n  Exit code:    7\n",
     1,
     {"exited", 7}},
    {"mpirun noticed that process rank 3 with PID 4711 on node n1 exited on signal 11 "
     "(Segmentation fault).\n",
     3,
     {"signal", 11}},
    {"MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\nwith errorcode 5.\n\n"
     "NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.\n",
     2,
     {"exited", 5}},
    {"noise\ngraphproof-start: rank 1 with PID 4711 ended by signal 11 (Segmentation fault)\n",
     1,
     {"signal", 11}},
    {"graphproof-start: rank 12 with PID 9 ended with exit code 7\n", 12, {"exited", 7}},
};

TEST(StarterLogTest, TheFirstRankThatFailedIsNamed) {
  for (const Row& row : kRows) {
    const StarterReport report = read_starter_log(row.text);
    EXPECT_EQ(report.rank, row.rank) << row.text;
    EXPECT_EQ(report.exit, row.exit) << row.text;
    EXPECT_FALSE(report.infra) << row.text;
  }
}

TEST(StarterLogTest, ALaunchThatFailedIsInfrastructureAndSaysWhy) {
  const StarterReport report = read_starter_log(
      "--------------------------------------------------------------------------\n"
      "There are not enough slots available in the system to satisfy the 64\nslots that were "
      "requested by the application:\n\n"
      "  ./rank\n");
  ASSERT_TRUE(report.infra);
  EXPECT_EQ(report.infra->kind, "launch");
  EXPECT_EQ(report.infra->why,
            " There are not enough slots available in the system to satisfy the 64 slots that were "
            "requested by the application:");
  EXPECT_EQ(
      read_starter_log("graphproof-start could not start /bin/rank: No such file or directory\n")
          .infra->kind,
      "launch");
}

TEST(StarterLogTest, AQuietLogSaysNothing) {
  const StarterReport report = read_starter_log("");
  EXPECT_FALSE(report.rank || report.exit || report.infra);
}

}  // namespace
}  // namespace graphproof::launcher
