// Two copies of one training step in lockstep, one eager and one under an engine, for tests of
// engines: they get the same batches and learning rates and are compared byte for byte after each
// step.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fixtures/inspect/address_registry.h"
#include "fixtures/inspect/poison.h"
#include "fixtures/inspect/tensor_comparison.h"
#include "fixtures/inspect/tensor_digest.h"
#include "workloads/engines/capture/engine.h"
#include "workloads/faults/plant.h"
#include "workloads/testing/device_under_test.h"

namespace graphproof::engines {

/// Records the reports of an engine, and poisons the outputs before each replay.
struct Witness : Observer {
  explicit Witness(const capture::Device& device) : addresses(device), device_(device) {}

  void before_capture(const std::string& graph, const std::vector<NamedTensor>& state) override {
    calls.push_back("before_capture " + graph);
    state_before = fixtures::digest(state);
  }
  void after_capture(const CaptureReport& report, const std::vector<NamedTensor>& state) override {
    calls.push_back("after_capture " + report.graph);
    reports.push_back(report);
    state_after = fixtures::digest(state);
    if (state_after != state_before) changed_by.push_back(report.graph);
  }
  void before_replay(const std::string& graph, const std::vector<NamedTensor>& statics,
                     const std::vector<NamedTensor>& outputs) override {
    calls.push_back("before_replay " + graph);
    if (registered.insert(graph).second) {
      addresses.capture(graph, statics);
      for (const auto& [name, tensor] : statics)
        first_address[graph][name] = device_.address(tensor);
    }
    for (const auto& moved : addresses.moved(graph, statics)) moved_tensors.push_back(moved.tensor);
    fixtures::poison(outputs);
    canaries_poisoned += fixtures::canary_words(outputs);
  }
  void after_replay(const std::string& graph, const std::vector<NamedTensor>& outputs) override {
    calls.push_back("after_replay " + graph);
    canaries += fixtures::canary_words(outputs);
  }
  void before_step(const std::vector<NamedTensor>& statics,
                   const std::vector<NamedTensor>& outputs) override {
    before_replay("all", statics, outputs);
  }
  void after_step(const std::vector<NamedTensor>& outputs) override {
    after_replay("all", outputs);
  }
  void failed_capture(const CaptureReport& report) override { failures.push_back(report); }

  std::vector<std::string> calls, moved_tensors;
  std::vector<std::string> changed_by;  // captures that changed the state
  std::vector<CaptureReport> reports, failures;
  std::string state_before, state_after;
  fixtures::AddressRegistry addresses;
  std::set<std::string> registered;
  std::map<std::string, std::map<std::string, std::uint64_t>> first_address;  // by graph and name
  std::int64_t canaries_poisoned = 0, canaries = 0;

 private:
  const capture::Device& device_;
};

/// Owns both steps, the engine and what it reports.
class TwinSteps {
 public:
  static constexpr std::uint64_t kSeed = 5;

  /// `fault` is planted in the engine and its copy of the step; the eager copy is sound.
  TwinSteps(const workloads::ModelConfig& config, const workloads::Layout& layout,
            const EngineConfig& engine, fixtures::Fault fault = fixtures::Fault::none)
      : TwinSteps(config, layout, engine, faults::plant(fault)) {}
  TwinSteps(const workloads::ModelConfig& config, const workloads::Layout& layout,
            const EngineConfig& engine, std::shared_ptr<faults::FaultHooks> faults)
      : device_(workloads::device_under_test()),
        config_(config),
        layout_(layout),
        stream_(device_.stream_from_pool()),
        guard_(stream_),
        eager_step_(config, layout, device_, kSeed),
        graph_step_(config, layout, device_, kSeed, std::move(faults)),
        witness(device_),
        eager(make_engine({.impl = "none"}, device_, stream_, eager_step_, nullptr)) {
    graph_step_.faults().compared_with(eager->outputs());
    graph = make_engine(engine, device_, stream_, graph_step_, &witness);
  }

  /// Runs step `index` in both, each index with another batch and another rate, and returns how
  /// they compare.
  fixtures::Comparison step(std::int64_t index) {
    const auto batch =
        workloads::make_batch(config_, layout_, kSeed, index, device_.torch_device());
    const double rate = 0.1 / static_cast<double>(1 + index);
    eager->step(batch, rate);
    graph->step(batch, rate);
    device_.synchronize();
    auto left = eager->outputs(), right = graph->outputs();
    for (const auto& mask : eager_step_.masks()) left.push_back(mask);
    for (const auto& mask : graph_step_.masks()) right.push_back(mask);
    return fixtures::compare(left, right);
  }

  workloads::Batch batch(std::int64_t index) const {
    return workloads::make_batch(config_, layout_, kSeed, index, device_.torch_device());
  }

 private:
  capture::Device& device_;
  workloads::ModelConfig config_;
  workloads::Layout layout_;
  c10::Stream stream_;
  c10::StreamGuard guard_;
  workloads::TrainStep eager_step_, graph_step_;

 public:
  Witness witness;
  std::unique_ptr<Engine> eager, graph;
  capture::Device& device() { return device_; }
  c10::Stream stream() const { return stream_; }
  workloads::TrainStep& graph_step() { return graph_step_; }
  workloads::TrainStep& eager_step() { return eager_step_; }
};

/// A text for messages; empty if both are equal.
inline std::string difference(const fixtures::Comparison& comparison) {
  if (comparison.equal) return {};
  const auto& m = *comparison.mismatch;
  return m.tensor + "[" + std::to_string(m.element) + "]: eager " + std::to_string(m.left) +
         ", graph " + std::to_string(m.right) + ", " + std::to_string(m.differing) + " of " +
         std::to_string(m.elements) + " differ";
}

}  // namespace graphproof::engines
