// The Slurm of the tests is a real one, and behaves as the commands of this project assume.
#include "launcher/cluster/testing/own_slurm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "reports/record/text/file.h"

namespace graphproof::cluster {
namespace {

namespace fs = std::filesystem;

struct OwnSlurmTest : testing::Test {
  void SetUp() override { ASSERT_EQ(OwnSlurm::missing(), "") << "./graphproof installs it"; }
};

std::vector<std::string> lines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST_F(OwnSlurmTest, NodesHaveGpusThatJobsSeeAndLease) {
  const OwnSlurm slurm({.nodes = 2, .gpus = 2});
  EXPECT_EQ(
      lines(slurm.command({"srun", "-N2", "--gres=gpu:2", "printenv", "CUDA_VISIBLE_DEVICES"})),
      (std::vector<std::string>{"0,1", "0,1"}));
  EXPECT_EQ(lines(slurm.command({"srun", "-N1", "--ntasks=2", "--gpus-per-task=1",
                                 "--gpu-bind=single:1", "printenv", "CUDA_VISIBLE_DEVICES"})),
            (std::vector<std::string>{"0", "1"}));
  EXPECT_TRUE(slurm.empty_within(std::chrono::seconds(10)));
}

// Without --kill-on-bad-exit the others would go on, as was seen with six ranks that ran for ten
// minutes.
TEST_F(OwnSlurmTest, AStepEndsWithItsFirstFailedTaskOnlyIfAsked) {
  const OwnSlurm slurm({.nodes = 2, .gpus = 1});
  const auto run = [&](const char* kill_on_bad_exit, const char* goes_on_after_s) {
    // Slurm ends the processes of a step one after the other: `sleep` may be gone before its shell.
    const std::string script = std::string("if [ $SLURM_NODEID = 1 ]; then exit 3; fi; sleep ") +
                               goes_on_after_s + " && echo went on";
    return launcher::run_to_end(
        {{"srun", "-N2", "--ntasks-per-node=1", kill_on_bad_exit, "sh", "-c", script},
         slurm.environment()},
        60000);
  };
  EXPECT_EQ(run("--kill-on-bad-exit=0", "2").out, "went on\n");
  // This is longer than Slurm needs to notify the other node on a busy machine.
  EXPECT_EQ(run("--kill-on-bad-exit=1", "45").out, "");
}

/// Several nodes share this host, and they are started one after another in the same minute. Each
/// row is a fault that was seen where one of them met another, or the files of another Slurm.
TEST_F(OwnSlurmTest, ItsNodesShareAHostAndMeetNowhere) {
  const OwnSlurm slurm({.nodes = 2, .gpus = 2});
  const fs::path etc = fs::path(slurm.environment().at("SLURM_CONF")).parent_path(),
                 top = etc.parent_path();
  const std::string conf = record::read_text(etc / "slurm.conf"),
                    cgroup = record::read_text(etc / "cgroup.conf");
  const auto has = [](const std::string& text, const std::string& line) {
    return ("\n" + text).find("\n" + line + "\n") != text.npos;
  };
  EXPECT_TRUE(has(conf, "TmpFS=" + (top / "tmp-%n").string()))
      << "PMIx makes its folder there, once: \"Cannot create directory\"";
  EXPECT_TRUE(has(conf, "SlurmdSpoolDir=" + (top / "spool-%n").string()))
      << "job ids begin at 1 again, and met the sockets of earlier ones";
  for (const char* of_its_own : {"state", "spool-n1", "spool-n2", "tmp-n1", "tmp-n2"})
    EXPECT_TRUE(fs::is_directory(top / of_its_own)) << of_its_own;
  EXPECT_TRUE(has(cgroup, "CgroupPlugin=cgroup/v1") && has(cgroup, "CgroupAutomount=no"))
      << "`disabled` is not known before 23.x";
  std::istringstream gres(record::read_text(etc / "gres.conf"));
  int gpus = 0;
  for (std::string word; gres >> word;) {
    if (!word.starts_with("File=")) continue;
    ++gpus;
    EXPECT_TRUE(fs::is_character_file(word.substr(5)))
        << word << ": of a plain file no job sees CUDA_VISIBLE_DEVICES";
  }
  EXPECT_EQ(gpus, 2);
}

TEST_F(OwnSlurmTest, ItLeavesNothingBehind) {
  std::string configuration;
  {
    const OwnSlurm slurm({.nodes = 1});
    configuration = slurm.environment().at("SLURM_CONF");
    EXPECT_TRUE(std::filesystem::exists(configuration));
  }
  EXPECT_FALSE(std::filesystem::exists(configuration));
}

}  // namespace
}  // namespace graphproof::cluster
