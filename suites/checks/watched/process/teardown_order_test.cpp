#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

TEST(WatchedTeardownOrder, Rows) {
  judge_watched_rows("D29.teardown_order",
                     {{.name = "a live graph at the end of the process group",
                       .change =
                           [](WatchedJob& job) {
                             auto& line = lines<record::LiveGraphsLine>(job, 1)[0];
                             line.executables = 2;
                             line.executables_with_nccl = 1;
                             line.with_nccl = {1};
                           },
                       .rank = 1,
                       .mentions = {"destroy_process_group at /data/train.py:99 main", "graph 1",
                                    "graph.reset()"}},
                      {.name = "os._exit with live graphs",
                       .change =
                           [](WatchedJob& job) {
                             line_of(job, 0).state = "cut_short";
                             line_of(job, 0).executables_live = 2;
                           },
                       .rank = 0,
                       .mentions = {"without its exit handlers", "2 executable graphs"}},
                      {.name = "killed with live graphs",
                       .change =
                           [](WatchedJob& job) {
                             line_of(job, 0).state = "cut_short";
                             line_of(job, 0).executables_live = 2;
                             job.run.exit_code = 137;
                           },
                       .want = record::Result::unexercised,
                       .rank = std::nullopt,
                       .mentions = {"was stopped", "exit code 137"}},
                      {.name = "Python was not seen",
                       .change = [](WatchedJob& job) { hide(job, "python"); },
                       .want = record::Result::unexercised,
                       .rank = std::nullopt,
                       .mentions = {"python: hidden by a test"},
                       .also = {"*"}}});
}

TEST(WatchedTeardownOrder, AWorkerMayBeEndedByItsParent) {
  WatchedJob job = clean_job();
  line_of(job, 0).state = "cut_short";
  line_of(job, 0).executables_live = 2;
  EXPECT_EQ(result_of("D29.teardown_order", job).result, record::Result::fail);
  line_of(job, 0).command = {"python3", "-c", "from multiprocessing.spawn import spawn_main"};
  EXPECT_EQ(result_of("D29.teardown_order", job).result, record::Result::unexercised);
  line_of(job, 0).command = {"python3", "serve.py"};
  line_of(job, 1).command = {"python3", "serve.py"};
  line_of(job, 0).parent_pid = line_of(job, 1).pid;
  EXPECT_EQ(result_of("D29.teardown_order", job).result, record::Result::unexercised);
}

}  // namespace
}  // namespace graphproof::checks::watched
