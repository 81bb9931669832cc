#include "launcher/host/cgroup.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>

#include "launcher/host/child.h"
#include "launcher/host/ending.h"
#include "launcher/host/processes.h"
#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

struct CgroupTest : testing::Test {
  std::string mark = "cgroup-test-" + std::to_string(getpid());
};

/// Where this process may make no group, there is nothing to look into, and a batch starts without
/// one.
void expect_to_do_without(const std::string& mark) {
  const record::ScratchFolder scratch;
  EXPECT_TRUE(cgroups_of(mark).empty());
  EXPECT_TRUE(cgroup_members(mark).empty());
  kill_cgroups(mark);
  remove_cgroups(mark + ".");
  Child child({{"/bin/sh", "-c", "exit 3"}, {{"PATH", "/usr/bin:/bin"}}}, scratch.path() / "log",
              {}, {});
  for (int look = 0; look < 500 && !child.poll(); ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(child.poll(), (Exit{false, 3}));
}

// Neither the session nor the environment of this process shows to which batch it belongs.
TEST_F(CgroupTest, AProcessThatHidesIsFoundAndEnded) {
  const record::ScratchFolder scratch;
  {
    const auto group = Cgroup::make(mark);
    if (!group) return expect_to_do_without(mark);
    Child child({{"/bin/sh", "-c", "env -i setsid sleep 600 & exit 0"},
                 {{"PATH", "/usr/bin:/bin"}, {kMarkVariable, mark}}},
                scratch.path() / "log", {}, group->folder());
    for (int look = 0; look < 500 && (!child.poll() || cgroup_members(mark).size() != 1); ++look)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::vector<Process> left = processes_of(child.pid(), mark);
    for (int look = 0; look < 500 && (left.empty() || left[0].command != "sleep");
         ++look, left = processes_of(child.pid(), mark))
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_EQ(left.size(), 1u);
    EXPECT_EQ(left[0].command, "sleep");
    EXPECT_NE(left[0].session, child.pid());
    EXPECT_TRUE(processes_of(0, mark + "0.").empty()) << "another run's";
    kill_cgroups(mark);
    for (int look = 0; look < 500 && !cgroup_members(mark).empty(); ++look)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(cgroup_members(mark).empty());
  }
  EXPECT_TRUE(cgroups_of(mark).empty()) << "an empty group goes with its owner";
}

/// From here on clone3 fails for this process and what it starts, as with the filter of an older
/// container.
bool refuse_clone3() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof program / sizeof program[0], program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// Runs in a process of its own, because a filter cannot be removed.
TEST_F(CgroupTest, WhereClone3IsRefusedAChildEntersItsGroupByItself) {
  const record::ScratchFolder scratch;
  const auto group = Cgroup::make(mark);
  if (!group) return expect_to_do_without(mark);
  enum { kInGroup, kNotInGroup, kNoFilter, kThrew };
  const pid_t filtered = fork();
  if (filtered == 0) {
    int answer = kThrew;
    try {
      if (!refuse_clone3()) _exit(kNoFilter);
      Child child({{"/bin/sleep", "600"}, {{"PATH", "/usr/bin:/bin"}}}, scratch.path() / "log", {},
                  group->folder());
      const std::vector<int> members = cgroup_members(mark);
      answer = syscall(SYS_clone3, nullptr, 0) == -1 && errno == ENOSYS &&
                       std::count(members.begin(), members.end(), child.pid()) == 1
                   ? kInGroup
                   : kNotInGroup;
    } catch (const std::exception&) {
    }
    _exit(answer);
  }
  int status = 0;
  ASSERT_EQ(waitpid(filtered, &status, 0), filtered);
  kill_cgroups(mark);
  for (int look = 0; look < 500 && !cgroup_members(mark).empty(); ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), kInGroup);
}

// Until it begins its program, a child shares this process's memory and stack.
TEST_F(CgroupTest, AChildThatCannotStartInItsGroupIsNamedAndTheNextOneStarts) {
  const record::ScratchFolder scratch;
  const auto group = Cgroup::make(mark);
  if (!group) return expect_to_do_without(mark);
  const fs::path broken = scratch.path() / "broken";
  record::write_atomically(broken, "no program");
  fs::permissions(broken, fs::perms::owner_all);
  for (int start = 0; start < 20; ++start) {
    try {
      Child({{broken}, {}}, scratch.path() / "log", {}, group->folder());
      FAIL() << "started";
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.what(), "can't start '" + broken.string() + "': Exec format error");
    }
    Child child({{"/bin/sleep", "600"}, {}}, scratch.path() / "log", {}, group->folder());
    EXPECT_EQ(cgroup_members(mark), std::vector<int>{child.pid()});
  }
}

TEST_F(CgroupTest, OfARunAllGroupsAreFoundAndTheEmptyOnesRemoved) {
  const auto one = Cgroup::make(mark + ".b001"), other = Cgroup::make(mark + ".b002"),
             another = Cgroup::make(mark + "x.b001");
  if (!one) return expect_to_do_without(mark);
  EXPECT_EQ(cgroups_of(mark + ".").size(), 2u);
  remove_cgroups(mark + ".");
  EXPECT_EQ(cgroups_of(mark + ".").size(), 0u);
  EXPECT_EQ(cgroups_of(mark + "x.").size(), 1u);
}

}  // namespace
}  // namespace graphproof::launcher
