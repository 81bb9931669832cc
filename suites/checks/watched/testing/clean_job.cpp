#include "suites/checks/watched/testing/clean_job.h"

#include "matrix/catalogue/catalogue.h"
#include "suites/checks/attempt/concat.h"

namespace graphproof::checks::watched {
namespace {

constexpr std::int64_t kSteps = 100, kMiB = 1024 * 1024, kGraphs = 8;
constexpr const char* kCommunicator = "0xabcd";

/// A digest of its own for each graph.
std::string signature(std::int64_t graph) { return concat("00000000000000a", graph); }

record::WatchedProcessLine process_line(std::int64_t rank) {
  return {
      .host = "node-1",
      .pid = 4711 + rank,
      .parent_pid = 4700,
      .rank = rank,
      .world_size = 2,
      .command = {"python3", "train.py"},
      .executable = "/usr/bin/python3.12",
      .folder = "/data",
      .profile = "full",
      .state = "ended",
      .start_ms = 4.2,
      .driver_version = 13000,
      .cupti_version = 130001,
      .python = "3.12.3",
      .torch = "2.11.0+cu130",
      .packages = {{"megatron.core", "0.19.2"}},
      .libraries = {{.name = "libnccl", .path = "/opt/nccl/libnccl.so.2", .version = 23007},
                    {.name = "libcublasLt", .path = "/opt/libcublasLt.so.13", .version = 130800}},
      .settings = {{"RANK", concat(rank)}, {"NCCL_GRAPH_REGISTER", "0"}},
      .steps = kSteps,
      .captures = kGraphs,
      .executables = kGraphs,
      .executables_live = 0,
      .executables_live_most = kGraphs,
      .device_bytes_most = 512 * kMiB,
      .kernels_before_graphs = 100,
      .launches_ordered = true,
      .threads = {
          {.thread = 4711,
           .name = "python3",
           .kernels = 500,
           .kernels_captured = 60,
           .graph_launches = 206},
          {.thread = 4712, .name = "pt_autograd_0", .kernels = 100, .kernels_captured = 40}}};
}

record::WatchedCaptureLine capture_line(std::int64_t graph) {
  record::WatchedCaptureLine line{
      .capture = graph,
      .ended = true,
      .result_name = "CUDA_SUCCESS",
      .stack = {"/opt/site-packages/torch/cuda/graphs.py:115 begin",
                concat("/data/train.py:", 40 + graph, " step"), "/data/train.py:90 main"},
      .thread = 4711,
      .end_thread = 4711,
      .stream = "0x55d0",
      .mode = "global",
      .ms = 12.5,
      .pool = std::vector<std::int64_t>{0, graph <= 2 ? 1 : graph},
      .generators = 0,
      .optimizer_steps = graph == 1 ? 1 : 0,
      .optimizer_numbers = graph == 1 ? 4 : 0,
      .streams = 1,
      .work_by_thread = {{"4711", 10}, {"4712", 5}},
      .graph = signature(graph),
      .nodes = 20};
  if (graph == 1) {
    line.collectives = 1;
    line.collectives_signature = "0b1c2d3e4f506172";
  }
  return line;
}

record::WatchedGraphLine graph_line(std::int64_t graph) {
  record::WatchedGraphLine line{
      .signature = signature(graph),
      .total = 20,
      .nodes = {{"kernel", 18}, {"memcpy", 2}},
      .kernel_nodes = 18,
      .copied_bytes = 2 * kMiB,
      .kernels = {{.name = "scale", .count = 18, .shape = {1, 1, 1, 64, 1, 1}}}};
  if (graph == 1) {
    line.nccl_kernels = 1;
    line.kernels = {{.name = "scale", .count = 17, .shape = {1, 1, 1, 64, 1, 1}},
                    {.name = "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                     .count = 1,
                     .shape = {2, 1, 1, 64, 1, 1}}};
  }
  if (graph == 2)
    line.kernels.push_back({.name = "nvjet_tst_128x64", .count = 1, .shape = {8, 1, 1, 256, 1, 1}});
  return line;
}

record::ExecutableGraphLine executable_line(std::int64_t graph) {
  return {.executable = graph,
          .capture = graph,
          .graph = signature(graph),
          .thread = 4711,
          .ms = 0.5,
          .bytes = 2 * kMiB,
          .free_bytes = 1024 * kMiB,
          .nccl_kernels = graph == 1 ? 1 : 0,
          .operands = 12,
          .destroyed = true,
          .seconds = 1.0 + 0.1 * static_cast<double>(graph)};
}

record::ReplaysLine replays_line(std::int64_t graph) {
  const bool small = graph > 2;
  return {.executable = graph,
          .launches = small ? 1 : kSteps,
          .first_step = 0,
          .last_step = small ? 0 : kSteps - 1,
          .steps = small ? 1 : kSteps,
          .per_step_least = 1,
          .per_step_most = 1,
          // Graph 2 after graph 1 in each step, the small ones before both.
          .first_s = small ? 1.9 : 2.0 + 0.01 * static_cast<double>(graph),
          .last_s = small ? 1.9 : 12.0 + 0.01 * static_cast<double>(graph),
          .kernels_before = graph == 1 ? 500 : 0,
          .launches_after_another = small ? 1 : kSteps,
          .updates = graph == 2 ? 1 : 0};
}

JobProcess clean_process(std::int64_t rank) {
  JobProcess process{.name = concat("node-1.", 4711 + rank), .evidence = {}};
  record::WatchedProcess& into = process.evidence;
  into.lines<record::WatchedProcessLine>() = {process_line(rank)};
  for (std::int64_t graph = 1; graph <= kGraphs; ++graph) {
    into.lines<record::WatchedCaptureLine>().push_back(capture_line(graph));
    into.lines<record::WatchedGraphLine>().push_back(graph_line(graph));
    into.lines<record::ExecutableGraphLine>().push_back(executable_line(graph));
    into.lines<record::ReplaysLine>().push_back(replays_line(graph));
    into.lines<record::GraphOrderLine>().push_back({.capture = graph,
                                                    .graph = signature(graph),
                                                    .known = true,
                                                    .writes = 2,
                                                    .concurrent_writes = graph == 1 ? 1 : 0});
    into.lines<record::OperandBlocksLine>().push_back({.executable = graph,
                                                       .moment = "sample",
                                                       .step = 0,
                                                       .launches = 1,
                                                       .blocks = 6,
                                                       .known = true,
                                                       .pool_known = true});
  }
  into.lines<record::ForeignCallLine>() = {{.capture = 1,
                                            .function = "cuStreamGetCaptureInfo_v3",
                                            .thread = 4712,
                                            .thread_name = "pt_autograd_0",
                                            .captures_work = true,
                                            .count = 7},
                                           {.capture = 1,
                                            .function = "cuEventQuery",
                                            .thread = 4713,
                                            .thread_name = "loader",
                                            .result = 600,
                                            .count = 3}};
  into.lines<record::HostNodeLine>() = {
      {.capture = 1, .library = "/opt/nccl/libnccl.so.2", .count = 2}};
  into.lines<record::HostMemoryLine>() = {
      {.capture = 2, .side = "source", .memory = "pinned", .address = "0x7f00", .bytes = 4096}};
  into.lines<record::GraphUpdateLine>() = {{.executable = 2,
                                            .function = "cuGraphExecUpdate_v2",
                                            .result_name = "CUDA_SUCCESS",
                                            .update_result = 0,
                                            .operands_read = true,
                                            .step = 5,
                                            .seconds = 2.5}};
  into.lines<record::HostCopiesLine>() = {{.executable = 1, .launches = 3, .copies = 1},
                                          {.executable = 1, .launches = 9, .copies = 1}};
  into.lines<record::MemoryPoolsLine>() = {{.snapshot = 1,
                                            .seconds = 2.0,
                                            .pools = {{.pool = {0, 0},
                                                       .segments = 4,
                                                       .total_bytes = 80 * kMiB,
                                                       .active_bytes = 60 * kMiB,
                                                       .allocated_bytes = 60 * kMiB},
                                                      {.pool = {0, 1},
                                                       .segments = 1,
                                                       .total_bytes = 20 * kMiB,
                                                       .active_bytes = 4 * kMiB,
                                                       .allocated_bytes = 4 * kMiB}}}};
  for (const char* what : {"resident", "device", "host", "descriptors", "allocated", "reserved"}) {
    record::MemorySeriesLine series{.what = what};
    for (std::int64_t launches = 4; launches <= 2 * kSteps + 6; launches += 4) {
      series.launches.push_back(launches);
      series.seconds.push_back(2.0 + 0.05 * static_cast<double>(launches));
      series.values.push_back(std::string_view(what) == "descriptors" ? 40 : 100 * kMiB);
    }
    into.lines<record::MemorySeriesLine>().push_back(std::move(series));
  }
  into.lines<record::CommunicatorLine>() = {
      {.communicator = kCommunicator, .nodes = 1, .ranks = 2, .rank = rank}};
  into.lines<record::NcclCallLine>() = {{.communicator = kCommunicator,
                                         .function = "AllReduce",
                                         .datatype = "ncclFloat32",
                                         .elements = 1024,
                                         .captured = true,
                                         .capture = 1,
                                         .count = 1},
                                        {.communicator = kCommunicator,
                                         .function = "AllReduce",
                                         .datatype = "ncclFloat32",
                                         .elements = 1024,
                                         .captured = false,
                                         .count = 3}};
  into.lines<record::LiveGraphsLine>() = {
      {.what = "destroy_process_group", .seconds = 12.5, .stack = {"/data/train.py:99 main"}}};
  into.lines<record::GraphCountersLine>() = {{.counters = {{"inductor.cudagraph_skips", 0}}}};
  return process;
}

}  // namespace

WatchedJob clean_job() {
  return {.run = {.id = "20261124-101500-4a1f",
                  .command = {"torchrun", "train.py"},
                  .folder = "/data",
                  .host = "node-1",
                  .profile = "full",
                  .started = "2026-11-24T10:15:00Z",
                  .seconds = 14,
                  .ending = "exited",
                  .exit_code = 0},
          .processes = {clean_process(0), clean_process(1)},
          .bad_stacks = matrix::load_bad_stacks(),
          .unread = {},
          .notes = {}};
}

void hide(WatchedJob& job, const std::string& part) {
  for (std::size_t i = 0; i < job.processes.size(); ++i)
    line_of(job, i).unseen.push_back({.what = part, .why = "hidden by a test"});
}

}  // namespace graphproof::checks::watched
