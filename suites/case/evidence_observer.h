// What a graph arm's engine is watched by: around captures (both observers) and around replays (the
// thorough one, which poisons outputs and waits for the device, so a free run does not use it).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fixtures/inspect/address_registry.h"
#include "suites/case/case_scope.h"
#include "suites/case/watched_device.h"
#include "workloads/engines/capture/engine.h"

namespace graphproof::suites {

/// Forwards run by each layer so far, read from device memory after waiting for all streams.
std::vector<std::int64_t> layer_counts(capture::Device& device, workloads::TrainStep& step);

/// Everything that a capture must leave as it found it, as one digest: tensors and generator
/// states.
std::string state_digest(const std::vector<fixtures::NamedTensor>& state,
                         fixtures::RngTracker& rng);

/// Writes `capture` and `state` lines and lets the ranks agree after each capture, before any of
/// them replays. All references outlive the observer.
class CaptureObserver : public engines::Observer {
 public:
  CaptureObserver(CaseScope& scope, const WatchedDevice& device, workloads::TrainStep& step,
                  std::string arm);

  void before_capture(const std::string& graph,
                      const std::vector<fixtures::NamedTensor>& state) override;
  void after_capture(const engines::CaptureReport& report,
                     const std::vector<fixtures::NamedTensor>& state) override;
  void failed_capture(const engines::CaptureReport& report) override;

  /// The step that the arm is about to run.
  void at_step(std::int64_t step) { step_index_ = step; }
  std::int64_t step() const { return step_index_; }
  bool captured() const { return captured_; }

 protected:
  CaseScope& scope_;
  const WatchedDevice& watched_;
  workloads::TrainStep& step_;
  const std::string arm_;
  std::int64_t step_index_ = 0;

 private:
  std::string state_before_;
  bool captured_ = false;  // an after_capture was seen, successful or not
};

/// Also poisons every declared output before a replay and keeps what it found after it; the arm
/// writes the lines, because an engine that never replays would never call.
class ReplayObserver final : public CaptureObserver {
 public:
  ReplayObserver(CaseScope& scope, WatchedDevice& device, workloads::TrainStep& step,
                 std::string arm);

  void before_replay(const std::string& graph, const std::vector<fixtures::NamedTensor>& statics,
                     const std::vector<fixtures::NamedTensor>& outputs) override;
  void after_replay(const std::string& graph,
                    const std::vector<fixtures::NamedTensor>& outputs) override;
  void before_step(const std::vector<fixtures::NamedTensor>& statics,
                   const std::vector<fixtures::NamedTensor>& outputs) override;
  void after_step(const std::vector<fixtures::NamedTensor>& outputs) override;

  /// Of a whole step or evaluation: one replay, or all those that the engine needs for it.
  struct Replay {
    std::set<std::uint64_t> poisoned, registered;  // addresses
    std::int64_t poisoned_bytes = 0;
    std::int64_t canary_words = 0;            // left in the declared outputs
    std::int64_t watched = 0, looked_at = 0;  // graph launches that were announced, and those
                                              // behind which outputs were looked at
    std::vector<std::int64_t> counter_before;
  };
  /// The replay of what just ran; nothing when the engine announced none. Forgets it.
  std::optional<Replay> take();

 private:
  void begin(const std::string& graph, const std::vector<fixtures::NamedTensor>& statics,
             const std::vector<fixtures::NamedTensor>& outputs);
  record::Json moved(const std::string& graph, const std::vector<fixtures::NamedTensor>& statics);
  void write_addresses(const std::string& graph, record::Json moved);

  WatchedDevice& device_;
  fixtures::AddressRegistry addresses_;
  std::set<std::string> registered_;
  std::optional<Replay> replay_;
  bool in_step_ = false;  // between before_step and after_step
};

}  // namespace graphproof::suites
