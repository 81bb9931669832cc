// The engines that are measured in one layout. Each has its own training step with the same seed,
// has captured its graphs and has replayed them once.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "workloads/engines/capture/engine.h"

namespace graphproof::speed {

/// How one engine, or the floor of one, runs a step. The name is that of StepTimes::block_ms.
struct MeasuredStep {
  std::string name;
  std::function<void(const workloads::Batch&)> run;
  double graph_kernels = 0;  // kernels in the graphs that a step launches, from their census
};

/// Owns the engines and their steps. Used by one thread.
class MeasuredEngines {
 public:
  /// Collective over the layout. `modules` are those that local, transformer_engine and callables
  /// capture; empty: the whole layer. `variants`: also measure floors and engines without their
  /// checks.
  MeasuredEngines(capture::Device& device, const workloads::ModelConfig& model,
                  const workloads::Layout& layout,
                  const std::vector<workloads::ModuleKind>& modules, bool variants);
  ~MeasuredEngines();
  MeasuredEngines(const MeasuredEngines&) = delete;
  MeasuredEngines& operator=(const MeasuredEngines&) = delete;

  const std::vector<MeasuredStep>& steps() const { return steps_; }
  /// The batches of consecutive steps, used cyclically.
  const std::vector<workloads::Batch>& batches() const { return batches_; }

 private:
  class KernelCount;
  struct Measured {
    std::unique_ptr<workloads::TrainStep> step;
    std::unique_ptr<KernelCount> kernels;
    std::unique_ptr<engines::Engine> engine;
  };
  void add(const std::string& name, const engines::EngineConfig& config, bool floor);

  capture::Device& device_;
  c10::Stream stream_;
  workloads::ModelConfig model_;
  workloads::Layout layout_;
  std::vector<workloads::Batch> batches_;
  std::vector<Measured> measured_;
  std::vector<MeasuredStep> steps_;
};

}  // namespace graphproof::speed
