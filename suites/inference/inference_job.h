// The inference job of an arm: its decoder on the model of a training step, and the evidence of its
// steps.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "suites/case/case_parts.h"
#include "suites/case/evidence_observer.h"
#include "suites/case/watched_device.h"

namespace graphproof::suites {

/// What padded rows hold. No result may depend on it, so arms that are compared have others.
enum class Padding { zeros, others };

/// How the arm of an inference job runs.
struct InferenceArm {
  std::string name;    // in the evidence
  bool graph = false;  // with the case's inference_scope; otherwise eagerly
  Padding padding = Padding::zeros;
  Watch watch = Watch::full;  // free: nothing waits for the device after the captures
};

/// One job, with its own cache and, if it is of a graph arm, its own graphs. Used from one thread.
/// Evidence lines are written through CaseParts::scope.
class InferenceJob {
 public:
  /// Builds the decoder with the case's stream current. REQUIRES: parts.config.decoding. `step`
  /// outlives it.
  InferenceJob(const CaseParts& parts, workloads::TrainStep& step, InferenceArm arm);
  ~InferenceJob();

  const std::string& name() const { return arm_.name; }
  const engines::Decoder& decoder() const { return *decoder_; }
  workloads::TrainStep& step() const { return step_; }

  /// Captures all sizes. Votes after each capture, as all ranks do.
  void capture();
  /// Runs step `index` of the plan, which has the number `first` + `index` in the evidence. Unless
  /// the arm is free, waits for it and returns its results.
  Snapshot run(std::int64_t index, std::int64_t first = 0);
  /// After the last step `index` of a free arm: waits for it, writes its lines and returns its
  /// results.
  Snapshot finish(std::int64_t index) { return finish(index, index, 0); }
  /// Destroys the graphs. Waits for the device.
  void drop_graphs();

 private:
  Snapshot finish(std::int64_t index, std::int64_t number, std::int64_t launches_before);
  void write_poison(std::int64_t number, std::int64_t launches);

  CaseParts parts_;
  workloads::TrainStep& step_;
  const InferenceArm arm_;
  WatchedDevice device_;
  std::unique_ptr<CaptureObserver> observer_;  // only of a graph arm
  ReplayObserver* replays_ = nullptr;          // observer_, if this is a graph arm in full
  std::unique_ptr<engines::Decoder> decoder_;
};

}  // namespace graphproof::suites
