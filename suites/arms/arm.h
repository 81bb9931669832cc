// One arm of a case: a copy of the model, the engine that runs it, and the evidence of each step.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "suites/case/case_parts.h"
#include "suites/case/evidence_observer.h"
#include "suites/case/step_config.h"
#include "suites/case/watched_device.h"
#include "workloads/engines/capture/engine.h"
#include "workloads/training/checkpoint.h"

namespace graphproof::suites {

/// The inputs of a step. `word` is their name in the evidence: "capture" for the inputs with which
/// the graph is captured, "fresh" for all others.
struct StepInput {
  workloads::Batch batch;
  std::string word;
  /// The same with other numbers in the padding of images, for graph arms; empty without images.
  workloads::Batch padded_otherwise = {};
};

class InferenceJob;

/// Used from one thread. Evidence lines are written through CaseParts::scope.
class Arm {
 public:
  /// Builds model and engine with the case's stream current; seeded alike in every arm. `eager`:
  /// what the arm's outputs are compared with, for the fault that reads it in their place.
  Arm(const CaseParts& parts, std::string name, std::string impl, Watch watch,
      const std::vector<fixtures::NamedTensor>& eager = {});
  ~Arm();

  /// Runs step `index`. Unless the arm is free, waits for it and returns its results.
  Snapshot run(std::int64_t index, const StepInput& input);
  /// Writes the `step` line of step `index` and returns its results. The step took `ms`. REQUIRES:
  /// the caller has waited for it.
  Snapshot results(std::int64_t index, const StepInput& input, double ms);
  /// After the last step `last` of a free arm: waits for the device and writes the arm's one
  /// `replay` line.
  void finish(std::int64_t last);

  /// Before the first step of a graph arm: the nodes of its graphs are kept for capture_again().
  void keep_nodes() { device_.keep_nodes(); }
  /// After the last step: captures the arm's graphs a second time, in step `index`
  /// (second_capture.h).
  void capture_again(std::int64_t index, const StepInput& input);

  /// Between two steps: evaluates a batch, waits for it and returns its losses. Its launches and
  /// captures do not count for a step.
  Snapshot evaluate(std::int64_t index, const workloads::Batch& batch);
  /// Writes the line `evaluated` about all evaluations so far. `step` is the next step.
  void write_evaluated(std::int64_t step);
  /// Between two steps: the inference job of a rollout (rollout.h) with the parameters as they are.
  /// The first call makes the job, of arm NAME_rollout, and captures its graphs, with the votes of
  /// captures. Returns what each step of it has left, empty in a free arm. Waits for the device.
  std::vector<Snapshot> roll_out();
  /// The job of the rollouts. REQUIRES: roll_out().
  const InferenceJob& rollouts() const { return *rollouts_; }
  /// A checkpoint between two steps. Waits for the device.
  workloads::Checkpoint checkpoint();
  /// The engine's outputs, then the masks, on the device.
  std::vector<fixtures::NamedTensor> outputs();
  const std::string& name() const { return name_; }
  bool graphs() const { return graphs_; }
  /// The sum over the arm's graphs of capture::Graph::delayed_branches().
  std::int64_t delayed_branches() const { return device_.counts().delayed_branches; }
  /// Graph launches so far, counted on the device.
  std::int64_t launches() const { return device_.counts().replays; }
  /// Votes at the boundary `capture` if no capture has voted, so that all ranks pass the same
  /// boundaries.
  void vote_if_not_captured();
  /// Destroys the graphs. Returns how many were destroyed while the device still ran them, which is
  /// a defect.
  std::int64_t drop_graphs();

 private:
  struct Before;
  /// Waits for the device.
  Before before_step();
  void write_step(std::int64_t index, const StepInput& input, double ms, const Snapshot& left);
  void write_rng(std::int64_t index, const Before& before);
  void write_replay(std::int64_t index, const std::vector<std::int64_t>& counter_before,
                    std::int64_t fallbacks);
  /// `left` are the tensors that the step returned, `launches` the graph launches that the device
  /// counted in the step.
  void write_poison(std::int64_t index, const std::vector<fixtures::NamedTensor>& left,
                    const ReplayObserver::Replay& replay, std::int64_t launches);
  void write_handed_out(std::int64_t index);
  void note_captures();

  CaseParts parts_;
  const std::string name_, impl_;
  const Watch watch_;
  const bool graphs_;
  WatchedDevice device_;
  std::unique_ptr<workloads::TrainStep> step_;
  std::unique_ptr<CaptureObserver> observer_;  // only of a graph arm
  ReplayObserver* replays_ = nullptr;  // observer_, if this is a graph arm inspected in full
  std::unique_ptr<engines::Engine> engine_;
  std::int64_t fallbacks_ = 0;  // steps after the warm-up that launched no graph
  /// Counts of all evaluations so far.
  struct Evaluated {
    std::int64_t evaluations = 0, captures = 0, replays = 0, announced = 0;
  };
  Evaluated evaluated_;
  std::unique_ptr<InferenceJob> rollouts_;  // from the first rollout on
  std::int64_t rolled_out_ = 0;             // rollouts so far
  /// By layer: forwards so far that were not of training, but of rollouts.
  std::vector<std::int64_t> inferred_;
  std::int64_t first_captures_ = 0;  // captures begun in the first step that captured any
  at::Tensor handed_out_losses_;     // of the previous step, as a caller might keep them
  std::string handed_out_digest_;    // of handed_out_losses_ when the engine returned them
};

}  // namespace graphproof::suites
