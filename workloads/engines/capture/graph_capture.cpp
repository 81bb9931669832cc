#include "workloads/engines/capture/graph_capture.h"

#include <chrono>
#include <optional>

#include "fixtures/device/error.h"
#include "fixtures/device/nvtx.h"
#include "fixtures/device/operator_log.h"
#include "fixtures/tensors/torch.h"
#include "workloads/engines/capture/step_tensors.h"

namespace graphproof::engines {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::int64_t> read_counter(const CaptureParts& parts) {
  parts.device.synchronize();  // all streams: M15 counts on another one
  const at::Tensor counts = parts.step.layer_counter().cpu();
  const auto* values = counts.const_data_ptr<std::int64_t>();
  return {values, values + counts.numel()};
}

void record(const CaptureParts& parts, const CaptureRequest& request, capture::Graph& graph) {
  graph.capture_begin(request.pool, parts.config.capture_mode);
  try {
    const Recording recording(parts.step);
    request.work();
    if (parts.config.fault.is("M85"))
      throw std::runtime_error("planted fault M85: the capture fails");
  } catch (...) {
    // The capture must end on this thread and stream whatever happened. Its own error says only
    // that there was an earlier one, and that one is under way.
    try {
      graph.capture_end();
    } catch (const std::exception&) {
    }
    throw;
  }
  graph.capture_end();
}

std::unique_ptr<capture::Graph> make_graph(const CaptureParts& parts) {
  auto graph = parts.device.make_graph();
  // M33 stands for a generator of the user's own that nobody told the graph about.
  if (!parts.config.fault.is("M33"))
    for (const at::Generator& generator : parts.step.rng().generators())
      graph->register_generator(generator);
  return graph;
}

// M19: captures that fail, each reset, before the one that counts. LibTorch 2.11 keeps the pool of
// a failed capture.
void fail_captures(const CaptureParts& parts, const CaptureRequest& request) {
  constexpr int kFailures = 5;
  for (int i = 0; i < kFailures; ++i) {
    CaptureReport report;
    report.graph = request.graph;
    report.mode = parts.config.capture_mode;
    const std::int64_t pool_bytes_before = parts.device.memory().pool;
    auto graph = make_graph(parts);
    CaptureRequest failing = request;
    failing.pool = parts.device.make_pool();
    failing.work = [&] {
      request.work();
      static_cast<void>(parts.step.losses().sum().item<float>());
    };
    try {
      record(parts, failing, *graph);
    } catch (const std::exception& error) {
      const capture::DeviceError failure = capture::as_device_error(error, "item");
      report.status = "error";
      report.code = failure.code;
      report.site = failure.call;
      report.message = failure.what();
    }
    graph->reset();
    graph.reset();
    parts.device.empty_cache();
    report.pool_bytes = parts.device.memory().pool - pool_bytes_before;
    parts.observer.failed_capture(report);
  }
}

}  // namespace

std::unique_ptr<capture::Graph> capture_graph(const CaptureParts& parts,
                                              const CaptureRequest& request) {
  const fixtures::NvtxRange range("capture", request.graph);
  parts.device.synchronize();
  const auto state = captured_state(parts.step);
  parts.observer.before_capture(request.graph, state);

  CaptureReport report;
  report.graph = request.graph;
  report.mode = parts.config.capture_mode;
  constexpr std::int64_t kPretended = 2;
  report.warmups = parts.config.fault.is("M168")
                       ? kPretended
                       : request.warmups;  // M168 stands for an engine that counts what it left out
  report.counter_before = read_counter(parts);
  if (request.warm_up) request.warm_up();
  if (request.module) report.module_runs = parts.step.module_runs(*request.module);
  if (parts.config.fault.is("M19")) fail_captures(parts, request);
  parts.device.synchronize();
  const std::int64_t pool_bytes_before = parts.device.memory().pool;
  auto graph = make_graph(parts);

  std::optional<capture::DeviceError> failure;
  const auto begin = Clock::now();
  {
    const capture::OperatorLog log;  // names the operator that was refused; CUDA's errors don't
    try {
      record(parts, request, *graph);
    } catch (const std::exception& error) {
      failure = capture::as_device_error(error, log.last());
    }
  }
  report.ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  // M85 stands for a wrapper that catches whatever a capture throws, logs nothing and runs eagerly
  // from then on.
  const bool swallowed = failure && parts.config.fault.is("M85");
  if (!failure) {
    report.census = graph->census();
    report.pool_bytes = parts.device.memory().pool - pool_bytes_before;
  } else {
    graph.reset();
  }
  if (failure && !swallowed) {
    report.status = "error";
    report.code = failure->code;
    report.site = failure->call;
    report.message = failure->what();
  }
  try {
    report.counter_after = read_counter(parts);
  } catch (const std::exception&) {
    // After a failed capture LibTorch 2.11 may not work on (pytorch#180395); the failure itself
    // matters more.
    if (!failure) throw;
  }
  parts.observer.after_capture(report, state);
  if (failure && !swallowed) throw *failure;
  return graph;
}

}  // namespace graphproof::engines
