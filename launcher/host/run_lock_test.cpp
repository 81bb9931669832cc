#include "launcher/host/run_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "matrix/input/input_error.h"
#include "reports/record/testing/scratch_folder.h"

namespace graphproof::launcher {
namespace {

TEST(RunLockTest, ASecondLauncherIsRefusedWithTheFirstOnesProcess) {
  const record::ScratchFolder folder;
  EXPECT_EQ(RunLock::owner(folder.path()), std::nullopt);
  const RunLock first(folder.path());
  const std::string pid = "process " + std::to_string(getpid()) + " on ";
  EXPECT_EQ(RunLock::owner(folder.path()).value_or("").rfind(pid, 0), 0u);
  try {
    const RunLock second(folder.path());
    FAIL() << "the second launcher was let in";
  } catch (const matrix::InputError& error) {
    EXPECT_EQ(error.problem().what, "another launcher runs in this folder");
    EXPECT_EQ(error.problem().got.rfind(pid, 0), 0u) << error.problem().got;
    EXPECT_NE(error.problem().next.find("graphproof status"), std::string::npos);
  }
}

TEST(RunLockTest, ALauncherThatWasKilledHoldsNothing) {
  const record::ScratchFolder folder;
  const int child = fork();
  if (child == 0) {
    const RunLock lock(folder.path());
    for (;;) pause();
  }
  for (int look = 0; look < 500 && !RunLock::owner(folder.path()); ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_TRUE(RunLock::owner(folder.path()));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(RunLock::owner(folder.path()), std::nullopt);
  EXPECT_NO_THROW(RunLock{folder.path()});
}

}  // namespace
}  // namespace graphproof::launcher
