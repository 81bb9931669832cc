#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

TEST(WatchedHostMemoryOperands, Rows) {
  judge_watched_rows(
      "D60.host_memory_operands",
      {{.name = "pageable memory",
        .change =
            [](WatchedJob& job) { lines<record::HostMemoryLine>(job, 1)[0].memory = "pageable"; },
        .rank = 1,
        .mentions = {"graph 2", "pageable", "4096 bytes"}},
       {.name = "a pinned buffer was freed",
        .change =
            [](WatchedJob& job) {
              lines<record::OperandReleasedLine>(job, 1).push_back({.executable = 2,
                                                                    .address = "0x7f00",
                                                                    .bytes = 4096,
                                                                    .memory = "pinned",
                                                                    .function = "cuMemFreeHost",
                                                                    .thread = 4711,
                                                                    .words = 1,
                                                                    .addresses = 1});
              lines<record::ReplaysLine>(job, 1)[1].launches_after_free = 10;
            },
        .rank = 1,
        .mentions = {"cuMemFreeHost", "10 launches afterwards"}},
       {.name = "of an unknown kind",
        .change =
            [](WatchedJob& job) { lines<record::HostMemoryLine>(job, 1)[0].memory = "unknown"; },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"0x7f00 is not known"}}});
}

TEST(WatchedHostMemoryOperands, PageableMemoryThatTheDeviceReadsMayBeFreedUnseen) {
  WatchedJob job = clean_job();
  lines<record::HostMemoryLine>(job, 1)[0].memory = "pageable";
  auto& access = job.processes[1].evidence.lines<record::WatchedProcessLine>()[0];
  access.pageable_memory_access = true;
  EXPECT_EQ(result_of("D60.host_memory_operands", job).result, record::Result::unexercised);
  access.pageable_memory_access = false;
  EXPECT_EQ(result_of("D60.host_memory_operands", job).result, record::Result::fail);
}

TEST(WatchedHostMemoryOperands, ABufferThatIsFreedAfterTheLastLaunchIsSound) {
  WatchedJob job = clean_job();
  lines<record::OperandReleasedLine>(job, 1).push_back({.executable = 2,
                                                        .address = "0x7f00",
                                                        .bytes = 4096,
                                                        .memory = "pinned",
                                                        .function = "cuMemFreeHost",
                                                        .addresses = 1});
  EXPECT_EQ(result_of("D60.host_memory_operands", job).result, record::Result::pass);
}

}  // namespace
}  // namespace graphproof::checks::watched
