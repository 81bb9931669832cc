#include "launcher/host/private_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <system_error>
#include <thread>

#include "reports/record/testing/scratch_folder.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

TEST(PrivateFolderTest, OnlyItsOwnerMayReadItAndItGoesWithItsOwner) {
  const record::ScratchFolder top;
  const fs::path path = top.path() / "mine-1";
  {
    const PrivateFolder folder(path);
    struct stat facts;
    ASSERT_EQ(stat(path.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0700u);
    std::ofstream(path / "file") << "x";
    EXPECT_EQ(folder.content(), std::vector<std::string>{"file"});
    EXPECT_THROW(PrivateFolder{path}, std::system_error) << "another owner's folder";
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(PrivateFolderTest, OnlyTheFoldersOfDeadOwnersAreRemoved) {
  const record::ScratchFolder top;
  const PrivateFolder living(top.path() / "mine-1");
  fs::create_directories(top.path() / "yours-1");
  const fs::path dead = top.path() / "mine-2";
  const int child = fork();
  if (child == 0) {
    const PrivateFolder folder(dead);
    std::ofstream(dead / "file") << "x";
    for (;;) pause();
  }
  for (int look = 0; look < 500 && !fs::exists(dead / "file"); ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(remove_abandoned(top.path(), "mine-").empty()) << "both owners live";
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(remove_abandoned(top.path(), "mine-"), std::vector<fs::path>{dead});
  EXPECT_TRUE(fs::exists(living.path()));
  EXPECT_TRUE(fs::exists(top.path() / "yours-1"));
}

}  // namespace
}  // namespace graphproof::launcher
