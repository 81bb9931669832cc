// The observers of a graph arm's engine. CaptureObserver writes the evidence of captures.
// ReplayObserver also inspects each replay; it poisons outputs and waits for the device, so free
// runs do not use it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fixtures/inspect/address_registry.h"
#include "suites/case/case_scope.h"
#include "suites/case/watched_device.h"
#include "workloads/engines/capture/engine.h"

namespace graphproof::suites {

/// How many forwards each layer has run so far. Waits for the device.
std::vector<std::int64_t> layer_counts(capture::Device& device, workloads::TrainStep& step);

/// A digest of everything that a capture must not change: tensors and generator states. Waits for
/// the device.
std::string state_digest(const std::vector<fixtures::NamedTensor>& state,
                         fixtures::RngTracker& rng);

/// The nodes of a graph, and the step in which it was captured.
struct CapturedNodes {
  std::int64_t step = 0;
  std::shared_ptr<const capture::NodeList> nodes;
};

/// Writes the lines `capture` and `state`, with axis placement per_rank the line `placement` of the
/// pool of the arm's first capture, and votes after each capture, before any rank replays.
/// After the capture of a graph of the vision encoder or of multi-token prediction ranks vote only
/// if it failed, because other stages have no such capture and would be waited for. All references
/// outlive the observer.
class CaptureObserver : public engines::Observer {
 public:
  CaptureObserver(CaseScope& scope, const WatchedDevice& device, workloads::TrainStep& step,
                  std::string arm);

  void before_capture(const std::string& graph,
                      const std::vector<fixtures::NamedTensor>& state) override;
  void after_capture(const engines::CaptureReport& report,
                     const std::vector<fixtures::NamedTensor>& state) override;
  void failed_capture(const engines::CaptureReport& report) override;

  /// Sets the step that the arm runs next.
  void at_step(std::int64_t step) { step_index_ = step; }
  std::int64_t step() const { return step_index_; }
  bool captured() const { return captured_; }
  /// The first capture of each graph, by name; only of those whose nodes the device has kept.
  const std::map<std::string, CapturedNodes>& nodes() const { return nodes_; }

 protected:
  CaseScope& scope_;
  const WatchedDevice& watched_;
  workloads::TrainStep& step_;
  const std::string arm_;
  std::int64_t step_index_ = 0;

 private:
  std::string state_before_;
  std::map<std::string, CapturedNodes> nodes_;
  bool captured_ = false;  // a capture has ended with a vote, successfully or not
  bool placed_ = false;    // the line about the pool of the arm's first capture is written
};

/// Also poisons all declared outputs before a replay and counts the poison that is left after it.
/// The arm writes the lines, because an engine that never replays does not call the observer.
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

  /// The observations of a step or an evaluation, which may consist of several replays.
  struct Replay {
    std::set<std::uint64_t> poisoned, registered;  // addresses
    std::int64_t poisoned_bytes = 0;
    std::int64_t canary_words = 0;  // elements of declared outputs that are still poisoned
    std::int64_t announced = 0;     // graph launches that the engine has announced
    std::int64_t inspected = 0;     // graph launches after which outputs were inspected
    std::vector<std::int64_t> counter_before;
  };
  /// Returns and resets the observations since the last call; nothing if the engine announced no
  /// replay.
  std::optional<Replay> take();

 private:
  void begin(const std::string& graph, const std::vector<fixtures::NamedTensor>& statics,
             const std::vector<fixtures::NamedTensor>& outputs);
  std::vector<record::MovedTensor> moved(const std::string& graph,
                                         const std::vector<fixtures::NamedTensor>& statics);
  void write_addresses(const std::string& graph, std::vector<record::MovedTensor> moved);

  WatchedDevice& device_;
  fixtures::AddressRegistry addresses_;
  std::set<std::string> registered_;
  std::optional<Replay> replay_;
  bool in_step_ = false;  // between before_step and after_step
};

}  // namespace graphproof::suites
