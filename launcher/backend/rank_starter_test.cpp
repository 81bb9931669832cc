// graphproof-start as the launcher uses it: as a program.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "launcher/backend/starter_log.h"
#include "launcher/host/child.h"
#include "launcher/host/processes.h"
#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

struct RankStarterTest : testing::Test {
  /// `ranks` shells that run `script`.
  Command starting(int ranks, const std::string& script) const {
    const fs::path starter = fs::read_symlink("/proc/self/exe").parent_path() / "graphproof-start";
    return {{starter, std::to_string(ranks), "/bin/sh", "-c", script},
            {{"PATH", "/usr/bin:/bin"}, {kMarkVariable, mark}, {"HERE", scratch.path()}}};
  }
  static Output ended(const Command& command) { return run_to_end(command, 20000); }
  bool none_left() const {
    for (int look = 0; look < 500 && !processes_of(0, mark).empty(); ++look)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return processes_of(0, mark).empty();
  }

  const record::ScratchFolder scratch{"/tmp"};
  const std::string mark = "starter-test-" + std::to_string(getpid());
};

TEST_F(RankStarterTest, EveryRankKnowsItsPlace) {
  const Output output = ended(starting(3,
                                       "echo $GRAPHPROOF_RANK $GRAPHPROOF_LOCAL_RANK "
                                       "$GRAPHPROOF_WORLD_SIZE >\"$HERE/$GRAPHPROOF_RANK\""));
  EXPECT_EQ(output.exit, Exit{}) << output.error;
  EXPECT_EQ(output.error, "");
  for (const char* rank : {"0", "1", "2"})
    EXPECT_EQ(record::read_text(scratch.path() / rank), std::string(rank) + " " + rank + " 3\n");
}

struct Bad {
  const char* script;
  int code;
  record::Exit exit;
};

TEST_F(RankStarterTest, TheFirstRankThatFailsIsNamedAndTheOthersAreEnded) {
  const Bad rows[] = {
      {"[ $GRAPHPROOF_RANK = 1 ] && exit 7; exec sleep 60", 7, {"exited", 7}},
      {"[ $GRAPHPROOF_RANK = 1 ] && kill -SEGV $$; exec sleep 60",
       128 + SIGSEGV,
       {"signal", SIGSEGV}},
      {"[ $GRAPHPROOF_RANK = 1 ] && exit 3; trap '' TERM; while :; do sleep 0.1; done",
       3,
       {"exited", 3}}};
  for (const Bad& row : rows) {
    const Output output = ended(starting(3, row.script));
    EXPECT_FALSE(output.timed_out) << row.script;
    EXPECT_EQ(output.exit, (Exit{false, row.code})) << row.script;
    const StarterReport report = read_starter_log(output.error);
    EXPECT_EQ(report.rank, 1) << output.error;
    EXPECT_EQ(report.exit, row.exit) << output.error;
    EXPECT_FALSE(report.infra);
    EXPECT_TRUE(none_left()) << row.script;
  }
}

TEST_F(RankStarterTest, AProgramThatIsNotThereIsALaunchThatFailed) {
  Command command = starting(2, "");
  command.arguments = {command.arguments[0], "2", "/nonexistent/rank", "batch.json"};
  const Output output = ended(command);
  EXPECT_EQ(output.exit, (Exit{false, 127}));
  ASSERT_TRUE(read_starter_log(output.error).infra) << output.error;
  EXPECT_EQ(read_starter_log(output.error).infra->kind, "launch");
  EXPECT_NE(read_starter_log(output.error)
                .infra->why.find("could not start /nonexistent/rank: No such file"),
            std::string::npos);
}

TEST_F(RankStarterTest, AskedToEndItEndsItsRanksAndKilledItLeavesNone) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    Child child(
        starting(2, "trap '' TERM; : >\"$HERE/up-$GRAPHPROOF_RANK\"; while :; do sleep 0.1; done"),
        scratch.path() / "log");
    for (const char* up : {"up-0", "up-1"})
      for (int look = 0; look < 1000 && !fs::exists(scratch.path() / up); ++look)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    child.kill(signal);
    for (int look = 0; look < 1000 && !child.poll(); ++look)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_TRUE(child.poll()) << signal;
    EXPECT_EQ(*child.poll(), (Exit{true, signal}));
    EXPECT_TRUE(none_left()) << signal;
  }
}

TEST_F(RankStarterTest, RanksThatCannotBeCountedAreAUsageError) {
  for (const char* ranks : {"0", "-1", "many", ""}) {
    Command command = starting(1, "exit 0");
    command.arguments[1] = ranks;
    EXPECT_EQ(ended(command).exit, (Exit{false, 2})) << ranks;
  }
}

}  // namespace
}  // namespace graphproof::launcher
