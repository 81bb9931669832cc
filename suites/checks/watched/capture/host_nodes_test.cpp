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
        .mentions = {"could not be read whole"}}});
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
