// Lines of a probe's file become typed lines of evidence.
#include "reports/record/watched/watched_process.h"

#include <gtest/gtest.h>

#include <set>

namespace graphproof::record {
namespace {

using nlohmann::json;

/// A process that ended well, with CUPTI and Python.
class Probed {
 public:
  Probed() {
    contents.header.pid = 4711;
    contents.header.state = probe_file::State::ended;
    contents.header.process.steps = 10;
    add({{"kind", "process"},
         {"command", {"python3", "train.py"}},
         {"executable", "/usr/bin/python3"},
         {"folder", "/data"},
         {"profile", "full"},
         {"driver_version", 13000},
         {"driver_missing", {"cuGraphNodeGetParams"}},
         {"cupti", {{"subscribed", true}, {"why_not", ""}, {"version", 130001}}},
         {"driver_log", true},
         {"python_missing", ""},
         {"settings", {{"RANK", "3"}, {"WORLD_SIZE", "8"}}},
         {"start_ms", 4.5}});
    add({{"kind", "python"}, {"version", "3.12.3"}, {"torch", "2.11.0"}});
  }

  Probed& add(json fields) {
    contents.lines.push_back({.kind = fields["kind"], .fields = std::move(fields)});
    return *this;
  }
  json& process() { return contents.lines[0].fields; }
  WatchedProcess read() const {
    WatchedProcess read = watched_process(contents);
    EXPECT_EQ(read.of<WatchedProcessLine>().size(), 1u);
    return read;
  }

  probe_file::Contents contents;
};

std::string why(const WatchedProcess& watched, const std::string& what) {
  for (const UnseenPart& part : watched.process().unseen)
    if (part.what == what) return part.why;
  return "seen";
}

template <class T>
T only(const WatchedProcess& watched) {
  EXPECT_EQ(watched.of<T>().size(), 1u);
  return watched.of<T>().empty() ? T{} : watched.of<T>()[0];
}

template <class... Lines>
void each_example_is_read(Kinds<Lines...>) {
  const auto check = []<class T>(std::in_place_type_t<T>) {
    Json example = {{"kind", T::kKind}};
    example.update(object_example(describe_fields<T>()));
    const json given = json::parse(example.dump());
    T line;
    const auto misfit = read_line(given, line);
    EXPECT_FALSE(misfit) << T::kKind << ": " << to_text(*misfit);
    EXPECT_EQ(json::parse(line_json(line).dump()), given) << T::kKind;
  };
  (check(std::in_place_type<Lines>), ...);
}

TEST(WatchedKindsTest, TheExampleOfEachKindIsReadAndWrittenUnchanged) {
  each_example_is_read(WatchedKinds());
}

TEST(WatchedProcessTest, AProcessOfWhichEverythingWasSeenSaysSo) {
  const WatchedProcess watched = Probed().read();
  const WatchedProcessLine& process = watched.process();
  EXPECT_TRUE(process.unseen.empty()) << line_json(process).dump();
  EXPECT_EQ(process.rank, 3);
  EXPECT_EQ(process.world_size, 8);
  EXPECT_EQ(process.state, "ended");
  EXPECT_EQ(process.torch, "2.11.0");
  EXPECT_EQ(watched.json().front()["kind"], "watched_process");
}

TEST(WatchedProcessTest, WhatWasNotSeenHasItsReason) {
  Probed probed;
  probed.process()["cupti"] = {{"subscribed", false}, {"why_not", "a profiler holds it"}};
  probed.process()["driver_log"] = false;
  probed.process()["profile"] = "quick";
  probed.contents.header.process.steps = 0;
  probed.contents.header.process.executables = 1;
  probed.contents.header.lines_lost = 7;
  probed.add({{"kind", "library"}, {"name", "libnccl"}, {"path", "/l"}, {"version", 22809}})
      .add({{"kind", "python_error"}, {"where", "sample"}, {"error", "ValueError()"}});
  const WatchedProcess watched = probed.read();
  EXPECT_EQ(why(watched, "driver_calls"), "a profiler holds it");
  EXPECT_EQ(why(watched, "every_freed_block"),
            "the quick profile looks at the allocator now and then");
  EXPECT_EQ(why(watched, "device_time"), "only the profile full measures it");
  EXPECT_EQ(why(watched, "training_steps"), "no optimizer of PyTorch made a step outside a graph");
  EXPECT_EQ(why(watched, "nccl_calls"), "NCCL_PROFILER_PLUGIN is not set");
  EXPECT_EQ(why(watched, "python: sample"), "ValueError()");
  EXPECT_EQ(why(watched, "lines"), "7 had no room in the file");
  EXPECT_NE(why(watched, "driver_words"), "seen");
}

TEST(WatchedProcessTest, AProcessThatDiedWhileTheProbeStartedSawNothing) {
  probe_file::Contents empty;
  const WatchedProcess watched = watched_process(empty);
  EXPECT_EQ(watched.process().state, "cut_short");
  EXPECT_EQ(why(watched, "everything"), "the process ended while the probe started");
}

TEST(WatchedProcessTest, ACaptureIsJoinedWithWhatPythonKnowsOfIt) {
  Probed probed;
  probed.contents.threads.push_back({.tid = 12, .name = "pt_pinned"});
  probed
      .add({{"kind", "capture_begin"},
            {"capture", 1},
            {"tid", 4711},
            {"stream", "0x1"},
            {"mode", "global"}})
      .add({{"kind", "python_capture_begin"},
            {"capture", 1},
            {"stack", {"train.py:4 f"}},
            {"pool", nullptr}})
      .add({{"kind", "capture"},
            {"capture", 1},
            {"tid", 4711},
            {"end_tid", 4711},
            {"stream", "0x1"},
            {"mode", "global"},
            {"result", 0},
            {"result_name", "CUDA_SUCCESS"},
            {"graph", "5566778899aabbcc"},
            {"nodes", 3},
            {"work_by_thread", {{"4711", 3}}},
            {"calls",
             {{{"tid", 12}, {"function", "cuMemHostAlloc"}, {"result", 900}, {"count", 2}}}},
            {"host_functions", {{{"library", "/l.so"}, {"function", ""}, {"count", 1}}}},
            {"host_memory",
             {{{"side", "source"}, {"memory", "pageable"}, {"address", "0x5"}, {"bytes", 64}}}}})
      .add({{"kind", "python_capture"},
            {"capture", 1},
            {"executable", 1},
            {"pool", {0, 9}},
            {"stack", {"train.py:4 f"}},
            {"generators", 1}});
  const WatchedProcess watched = probed.read();
  const auto capture = only<WatchedCaptureLine>(watched);
  EXPECT_EQ(capture.stack, std::vector<std::string>{"train.py:4 f"});
  EXPECT_EQ(capture.pool, (std::vector<std::int64_t>{0, 9}));
  EXPECT_EQ(capture.generators, 1);
  EXPECT_EQ(capture.nodes, 3);
  EXPECT_TRUE(capture.ended);
  const auto foreign = only<ForeignCallLine>(watched);
  EXPECT_EQ(foreign.thread_name, "pt_pinned");
  EXPECT_EQ(foreign.count, 2);
  EXPECT_FALSE(foreign.captures_work);
  EXPECT_EQ(only<HostNodeLine>(watched).library, "/l.so");
  EXPECT_EQ(only<HostMemoryLine>(watched).memory, "pageable");
}

TEST(WatchedProcessTest, ACaptureWhoseEndWasNotSeenHasNotEnded) {
  Probed probed;
  probed.add({{"kind", "capture_begin"},
              {"capture", 1},
              {"tid", 5},
              {"stream", "0x1"},
              {"mode", "relaxed"}});
  EXPECT_FALSE(only<WatchedCaptureLine>(probed.read()).ended);
}

TEST(WatchedProcessTest, WithoutCuptiCapturesAreThoseOfPython) {
  Probed probed;
  probed
      .add({{"kind", "python_capture_begin"},
            {"capture", 0},
            {"number", 1},
            {"tid", 5},
            {"mode", "global"},
            {"stack", {"a.py:1 f"}}})
      .add({{"kind", "python_capture_failed"},
            {"capture", 0},
            {"number", 1},
            {"tid", 5},
            {"error", "CUDA error"}});
  const auto capture = only<WatchedCaptureLine>(probed.read());
  EXPECT_EQ(capture.error, "CUDA error");
  EXPECT_EQ(capture.thread, 5);
  EXPECT_EQ(capture.stream, "unknown");
}

TEST(WatchedProcessTest, LaunchesPerStepAreStatedWhereStepsWereSeen) {
  Probed probed;
  probed.contents.header.monotonic_ns = 1'000'000'000;
  probed.contents.executables[1] = {.executable = 1,
                                    .launches = 20,
                                    .first_launch_ns = 2'500'000'000,
                                    .last_launch_ns = 3'000'000'000,
                                    .first_step = 1,
                                    .last_step = 9,
                                    .steps = 8,
                                    .launches_per_step_least = 2,
                                    .launches_per_step_most = 4,
                                    .kernels_before = 7,
                                    .destroyed_ns = 4};
  probed.contents.executables[2] = {.executable = 2};
  probed.add({{"kind", "executable"},
              {"executable", 1},
              {"capture", 1},
              {"t_ns", 2'000'000'000},
              {"graph", "5566778899aabbcc"},
              {"tid", 5},
              {"free_before", 100},
              {"free_after", 60}});
  const WatchedProcess watched = probed.read();
  const auto replays = watched.of<ReplaysLine>();
  ASSERT_EQ(replays.size(), 2u);
  EXPECT_EQ(replays[0].per_step_most, 4);
  EXPECT_DOUBLE_EQ(*replays[0].first_s, 1.5);
  EXPECT_FALSE(replays[1].first_s);
  EXPECT_EQ(only<ExecutableGraphLine>(watched).bytes, 40);
  EXPECT_TRUE(only<ExecutableGraphLine>(watched).destroyed);
  EXPECT_DOUBLE_EQ(*only<ExecutableGraphLine>(watched).seconds, 1.0);
  probed.contents.header.process.steps = 0;
  EXPECT_FALSE(probed.read().of<ReplaysLine>()[0].per_step_most);
}

TEST(WatchedProcessTest, OperandsCallsAndTeardownKeepTheirFields) {
  Probed probed;
  probed.contents.tallies[4] = {.tally = 4, .count = 9};
  const json block = {{"address", "0x200"},   {"bytes", 512},    {"pool", {0, 0}},
                      {"place", "parameter"}, {"node", "scale"}, {"how", "the block is free"}};
  probed
      .add({{"kind", "operands"},
            {"executable", 1},
            {"moment", "capture"},
            {"step", 0},
            {"launches", 0},
            {"blocks", 2},
            {"known", true},
            {"pool_known", true},
            {"freed_blocks", 1},
            {"freed", {block}},
            {"outside", 1},
            {"own_pool", 2},
            {"free_at_capture_blocks", 3},
            {"free_at_capture", {block}}})
      .add({{"kind", "nccl_call"},
            {"tally", 4},
            {"communicator", "0xab"},
            {"function", "AllReduce"},
            {"datatype", "ncclFloat32"},
            {"elements", 8},
            {"peer", 0},
            {"capture", 1},
            {"captured", true}})
      .add({{"kind", "teardown"},
            {"what", "destroy_process_group"},
            {"t_ns", 0},
            {"executables", 2},
            {"executables_with_nccl", 1},
            {"with_nccl", {1}},
            {"stack", json::array()}})
      .add({{"kind", "graph_message"},
            {"source", "torch"},
            {"text", "Skipping cudagraphs due to mutated inputs"}})
      .add({{"kind", "graph_message"},
            {"source", "warning UserWarning"},
            {"text", "The AccumulateGrad node's stream does not match"}})
      .add({{"kind", "graph_counters"},
            {"counters", {{"inductor.cudagraph_skips", 2}, {"megatron.cudagraph_created", true}}}})
      .add({{"kind", "memory"},
            {"snapshots", 4},
            {"t_ns", 0},
            {"pools",
             {{{"pool", {0, 9}},
               {"segments", 1},
               {"total_bytes", 8},
               {"active_bytes", 4},
               {"allocated_bytes", 4}}}}})
      .add({{"kind", "update"},
            {"executable", 1},
            {"function", "cuGraphExecUpdate_v2"},
            {"result", 910},
            {"result_name", "CUDA_ERROR"},
            {"update_result", 2},
            {"operands_moved", false},
            {"read", false},
            {"t_ns", 3'500'000'000},
            {"step", 3},
            {"driver_words", {"the topology has changed"}}});
  const WatchedProcess watched = probed.read();
  EXPECT_TRUE(watched.dropped.empty()) << watched.dropped.front();
  const auto operands = only<OperandBlocksLine>(watched);
  EXPECT_EQ(operands.free_at_capture, 3);
  EXPECT_EQ(operands.free_at_capture_blocks.size(), 1u);
  EXPECT_EQ(operands.freed.at(0).how, "the block is free");
  EXPECT_EQ(only<NcclCallLine>(watched).count, 9);
  EXPECT_EQ(only<LiveGraphsLine>(watched).with_nccl, std::vector<std::int64_t>{1});
  ASSERT_EQ(watched.of<GraphMessageLine>().size(), 2u);
  EXPECT_EQ(watched.of<GraphMessageLine>()[0].about, "skipped");
  EXPECT_EQ(watched.of<GraphMessageLine>()[1].about, "accumulator");
  EXPECT_EQ(only<GraphCountersLine>(watched).counters.at("megatron.cudagraph_created"), 1);
  EXPECT_EQ(only<MemoryPoolsLine>(watched).pools.at(0).total_bytes, 8);
  EXPECT_EQ(only<GraphUpdateLine>(watched).update_result, 2);
  EXPECT_DOUBLE_EQ(*only<GraphUpdateLine>(watched).seconds, 3.5);
}

TEST(WatchedProcessTest, ALineThatDoesNotFitIsLeftOutAndNamed) {
  Probed probed;
  probed.add({{"kind", "communicator"}, {"communicator", 5}});
  const WatchedProcess watched = probed.read();
  EXPECT_TRUE(watched.of<CommunicatorLine>().empty());
  ASSERT_EQ(watched.dropped.size(), 1u);
  EXPECT_NE(watched.dropped[0].find("a line of kind communicator was left out"), std::string::npos);
}

}  // namespace
}  // namespace graphproof::record
