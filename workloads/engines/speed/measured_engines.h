// The engines that are measured in one layout, each with a training step of its own from the same
// seed, captured and run once from its graphs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "workloads/engines/capture/engine.h"

namespace graphproof::speed {

/// One way to run a step, named as in tables.h.
struct Way {
  std::string name;
  std::function<void(const workloads::Batch&)> step;
  double graph_kernels = 0;  // that the graphs launched in a step hold, by their census
};

class MeasuredEngines {
 public:
  /// Collective over the layout. `modules`: what local, transformer_engine and callables capture;
  /// empty is the whole layer. `variants`: floors, and engines without their checks, as well.
  MeasuredEngines(capture::Device& device, const workloads::ModelConfig& model,
                  const workloads::Layout& layout,
                  const std::vector<workloads::ModuleKind>& modules, bool variants);
  ~MeasuredEngines();
  MeasuredEngines(const MeasuredEngines&) = delete;
  MeasuredEngines& operator=(const MeasuredEngines&) = delete;

  const std::vector<Way>& ways() const { return ways_; }
  /// Batches that take turns.
  const std::vector<workloads::Batch>& batches() const { return batches_; }

 private:
  class KernelCount;
  struct Subject {
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
  std::vector<Subject> subjects_;
  std::vector<Way> ways_;
};

}  // namespace graphproof::speed
