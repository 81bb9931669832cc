// watched.json and the checks.json of a watched run survive writing and reading; a field that does
// not fit is named.
#include "reports/record/watched/watched_run.h"

#include <gtest/gtest.h>

#include "reports/record/watched/watched_checks.h"

namespace graphproof::record {
namespace {

using nlohmann::json;

/// The message that reading `value` gives; empty if it can be read.
template <class Read>
std::string refusal(const Read& read, const json& value) {
  try {
    read(value, "RUN/file.json");
  } catch (const ReadError& error) {
    return error.what();
  }
  return "";
}

WatchedRun hung_run() {
  return {.id = "20261124-101500-4a1f",
          .command = {"torchrun", "train.py"},
          .folder = "/data",
          .host = "node1",
          .profile = "full",
          .cupti = false,
          .started = "2026-11-24T10:15:00Z",
          .seconds = 61.5,
          .ending = "hung",
          .exit_code = {},
          .signal = 9,
          .why = "nothing moved for 600 s",
          .waiting = {{.process = "node1.4711",
                       .pid = 4711,
                       .thread = 4712,
                       .name = "python3",
                       .call = "cuStreamSynchronize",
                       .seconds = 600}},
          .unwatched = {{.pid = 5, .command = "worker", .why = "no injection path"}},
          .elsewhere = {{{.pid = 6,
                          .command = "docker run image",
                          .by = "docker run",
                          .next = "hand the variables on"}}},
          .without_cuda = {{"ssh"}},
          .expected_graph_share = 0.9,
          .against = "/data/runs/before",
          .earlier = {{{"steady_share", 0.75}}},
          .environment = {{"GRAPHPROOF_PROBE_PROFILE", "full"}},
          .versions = {{"graphproof", "1"}},
          .notes = {"NCCL's log is not read"}};
}

TEST(WatchedRun, SurvivesWritingAndReading) {
  for (const WatchedRun& run : {hung_run(), WatchedRun{}})
    EXPECT_EQ(watched_run_from(json(to_json(run)), "file"), run);
}

TEST(WatchedRun, RefusesAnEndingThatDoesNotExist) {
  json value = to_json(hung_run());
  value["ending"] = "well";
  const std::string message = refusal(watched_run_from, value);
  EXPECT_NE(message.find("`ending` in RUN/file.json"), std::string::npos) << message;
  EXPECT_NE(message.find("running|exited"), std::string::npos) << message;
}

TEST(WatchedRun, RefusesAFileOfAnotherKindAndAMissingField) {
  json value = to_json(hung_run());
  value.erase("command");
  EXPECT_NE(refusal(watched_run_from, value).find("`command`"), std::string::npos);
  value["schema"] = "graphproof-run/1";
  EXPECT_NE(refusal(watched_run_from, value).find("graphproof-watched/1"), std::string::npos);
}

WatchedChecks checks_with_a_graph() {
  return {.checks = {{.check = "D60.host_nodes",
                      .result = Result::fail,
                      .rank = 1,
                      .message = {"a host node", "1", "0", "its value is frozen", "remove it"}},
                     {.check = "D61.foreign_threads",
                      .result = Result::unexercised,
                      .rank = {},
                      .message = {"no capture was seen", "0 captures", "", "", ""}}},
          .graphs = {{.process = "node1.4711",
                      .rank = 1,
                      .executable = 1,
                      .signature = "5566778899aabbcc",
                      .captured_at = "train.py:42 train_step",
                      .stack = {"train.py:42 train_step"},
                      .thread = "python3 (4711)",
                      .stream = "0x1",
                      .nodes = {{"kernel", 3}},
                      .kernels = {{.kernel = "scale", .count = 3}},
                      .pool_bytes = 2097152,
                      .instantiation_bytes = -4096,
                      .replays = 100,
                      .replays_per_step_least = 1,
                      .replays_per_step_most = 2,
                      .launch_share = 0.5,
                      .device_time_share = {},
                      .kernels_between = 12.5,
                      .between =
                          std::vector<BetweenReplays>{
                              {.what = "kernel", .name = "scale", .per_replay = 2.5}}}},
          .figures = {{"graph_share", 0.5}},
          .notes = {"memory: no snapshot"}};
}

TEST(WatchedChecks, SurviveWritingAndReading) {
  for (const WatchedChecks& checks : {checks_with_a_graph(), WatchedChecks{}})
    EXPECT_EQ(watched_checks_from(json(to_json(checks)), "file"), checks);
}

TEST(WatchedChecks, NameTheGraphWhoseFieldDoesNotFit) {
  json value = to_json(checks_with_a_graph());
  value["graphs"][0]["replays"] = "many";
  const std::string message = refusal(watched_checks_from, value);
  EXPECT_NE(message.find("`graphs[0].replays` in RUN/file.json"), std::string::npos) << message;
}

TEST(WatchedChecks, RefuseAResultThatDoesNotExist) {
  json value = to_json(checks_with_a_graph());
  value["checks"][0]["result"] = "fine";
  EXPECT_NE(refusal(watched_checks_from, value).find("result"), std::string::npos);
}

}  // namespace
}  // namespace graphproof::record
