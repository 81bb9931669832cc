// One arm of a case: a copy of the model, the engine that runs it, and the probes around each of
// its steps.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fixtures/comm/process_groups.h"
#include "suites/case/case_scope.h"
#include "suites/case/evidence_observer.h"
#include "suites/case/step_config.h"
#include "suites/case/watched_device.h"
#include "workloads/engines/capture/engine.h"
#include "workloads/training/checkpoint.h"

namespace graphproof::suites {

/// What all arms of a case are built from. References outlive the arms.
struct CaseParts {
  CaseScope& scope;
  capture::Device& device;
  const StepConfig& config;
  c10::Stream stream;           // where everything of the case runs and is captured
  comm::ProcessGroups* groups;  // null where a test runs a rank alone, without MPI
};

/// How closely an arm is looked at. free: nothing between first and last step waits for the device,
/// captures apart. full: every step leaves its lines, about what it left, learning rate, random
/// numbers, replays.
enum class Watch { free, full };

/// A step's inputs and what evidence calls them: "fresh", or "capture" for those that the graph was
/// captured with.
struct StepInput {
  workloads::Batch batch;
  std::string word;
};

/// What a step left, in host memory: losses, gradients, parameters as the engine hands them out,
/// then masks.
using Snapshot = std::vector<fixtures::NamedTensor>;

class Arm {
 public:
  /// Builds model and engine with the case's stream current; seeded alike in every arm. `eager`:
  /// what the arm's outputs are compared with, for the fault that reads it in their place.
  Arm(const CaseParts& parts, std::string name, std::string impl, Watch watch,
      const std::vector<fixtures::NamedTensor>& eager = {});
  ~Arm();

  /// Runs step `index` and, unless the arm is free, waits for it and returns what it left.
  Snapshot run(std::int64_t index, const StepInput& input);
  /// Of step `index`, which the caller has waited for and which took `ms`: writes its `step` line
  /// and returns what it left.
  Snapshot look(std::int64_t index, const StepInput& input, double ms);
  /// Of a free arm, after its last step `last`: waits for the device and writes its one `replay`
  /// line.
  void finish(std::int64_t last);

  /// Between two steps: evaluates a batch, waits for it and returns its losses. What it launches
  /// and captures is no part of a step's counts.
  Snapshot evaluate(std::int64_t index, const workloads::Batch& batch);
  /// The line `evaluated` of what evaluate() did so far, before step `step`.
  void write_evaluated(std::int64_t step);
  /// Between two steps. Waits for the device.
  workloads::Checkpoint checkpoint();
  /// The engine's outputs, then the masks, on the device.
  std::vector<fixtures::NamedTensor> outputs();
  const std::string& name() const { return name_; }
  bool graphs() const { return graphs_; }
  /// Of its graphs together (capture::Graph::delayed_branches).
  std::int64_t delayed_branches() const { return device_.counts().delayed_branches; }
  /// Votes at the boundary `capture` if no capture did, so that all ranks pass the same boundaries.
  void settle_capture();
  /// Returns how many graphs went while the device still ran them; any is a defect.
  std::int64_t drop_graphs();

 private:
  struct Before;
  Before look_before(std::int64_t index);
  void write_step(std::int64_t index, const StepInput& input, double ms, const Snapshot& left);
  void write_rng(std::int64_t index, const Before& before);
  void write_replay(std::int64_t index, const std::vector<std::int64_t>& counter_before,
                    std::int64_t fallbacks);
  /// `left`: what the step handed out. `launches`: of graphs, as the device counted them meanwhile.
  void write_poison(std::int64_t index, const std::vector<fixtures::NamedTensor>& left,
                    const ReplayObserver::Replay& replay, std::int64_t launches);
  void write_kept(std::int64_t index);
  void note_captures();

  CaseParts parts_;
  const std::string name_;
  const Watch watch_;
  const bool graphs_;
  WatchedDevice device_;
  std::unique_ptr<workloads::TrainStep> step_;
  std::unique_ptr<CaptureObserver> observer_;  // of a graph arm
  ReplayObserver* replays_ = nullptr;          // observer_ of a graph arm that is looked at in full
  std::unique_ptr<engines::Engine> engine_;
  std::int64_t fallbacks_ = 0;  // steps after the warm-up that launched no graph
  struct Evaluated {
    std::int64_t evaluations = 0, captures = 0, replays = 0, watched = 0;
  };
  Evaluated evaluated_;
  std::int64_t first_captures_ = 0;  // captures begun in the first step that captured any
  at::Tensor kept_losses_;           // of the step before, as a caller keeps them
  std::string kept_digest_;          // when they were handed out
};

}  // namespace graphproof::suites
