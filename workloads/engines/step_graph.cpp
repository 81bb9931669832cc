#include "workloads/engines/step_graph.h"

#include <cassert>
#include <chrono>
#include <optional>
#include <thread>

#include "fixtures/capture/error.h"
#include "fixtures/capture/operator_log.h"
#include "fixtures/nvtx.h"
#include "fixtures/torch.h"
#include "workloads/engines/step_tensors.h"

namespace graphproof::engines {
namespace {

using Clock = std::chrono::steady_clock;

/// Tells the step that its calls are recorded, also when one of them throws.
class Recording {
 public:
  explicit Recording(workloads::TrainStep& step) : step_(step) { step_.recording(true); }
  ~Recording() { step_.recording(false); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  workloads::TrainStep& step_;
};

}  // namespace

StepGraph::StepGraph(std::string name, std::function<void()> work, const EngineConfig& config, capture::Device& device,
                     workloads::TrainStep& step, Observer* observer)
    : name_(std::move(name)),
      work_(std::move(work)),
      config_(config),
      device_(device),
      step_(step),
      observer_(observer ? observer : &silent_) {}

void StepGraph::capture() {
  assert(!captured_);
  const fixtures::NvtxRange range("capture", name_);
  ++captures_;
  device_.synchronize();
  const auto state = captured_state(step_);
  observer_->before_capture(name_, state);

  CaptureReport report;
  report.graph = name_;
  report.mode = config_.capture_mode;
  report.counter_before = read_counter();
  const std::int64_t pool_bytes_before = device_.memory().pool;
  auto graph = device_.make_graph();
  for (const at::Generator& generator : step_.rng().generators()) graph->register_generator(generator);

  std::optional<capture::DeviceError> failure;
  const auto begin = Clock::now();
  {
    const capture::OperatorLog log;  // names the operator that was refused; CUDA's errors don't
    try {
      record(*graph);
    } catch (const std::exception& error) {
      failure = capture::as_device_error(error, log.last());
    }
  }
  report.ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  // M85 stands for a wrapper that catches whatever a capture throws, logs nothing and runs eagerly from then on.
  const bool swallowed = failure && config_.fault.is("M85");
  if (!failure) {
    graph_ = std::move(graph);
    report.census = graph_->census();
    report.pool_bytes = device_.memory().pool - pool_bytes_before;
  } else if (!swallowed) {
    report.status = "error";
    report.code = failure->code;
    report.site = failure->call;
    report.message = failure->what();
  }
  graph.reset();
  try {
    report.counter_after = read_counter();
  } catch (const std::exception&) {
    // After a failed capture LibTorch 2.11 may not work on (pytorch#180395); the failure itself matters more.
    if (!failure) throw;
  }
  captured_ = !failure || swallowed;
  observer_->after_capture(report, state);
  if (!captured_) throw *failure;
}

void StepGraph::record(capture::Graph& graph) {
  graph.capture_begin(device_.make_pool(), config_.capture_mode);
  try {
    const Recording recording(step_);
    work_();
    if (config_.fault.is("M85")) throw std::runtime_error("planted fault M85: the capture fails");
  } catch (...) {
    // The capture must end on this thread and stream whatever happened. Its own error says only that there was an
    // earlier one, and that one is under way.
    try {
      graph.capture_end();
    } catch (const std::exception&) {
    }
    throw;
  }
  graph.capture_end();
}

void StepGraph::replay(const std::vector<NamedTensor>& statics, const std::vector<NamedTensor>& outputs) {
  assert(captured_);
  const fixtures::NvtxRange range("graph", name_);
  observer_->before_replay(name_, statics, outputs);
  // M61 stands for a rank that is busy with something else, a checkpoint or a dead disk, while its peers replay a
  // collective that waits for it.
  if (config_.fault.is("M61") && step_.layout().tp_rank == 1 && replays() == 1)
    std::this_thread::sleep_for(std::chrono::milliseconds(config_.stall_ms));
  if (!graph_) {
    work_();  // M85
  } else if (!config_.fault.is("M49")) {
    // M49 stands for a test that compares a buffer which the graph under test never writes.
    graph_->replay();
  }
  observer_->after_replay(name_, outputs);
}

void StepGraph::drop() {
  captured_ = false;
  if (!graph_) return;
  device_.synchronize();
  earlier_replays_ += graph_->replays();
  graph_->reset();
  graph_.reset();
}

std::vector<std::int64_t> StepGraph::read_counter() {
  device_.synchronize();  // all streams: M15 counts on another one
  const at::Tensor counts = step_.layer_counter().cpu();
  const auto* values = counts.const_data_ptr<std::int64_t>();
  return {values, values + counts.numel()};
}

}  // namespace graphproof::engines
