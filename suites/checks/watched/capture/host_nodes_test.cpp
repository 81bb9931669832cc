#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

TEST(WatchedHostNodes, Rows) {
  judge_watched_rows(
      "D60.host_nodes",
      {{.name = "a closure of the program",
        .change =
            [](WatchedJob& job) {
              lines<record::HostNodeLine>(job, 1).push_back({.capture = 1, .count = 3});
            },
        .rank = 1,
        .mentions = {"graph 1", "3 host nodes", "no library file"}},
       {.name = "an extension of Python",
        .change =
            [](WatchedJob& job) {
              lines<record::HostNodeLine>(job, 0).push_back(
                  {.capture = 2,
                   .library = "/data/ext.cpython-312-x86_64-linux-gnu.so",
                   .function = "on_step",
                   .count = 1});
            },
        .rank = 0,
        .mentions = {"graph 2", "ext.cpython-312", "near on_step"}},
       {.name = "a graph was not read whole",
        .change =
            [](WatchedJob& job) {
              lines<record::WatchedGraphLine>(job, 1)[0].failure = "cuGraphGetNodes";
            },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"were not read whole: cuGraphGetNodes"},
        .also = {"D05.operands_alive", "D18.coverage", "D60.host_memory_operands",
                 "D66.library_workspace"}},
       {.name = "a capture whose graph another was updated from",
        .change =
            [](WatchedJob& job) {
              lines<record::HostNodeLine>(job, 1).push_back({.capture = 77, .count = 1});
            },
        .rank = 1,
        .mentions = {"graph 2", "1 host nodes"}},
       {.name = "a node that was given another function",
        .change =
            [](WatchedJob& job) {
              lines<record::GraphUpdateLine>(job, 1).push_back(
                  {.executable = 1,
                   .function = "cuGraphExecHostNodeSetParams",
                   .result_name = "CUDA_SUCCESS",
                   .operands_kept = true,
                   .host_library = "/opt/torch_extensions/hook.so",
                   .launches = 10});
            },
        .rank = 1,
        .mentions = {"graph 1", "cuGraphExecHostNodeSetParams gave another function",
                     "torch_extensions/hook.so"}}});
}

TEST(WatchedHostNodes, OtherLibrariesAreNamedAndPass) {
  WatchedJob job = clean_job();
  lines<record::HostNodeLine>(job, 1).push_back(
      {.capture = 1, .library = "/opt/libfancy.so.1", .count = 1});
  const record::CheckResult result = result_of("D60.host_nodes", job);
  EXPECT_EQ(result.result, record::Result::pass);
  EXPECT_NE(result.message.got.find("libfancy.so.1"), std::string::npos) << result.message.got;
}

}  // namespace
}  // namespace graphproof::checks::watched
