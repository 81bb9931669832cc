#include "launcher/host/stacks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>

#include "launcher/host/private_folder.h"

namespace graphproof::launcher {
namespace {

TEST(StacksTest, EveryTargetLeavesItsThreadsAndTheCollectionEnds) {
  using Clock = std::chrono::steady_clock;
  const PrivateFolder folder("/tmp/graphproof-stacks-test-" + std::to_string(getpid()));
  Child child({{"sleep", "60"}, own_environment()}, "/dev/null");
  const auto now_ms = [] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch())
        .count();
  };
  StackCollection stacks(folder.path() / "stacks", {{0, child.pid()}, {1, 0}}, true, now_ms());
  const std::int64_t begin_ms = now_ms();
  while (!stacks.step(now_ms())) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_LT(now_ms() - begin_ms, StackCollection::kDebugger_ms + 5000);
  std::ifstream in(folder.path() / "stacks/rank-0.threads");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_NE(text.find("Name:\tsleep"), std::string::npos) << text;
  EXPECT_NE(text.find("thread " + std::to_string(child.pid()) + " sleep"), std::string::npos)
      << text;
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "stacks/rank-1.threads"))
      << "it never sent hello";
}

}  // namespace
}  // namespace graphproof::launcher
