#include "launcher/cgroup.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "launcher/child.h"
#include "launcher/ending.h"
#include "launcher/processes.h"
#include "reports/record/scratch_folder.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

struct CgroupTest : testing::Test {
  std::string mark = "cgroup-test-" + std::to_string(getpid());
};

/// Where this process may make no group, there is none to look into, and a batch starts without.
void expect_to_do_without(const std::string& mark) {
  const record::ScratchFolder scratch;
  EXPECT_TRUE(cgroups_of(mark).empty());
  EXPECT_TRUE(cgroup_members(mark).empty());
  kill_cgroups(mark);
  remove_cgroups(mark + ".");
  Child child({{"/bin/sh", "-c", "exit 3"}, {{"PATH", "/usr/bin:/bin"}}}, scratch.path() / "log", {}, {});
  for (int look = 0; look < 500 && !child.poll(); ++look) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(child.poll(), (Exit{false, 3}));
}

// Neither its session nor its environment tells whose this process is.
TEST_F(CgroupTest, AProcessThatHidesIsFoundAndEnded) {
  const record::ScratchFolder scratch;
  {
    const auto group = Cgroup::make(mark);
    if (!group) return expect_to_do_without(mark);
    Child child({{"/bin/sh", "-c", "env -i setsid sleep 600 & exit 0"}, {{"PATH", "/usr/bin:/bin"}, {kMarkVariable, mark}}}, scratch.path() / "log", {},
                group->folder());
    for (int look = 0; look < 500 && (!child.poll() || cgroup_members(mark).size() != 1); ++look) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::vector<Process> left = processes_of(child.pid(), mark);
    for (int look = 0; look < 500 && (left.empty() || left[0].command != "sleep"); ++look, left = processes_of(child.pid(), mark))
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_EQ(left.size(), 1u);
    EXPECT_EQ(left[0].command, "sleep");
    EXPECT_NE(left[0].session, child.pid());
    EXPECT_TRUE(processes_of(0, mark + "0.").empty()) << "another run's";
    kill_cgroups(mark);
    for (int look = 0; look < 500 && !cgroup_members(mark).empty(); ++look) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(cgroup_members(mark).empty());
  }
  EXPECT_TRUE(cgroups_of(mark).empty()) << "an empty group goes with its owner";
}

TEST_F(CgroupTest, OfARunAllGroupsAreFoundAndTheEmptyOnesRemoved) {
  const auto one = Cgroup::make(mark + ".b001"), other = Cgroup::make(mark + ".b002"), another = Cgroup::make(mark + "x.b001");
  if (!one) return expect_to_do_without(mark);
  EXPECT_EQ(cgroups_of(mark + ".").size(), 2u);
  remove_cgroups(mark + ".");
  EXPECT_EQ(cgroups_of(mark + ".").size(), 0u);
  EXPECT_EQ(cgroups_of(mark + "x.").size(), 1u);
}

}  // namespace
}  // namespace graphproof::launcher
