#include "launcher/batch/heartbeat_pipe.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

#include "launcher/host/private_folder.h"

namespace graphproof::launcher {
namespace {

struct HeartbeatPipeTest : testing::Test {
  HeartbeatPipeTest()
      : folder("/tmp/graphproof-pipe-test-" + std::to_string(getpid())),
        pipe(folder.path() / "heartbeat") {}
  void send(const std::string& text) {
    const int writer = open(pipe.path().c_str(), O_WRONLY | O_NONBLOCK);
    ASSERT_GE(writer, 0);
    ASSERT_EQ(write(writer, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(writer);
  }
  PrivateFolder folder;
  HeartbeatPipe pipe;
};

TEST_F(HeartbeatPipeTest, LinesArriveWholeAlsoWhenTheyCameInParts) {
  EXPECT_TRUE(pipe.read_lines().empty());
  send("one\ntw");
  EXPECT_EQ(pipe.read_lines(), std::vector<std::string>{"one"});
  send("o\n");
  EXPECT_EQ(pipe.read_lines(), std::vector<std::string>{"two"});
}

TEST_F(HeartbeatPipeTest, TheLastWritersEndIsNoEndOfFile) {
  send("first\n");
  pipe.read_lines();
  EXPECT_TRUE(pipe.read_lines().empty());
  send("second\n");
  EXPECT_EQ(pipe.read_lines(), std::vector<std::string>{"second"});
}

TEST_F(HeartbeatPipeTest, GarbageWithoutALineEndIsDropped) {
  send(std::string(20000, 'x'));
  const auto lines = pipe.read_lines();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].size(), 20000u);
  send("after\n");
  EXPECT_EQ(pipe.read_lines(), std::vector<std::string>{"after"});
}

TEST_F(HeartbeatPipeTest, APreparedFolderIsRefused) {
  EXPECT_THROW(PrivateFolder second(folder.path()), std::system_error);
  EXPECT_EQ(folder.content(), std::vector<std::string>{"heartbeat"});
}

}  // namespace
}  // namespace graphproof::launcher
