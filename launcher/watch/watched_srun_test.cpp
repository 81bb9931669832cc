// Commands whose processes do not descend from the launcher: srun on a Slurm of the test's own,
// whose nodes share this host. The launcher runs in a process of its own, because it ends all that
// descends from it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include "launcher/cluster/testing/own_slurm.h"
#include "launcher/watch/command_processes.h"
#include "launcher/watch/probe_look.h"
#include "launcher/watch/watch.h"
#include "launcher/watch/watched_command.h"
#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

struct WatchedSrunTest : testing::Test {
  void SetUp() override {
    ASSERT_EQ(cluster::OwnSlurm::missing(), "") << "./graphproof installs it";
    fs::create_directories(probes);
    slurm.emplace(cluster::OwnSlurm::Size{.nodes = 2});
  }
  void TearDown() override { EXPECT_EQ(running(), 0) << "processes are left"; }

  /// Watches a line of shell that every task of two nodes runs.
  record::WatchedRun watch(const std::string& script) {
    return watch(
        std::vector<std::string>{"srun", "-N2", "--ntasks-per-node=1", "sh", "-c", script});
  }
  record::WatchedRun watch(std::vector<std::string> words) {
    const pid_t pid = fork();
    if (pid == 0) {
      Environment environment = slurm->environment();
      environment["GRAPHPROOF_PROBE_DIR"] = probes;
      const fs::path fake =
          fs::path(std::getenv("GRAPHPROOF_BIN")).parent_path() / "tests/graphproof_fake_watched";
      environment["FAKE"] = fake;
      record::WatchedRun run{.id = "test", .folder = "/", .host = "here", .started = "now"};
      run_watched_command({.command = {std::move(words), environment},
                           .folder = scratch.path(),
                           .probe = "/probe",
                           .hang_after_ms = 3000,
                           .notice = {}},
                          run);
      record::write_json(scratch.path() / "run.json", record::to_json(run));
      _exit(0);
    }
    int status = 0;
    for (int look = 0; look < 600 && waitpid(pid, &status, WNOHANG) == 0; ++look)
      std::this_thread::sleep_for(100ms);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    const fs::path file = scratch.path() / "run.json";
    return record::watched_run_from(record::read_json(file), file);
  }

  /// The fake programs that still run, whatever host they say they run on.
  int running() const {
    int count = 0;
    for (const ProbeLook& probe : look_at_probes(probes))
      count += start_ticks(static_cast<int>(probe.pid)) == probe.start_ticks;
    return count;
  }

  const record::ScratchFolder scratch{"/tmp"};
  const fs::path probes = scratch.path() / "probe";
  std::optional<cluster::OwnSlurm> slurm;
};

TEST_F(WatchedSrunTest, TasksThatEndWellAreWatched) {
  const record::WatchedRun run = watch("exec $FAKE exit 0");
  EXPECT_EQ(run.ending, "exited");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_TRUE(run.notes.empty()) << run.notes.front();
  EXPECT_EQ(look_at_probes(probes).size(), 2u);
}

TEST_F(WatchedSrunTest, AHangOfTasksOnThisHostIsFoundAndEnded) {
  const record::WatchedRun run = watch("exec $FAKE wait");
  EXPECT_EQ(run.ending, "hung") << run.why;
  ASSERT_EQ(run.waiting.size(), 2u);
  EXPECT_EQ(run.waiting[0].call, "cuStreamSynchronize");
  EXPECT_TRUE(fs::exists(scratch.path() / "hang" / (run.waiting[0].process + ".threads")));
  EXPECT_EQ(running(), 0);
  EXPECT_TRUE(slurm->empty_within(20s)) << slurm->queue();
}

TEST_F(WatchedSrunTest, AHangOfTasksOnOtherHostsNamesEach) {
  const record::WatchedRun run =
      watch("GRAPHPROOF_FAKE_HOST=other-$SLURMD_NODENAME exec $FAKE wait");
  EXPECT_EQ(run.ending, "hung") << run.why;
  std::set<std::string> hosts;
  for (const record::WaitingThread& waiting : run.waiting)
    hosts.insert(waiting.process.substr(0, waiting.process.find('.')));
  EXPECT_EQ(hosts, (std::set<std::string>{"other-n1", "other-n2"}));
  ASSERT_EQ(run.notes.size(), 1u);
  EXPECT_EQ(run.notes[0],
            "the end of processes on other-n1, other-n2: what started them was ended; whether they "
            "have ended is not seen");
  EXPECT_TRUE(slurm->empty_within(20s)) << slurm->queue();
}

/// The lines of --attach-only, set by each task where its node starts it with an environment of its
/// own.
TEST_F(WatchedSrunTest, LinesThatAreSetByHandWatchTheTasksOfEveryNode) {
  const fs::path programs = scratch.path() / "bin", lines = scratch.path() / "lines.sh";
  fs::create_directories(programs);
  std::ofstream(programs / "libgraphproof-probe.so") << "only its path is used";
  const PreparedWatch prepared = prepare_watch({.command = {},
                                                .runs = scratch.path() / "runs",
                                                .run_dir = (scratch.path() / "attached").string(),
                                                .programs = programs});
  std::ofstream(lines) << in_form(EnvironmentForm::shell, prepared.variables, prepared.folder);
  const fs::path fake =
      fs::path(std::getenv("GRAPHPROOF_BIN")).parent_path() / "tests/graphproof_fake_watched";
  slurm->command({"srun", "--export=NONE", "-N2", "--ntasks-per-node=1", "/bin/sh", "-c",
                  ". " + lines.string() + "; GRAPHPROOF_FAKE_HOST=$SLURMD_NODENAME exec " +
                      fake.string() + " exit 0"});
  std::set<std::string> hosts;
  for (const ProbeLook& probe : look_at_probes(prepared.folder / record::kProbeFolder))
    hosts.insert(probe.host);
  EXPECT_EQ(hosts, (std::set<std::string>{"n1", "n2"}));
}

/// The tasks begin without the variables, so nothing of them is seen.
TEST_F(WatchedSrunTest, TasksWithoutTheEnvironmentAreNamed) {
  const record::WatchedRun run =
      watch({"srun", "--export=NONE", "-N2", "--ntasks-per-node=1", "/bin/sh", "-c", "true"});
  EXPECT_EQ(run.exit_code, 0);
  ASSERT_TRUE(run.elsewhere);
  EXPECT_EQ(run.elsewhere->at(0).by, "srun --export=NONE");
  EXPECT_NE(run.elsewhere->at(0).next.find("--export=ALL"), std::string::npos);
}

TEST_F(WatchedSrunTest, AJobOfSbatchIsWatchedIfItEndsBeforeTheCommand) {
  const auto job = [&](const char* script) {
    return watch({"sbatch", "--wait", "--output=/dev/null", "--wrap", script});
  };
  const record::WatchedRun watched = job("exec $FAKE exit 0");
  EXPECT_EQ(watched.exit_code, 0);
  EXPECT_FALSE(watched.elsewhere);
  EXPECT_EQ(look_at_probes(probes).size(), 1u);
  fs::remove_all(probes);
  fs::create_directories(probes);
  const record::WatchedRun unseen = job("true");
  EXPECT_EQ(unseen.exit_code, 0);
  ASSERT_TRUE(unseen.elsewhere) << "whether the job used CUDA is not known";
  EXPECT_EQ(unseen.elsewhere->at(0).by, "sbatch");
}

TEST_F(WatchedSrunTest, OneOfTwoTasksThatComputesIsNoHang) {
  const record::WatchedRun run =
      watch("if [ $SLURM_NODEID = 0 ]; then exec $FAKE steps 60; fi; exec timeout 5 $FAKE wait");
  EXPECT_NE(run.ending, "hung") << run.why;
}

}  // namespace
}  // namespace graphproof::launcher
