#include "workloads/engines/capture/graph_capture.h"

#include <chrono>
#include <optional>

#include "fixtures/device/error.h"
#include "fixtures/device/nvtx.h"
#include "fixtures/device/operator_log.h"
#include "fixtures/tensors/torch.h"
#include "workloads/engines/capture/executables.h"
#include "workloads/engines/capture/step_tensors.h"

namespace graphproof::engines {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::int64_t> read_counter(const CaptureParts& parts) {
  parts.device.synchronize();  // all streams: a stray launch may count on another stream
  const at::Tensor counts = parts.step.layer_counter().cpu();
  const auto* values = counts.const_data_ptr<std::int64_t>();
  return {values, values + counts.numel()};
}

/// Blocks in front of everything that a capture allocates. The buffers of its collectives then lie
/// at other offsets of their segments on ranks with an odd number than on the others.
class PoolShift {
 public:
  explicit PoolShift(const CaptureParts& parts) {
    const workloads::BufferPlacement placement = parts.step.layout().placement;
    if (placement == workloads::BufferPlacement::by_allocator) return;
    const auto block = [&](std::int64_t bytes) {
      blocks_.push_back(at::empty(
          {bytes}, at::TensorOptions().device(parts.device.torch_device()).dtype(at::kByte)));
      return parts.device.address(blocks_.back());
    };
    const std::uint64_t begin = block(kBlock);
    if (placement == workloads::BufferPlacement::across_border) {
      block(2 * kBlock);
      block(kLargeBlock);
    }
    distance_ = static_cast<std::int64_t>(block(kBlock) - begin);
  }

  std::optional<std::int64_t> distance() const { return distance_; }

 private:
  // PyTorch's allocator rounds to 512 bytes, and takes blocks of more than 1 MiB from other
  // segments than smaller ones (c10/core/AllocatorConfig.h).
  static constexpr std::int64_t kBlock = 512, kLargeBlock = (std::int64_t{3} << 20) / 2;

  std::vector<at::Tensor> blocks_;
  std::optional<std::int64_t> distance_;
};

}  // namespace

std::optional<std::int64_t> record(const CaptureParts& parts, const capture::Pool& pool,
                                   const std::function<void()>& work, capture::Graph& graph) {
  std::optional<std::int64_t> distance;
  graph.capture_begin(pool, parts.config.capture_mode);
  try {
    const PoolShift shift(parts);
    distance = shift.distance();
    const Recording recording(parts.step);
    work();
  } catch (...) {
    // The capture must end on this thread and stream in any case. The error of capture_end() would
    // only report that there was an earlier error, which is rethrown below.
    try {
      graph.capture_end();
    } catch (const std::exception&) {
    }
    throw;
  }
  graph.capture_end();
  return distance;
}

std::unique_ptr<capture::Graph> make_graph(const CaptureParts& parts) {
  auto graph = parts.device.make_graph();
  for (const at::Generator& generator : parts.step.rng().generators())
    graph->register_generator(generator);
  return graph;
}

std::unique_ptr<capture::Graph> capture_graph(const CaptureParts& parts, CaptureRequest request) {
  const fixtures::NvtxRange range("capture", request.graph);
  parts.device.synchronize();
  const auto state = captured_state(parts.step);
  parts.observer.before_capture(request.graph, state);
  parts.step.faults().before_capture(parts, request);

  CaptureReport report;
  report.graph = request.graph;
  report.mode = parts.config.capture_mode;
  report.warmups = request.warmups;
  report.counter_before = read_counter(parts);
  if (request.warm_up) request.warm_up();
  if (request.undo_warm_up) request.undo_warm_up();
  if (request.module) report.module_runs = parts.step.module_runs(*request.module);
  for (const at::Tensor& input : request.owned_inputs)
    report.owned_inputs.push_back(parts.device.address(input));
  parts.device.synchronize();
  const std::int64_t pool_bytes_before = parts.device.memory().pool;
  auto graph = make_graph(parts);
  Executables* const kept = parts.config.executables;
  auto executable = kept ? kept->take(request.graph) : nullptr;
  const bool updates = executable != nullptr;
  if (updates) graph->reuse(std::move(executable));

  std::optional<capture::DeviceError> failure;
  const auto begin = Clock::now();
  {
    const capture::OperatorLog log;  // names the refused operator, which CUDA's errors do not
    try {
      report.pool_offset = record(parts, request.pool, request.work, *graph);
      if (updates) {
        const capture::ExecUpdate update = graph->update();
        if (!update.refused.empty() || update.kept_clusters > 0) graph->instantiate();
      }
    } catch (const std::exception& error) {
      failure = capture::as_device_error(error, log.last());
    }
    report.other_threads = log.of_other_threads();
  }
  report.ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  if (!failure) {
    report.census = graph->census();
    report.pool_bytes = parts.device.memory().pool - pool_bytes_before;
  } else {
    graph.reset();
    report.status = "error";
    report.code = failure->code;
    report.site = failure->call;
    report.message = failure->what();
  }
  try {
    report.counter_after = read_counter(parts);
  } catch (const std::exception&) {
    // After a failed capture LibTorch 2.11 may be unusable (pytorch#180395). The failure itself is
    // the more important error.
    if (!failure) throw;
  }
  parts.observer.after_capture(report, state);
  if (failure) throw *failure;
  return graph;
}

}  // namespace graphproof::engines
