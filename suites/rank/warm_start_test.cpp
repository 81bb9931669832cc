#include "suites/rank/warm_start.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "reports/record/testing/scratch_folder.h"

namespace graphproof::suites {
namespace {

using std::chrono::milliseconds;

TEST(WarmStartTest, TheFileEndsTheWait) {
  const record::ScratchFolder folder;
  const auto file = folder.path() / "go";
  std::jthread launcher([&] {
    std::this_thread::sleep_for(milliseconds(20));
    std::ofstream(file).flush();
  });
  wait_for_go(file, milliseconds(20000));
  EXPECT_TRUE(std::filesystem::exists(file));
}

TEST(WarmStartTest, TheWaitHasADeadline) {
  try {
    wait_for_go("/nowhere/go", milliseconds(5));
    ADD_FAILURE() << "it returned";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "the launcher did not let the cases begin; got no file /nowhere/go; want it within 5 ms; "
        "ranks that wait forever occupy a GPU; next: check whether the launcher runs");
  }
}

}  // namespace
}  // namespace graphproof::suites
