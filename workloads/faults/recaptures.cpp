// Faults of captures that update the executable graph of an earlier one (axis recapture).
#include "workloads/faults/planted.h"

namespace graphproof::faults {
namespace {

/// The update is left out: the executable graph goes on with the work of the earlier capture.
class UpdateLeftOut final : public GraphFault {
  struct NeverUpdated final : capture::ForwardingGraph {
    using ForwardingGraph::ForwardingGraph;
    capture::ExecUpdate update() override { return {}; }
  };
  std::unique_ptr<capture::Graph> wrap(std::unique_ptr<capture::Graph> graph) override {
    return std::make_unique<NeverUpdated>(std::move(graph));
  }
};

/// A later capture has one node more than the first, so its update is refused, and nobody looks at
/// the result.
class RefusalIgnored final : public GraphFault {
 public:
  void before_capture(const engines::CaptureParts& parts,
                      engines::CaptureRequest& request) override {
    if (captures_++ == 0) return;
    request.work = [work = request.work, device = parts.device.torch_device()] {
      work();
      at::zeros({1}, at::TensorOptions().device(device));
    };
  }

 private:
  struct NotInstantiated final : capture::ForwardingGraph {
    using ForwardingGraph::ForwardingGraph;
    void instantiate() override {}
  };
  std::unique_ptr<capture::Graph> wrap(std::unique_ptr<capture::Graph> graph) override {
    return std::make_unique<NotInstantiated>(std::move(graph));
  }
  std::int64_t captures_ = 0;
};

/// The device accepts an update and leaves the thread block clusters of kernels as they were, and
/// the program takes it as done.
class KeptClustersIgnored final : public GraphFault {
  struct NothingKept final : capture::ForwardingGraph {
    using ForwardingGraph::ForwardingGraph;
    capture::ExecUpdate update() override {
      capture::ExecUpdate update = graph_->update();
      update.kept_clusters = 0;
      return update;
    }
  };
  std::unique_ptr<capture::Graph> wrap(std::unique_ptr<capture::Graph> graph) override {
    return std::make_unique<NothingKept>(std::move(graph));
  }
};

}  // namespace

std::shared_ptr<FaultHooks> exec_update_left_out() { return std::make_shared<UpdateLeftOut>(); }
std::shared_ptr<FaultHooks> exec_update_of_other_length_left_out() {
  return exec_update_left_out();
}
std::shared_ptr<FaultHooks> refused_exec_update_ignored() {
  return std::make_shared<RefusalIgnored>();
}
std::shared_ptr<FaultHooks> kept_clusters_ignored() {
  return std::make_shared<KeptClustersIgnored>();
}

}  // namespace graphproof::faults
