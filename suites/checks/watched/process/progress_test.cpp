#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

TEST(WatchedProgress, Rows) {
  judge_watched_rows(
      "D22.progress",
      {{.name = "it hung",
        .change =
            [](WatchedJob& job) {
              job.run.ending = "hung";
              job.run.exit_code.reset();
              job.run.why = "no call for 60 s";
              job.run.waiting = {{.process = "node-1.4712",
                                  .pid = 4712,
                                  .thread = 4712,
                                  .name = "python3",
                                  .call = "cuStreamSynchronize",
                                  .seconds = 61}};
              job.run.stacks = {
                  {{"node-1.4711",
                    {"/lib/python3.12/threading.py:359 wait", "train.py:34 <module>"}},
                   {"node-1.4712", {"train.py:36 <module>"}},
                   {"node-1.9", {"other.py:1 main"}}}};
              job.run.ras = {{"#0-0 (27a0) MISMATCH"}};
            },
        .rank = 1,
        .mentions = {"rank 1 (node-1.4712)", "no call for 60 s", "cuStreamSynchronize for 61 s",
                     "rank 0 (node-1.4711) is at train.py:34 <module> in "
                     "/lib/python3.12/threading.py:359 wait",
                     "rank 1 (node-1.4712) is at train.py:36 <module>",
                     "node-1.9 is at other.py:1 main", "; #0-0 (27a0) MISMATCH"}},
       {.name = "interrupted",
        .change = [](WatchedJob& job) { job.run.ending = "interrupted"; },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"not known: interrupted"}},
       {.name = "a rank was killed while it waited, and the command ended well",
        .change =
            [](WatchedJob& job) {
              line_of(job, 1).state = "cut_short";
              line_of(job, 1).threads[0].inside = "cuStreamSynchronize";
            },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"rank 1 (node-1.4712) ended inside cuStreamSynchronize"}}});
}

}  // namespace
}  // namespace graphproof::checks::watched
