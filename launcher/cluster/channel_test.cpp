#include "launcher/cluster/channel.h"

#include <gtest/gtest.h>

#include <fstream>

#include "launcher/cluster/agent.h"
#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/message.h"

namespace graphproof::cluster {
namespace {

using Lines = std::vector<std::string>;

TEST(ChannelTest, AReaderGetsEveryWholeLineOnce) {
  const record::ScratchFolder scratch;
  const auto file = scratch.path() / "reports.jsonl";
  LineReader reader(file);
  EXPECT_EQ(reader.next(), Lines{}) << "the writer has not come yet";
  append_line(file, "one\n");
  append_line(file, "two\n");
  EXPECT_EQ(reader.next(), (Lines{"one", "two"}));
  EXPECT_EQ(reader.next(), Lines{});
  std::ofstream(file, std::ios::app) << "thr";
  EXPECT_EQ(reader.next(), Lines{}) << "a line without its end is still being written";
  std::ofstream(file, std::ios::app) << "ee\nfour\n";
  EXPECT_EQ(reader.next(), (Lines{"three", "four"}));
}

TEST(ChannelTest, ALineThatIsLongerThanABufferIsOneLine) {
  const record::ScratchFolder scratch;
  const std::string line(200000, 'x');
  append_line(scratch.path() / "orders.jsonl", line + "\n");
  EXPECT_EQ(LineReader(scratch.path() / "orders.jsonl").next(), Lines{line});
}

TEST(ChannelTest, ALineThatCannotBeWrittenSaysWhere) {
  try {
    append_line("/nowhere/orders.jsonl", "x\n");
    ADD_FAILURE();
  } catch (const record::WriteError& error) {
    EXPECT_NE(std::string(error.what()).find("/nowhere/orders.jsonl; got No such file"),
              std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("graphproof resume"), std::string::npos)
        << error.what();
  }
}

TEST(ChannelTest, ALocalDiskIsLookedAtOften) {
  EXPECT_EQ(look_interval("/dev/shm"), std::chrono::milliseconds(10));
}

TEST(AgentTest, ItsNumberIsTheSchedulersOrTheStarters) {
  const struct {
    launcher::Environment environment;
    int number;
  } rows[] = {{{{"SLURM_NODEID", "3"}}, 3},
              {{{"OMPI_COMM_WORLD_RANK", "1"}}, 1},
              {{{"SLURM_ARRAY_TASK_ID", "40"}, {"SLURM_NODEID", "0"}}, 40}};
  for (const auto& row : rows) EXPECT_EQ(agent_number(row.environment), row.number);
  for (const launcher::Environment& none :
       {launcher::Environment{}, launcher::Environment{{"SLURM_NODEID", "-1"}},
        launcher::Environment{{"SLURM_NODEID", "1x"}}})
    EXPECT_THROW(agent_number(none), record::ReadError);
}

}  // namespace
}  // namespace graphproof::cluster
