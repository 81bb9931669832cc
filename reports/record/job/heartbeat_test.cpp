#include "reports/record/job/heartbeat.h"

#include <gtest/gtest.h>

namespace graphproof::record {
namespace {

TEST(Heartbeat, IsReadBackFromItsLine) {
  const Heartbeat kRows[] = {
      {.event = "hello", .rank = 1, .pid = 7, .t_ms = 1},
      {.event = "case_begin",
       .rank = 1,
       .pid = 7,
       .t_ms = 2,
       .case_id = "9d2c0f6a1b3e4d57",
       .attempt = 2,
       .log_bytes = 0},
      {.event = "phase",
       .rank = 0,
       .pid = 7,
       .t_ms = 3,
       .case_id = "9d2c0f6a1b3e4d57",
       .attempt = 1,
       .phase = Phase::replay,
       .arm = "lockstep_graph",
       .step = 3,
       .collective = Collective{.sequence = 4, .op = "all_reduce", .group = "tp"}},
      {.event = "phase",
       .rank = 0,
       .pid = 7,
       .t_ms = 3,
       .case_id = "9d2c0f6a1b3e4d57",
       .attempt = 1,
       .phase = Phase::init},
      {.event = "progress",
       .rank = 1,
       .pid = 7,
       .t_ms = 4,
       .case_id = "9d2c0f6a1b3e4d57",
       .attempt = 1,
       .progress = {{.group = "dp_cp",
                     .first_rank = 1,
                     .begun = 41,
                     .ended = 40,
                     .op = "all_reduce",
                     .sequence = 9}}},
      {.event = "case_end",
       .rank = 1,
       .pid = 7,
       .t_ms = 4,
       .case_id = "9d2c0f6a1b3e4d57",
       .attempt = 1,
       .log_bytes = 12},
      {.event = "bye", .rank = 1, .pid = 7, .t_ms = 5},
  };
  for (const Heartbeat& row : kRows) {
    const std::string line = to_line(row);
    EXPECT_TRUE(line.ends_with('\n'));
    EXPECT_EQ(line.find('\n'), line.size() - 1) << "one line";
    EXPECT_EQ(heartbeat_from(line, "fifo"), row) << line;
  }
}

TEST(Heartbeat, ALineThatCouldMixWithOthersIsRefused) {
  const Heartbeat long_arm{.event = "phase",
                           .case_id = "9d2c0f6a1b3e4d57",
                           .attempt = 1,
                           .phase = Phase::replay,
                           .arm = std::string(PIPE_BUF, 'a')};
  EXPECT_THROW(to_line(long_arm), WriteError);
}

TEST(Heartbeat, WhatIsNoHeartbeatIsRefusedWithItsPlace) {
  for (const char* line :
       {"", "{", "[]", "{}",
        R"({"schema":"graphproof-heartbeat/1","event":"dance","rank":0,"pid":1,"t_ms":1})",
        R"({"schema":"graphproof-heartbeat/2","event":"hello","rank":0,"pid":1,"t_ms":1})"})
    try {
      heartbeat_from(line, "the fifo");
      ADD_FAILURE() << line;
    } catch (const ReadError& error) {
      EXPECT_NE(std::string(error.what()).find("the fifo"), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace graphproof::record
