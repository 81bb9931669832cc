#include "workloads/engines/step/step_graph.h"

#include <cassert>

#include "fixtures/device/nvtx.h"
#include "workloads/engines/capture/executables.h"
#include "workloads/engines/capture/graph_capture.h"

namespace graphproof::engines {

StepGraph::StepGraph(std::string name, std::function<void()> work, const EngineConfig& config,
                     capture::Device& device, workloads::TrainStep& step, Observer* observer)
    : name_(std::move(name)),
      work_(std::move(work)),
      config_(config),
      device_(device),
      step_(step),
      observer_(observer ? observer : &silent_) {}

void StepGraph::capture(std::int64_t warmups) {
  assert(!captured_);
  ++captures_;
  pool_ = device_.make_pool();
  graph_ = capture_graph({config_, device_, step_, *observer_}, {name_, pool_, work_, warmups});
  captured_ = true;
}

void StepGraph::replay(const std::vector<NamedTensor>& statics,
                       const std::vector<NamedTensor>& outputs) {
  assert(captured_);
  const fixtures::NvtxRange range("graph", name_);
  observer_->before_replay(name_, statics, outputs);
  graph_->replay();
  observer_->after_replay(name_, outputs);
}

void StepGraph::drop() {
  captured_ = false;
  if (!graph_) return;
  device_.synchronize();
  earlier_replays_ += graph_->replays();
  engines::drop(config_, name_, graph_);
}

}  // namespace graphproof::engines
