#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

TEST(WatchedCaptureStatus, Rows) {
  judge_watched_rows(
      "D19.capture_status",
      {{.name = "the driver refused it",
        .change =
            [](WatchedJob& job) {
              auto& capture = lines<record::WatchedCaptureLine>(job, 1)[3];
              capture.result = 904;
              capture.result_name = "CUDA_ERROR_STREAM_CAPTURE_UNJOINED";
              capture.driver_words = {"Capture sequence contains a fork"};
            },
        .rank = 1,
        .mentions = {"rank 1 (node-1.4712)", "capture 4", "train.py:44 step", "UNJOINED", "a fork",
                     "wait_stream"}},
       {.name = "PyTorch raised",
        .change =
            [](WatchedJob& job) {
              lines<record::WatchedCaptureLine>(job, 0)[2].error =
                  "RuntimeError: Attempt to increase offset for a CUDA generator\nmore";
            },
        .rank = 0,
        .mentions = {"offset for a CUDA generator", "register_generator_state"}},
       {.name = "it never ended",
        .change =
            [](WatchedJob& job) {
              auto& capture = lines<record::WatchedCaptureLine>(job, 1)[7];
              capture.ended = false;
            },
        .rank = 1,
        .mentions = {"never ended"}},
       {.name = "the process was killed in it",
        .change =
            [](WatchedJob& job) {
              lines<record::WatchedCaptureLine>(job, 1)[7].ended = false;
              line_of(job, 1).state = "cut_short";
            },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"was cut short during capture 8"}}});
}

}  // namespace
}  // namespace graphproof::checks::watched
