// Lists of the tensors of a training step, by their role around a graph: outputs, overwritten
// tensors, state that a capture must not change, static tensors.
#pragma once

#include <vector>

#include "workloads/training/train_step.h"

namespace graphproof::engines {

using fixtures::NamedTensor;

inline void append(std::vector<NamedTensor>& to, const std::vector<NamedTensor>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// The tensors by which steps are compared: losses, gradients, ledgers, parameters, optimizer
/// state.
inline std::vector<NamedTensor> step_outputs(workloads::TrainStep& step) {
  std::vector<NamedTensor> tensors{{"losses", step.losses()}};
  append(tensors, step.gradients());
  append(tensors, step.ledgers());
  append(tensors, step.parameters());
  append(tensors, step.optimizer_state());
  return tensors;
}

/// The tensors that forward and backward write completely in each step, whatever they held before:
/// losses, gradients, ledgers, masks.
inline std::vector<NamedTensor> overwritten_outputs(workloads::TrainStep& step) {
  std::vector<NamedTensor> tensors{{"losses", step.losses()}};
  append(tensors, step.gradients());
  append(tensors, step.ledgers());
  append(tensors, step.masks());
  return tensors;
}

/// The tensors that a capture must leave unchanged. The layer counter is not included, because it
/// has its own check.
inline std::vector<NamedTensor> captured_state(workloads::TrainStep& step) {
  std::vector<NamedTensor> tensors{{"learning_rate", step.learning_rate()}};
  append(tensors, step_outputs(step));
  append(tensors, step.masks());
  return tensors;
}

/// The tensors of a batch, named "PART.MICROBATCH".
inline std::vector<NamedTensor> batch_tensors(const workloads::Batch& batch) {
  std::vector<NamedTensor> tensors;
  for (std::size_t m = 0; m < batch.tokens.size(); ++m)
    for (const auto& [name, part] : workloads::kBatchParts)
      if (!(batch.*part).empty())
        tensors.push_back({name + ("." + std::to_string(m)), (batch.*part)[m]});
  return tensors;
}

/// The tensors whose addresses a graph of forward and backward holds, with the inputs `batch`.
/// `with_optimizer`: the graph also holds the optimizer step.
inline std::vector<NamedTensor> static_tensors(workloads::TrainStep& step,
                                               const workloads::Batch& batch, bool with_optimizer) {
  std::vector<NamedTensor> tensors = batch_tensors(batch);
  append(tensors, step_outputs(step));
  append(tensors, step.masks());
  tensors.push_back({"layer_counter", step.layer_counter()});
  if (step.first_microbatch().defined())
    tensors.push_back({"first_microbatch", step.first_microbatch()});
  if (with_optimizer) tensors.push_back({"learning_rate", step.learning_rate()});
  return tensors;
}

/// The tensors whose addresses a graph of the optimizer step holds.
inline std::vector<NamedTensor> optimizer_tensors(workloads::TrainStep& step) {
  std::vector<NamedTensor> tensors{{"learning_rate", step.learning_rate()}};
  append(tensors, step.parameters());
  append(tensors, step.gradients());
  append(tensors, step.optimizer_state());
  return tensors;
}

/// The tensors whose addresses a graph of TrainStep::evaluate() holds, with the inputs `batch`.
inline std::vector<NamedTensor> evaluation_tensors(workloads::TrainStep& step,
                                                   const workloads::Batch& batch) {
  std::vector<NamedTensor> tensors = batch_tensors(batch);
  append(tensors, step.parameters());
  tensors.push_back({"evaluation_losses", step.evaluation_losses()});
  return tensors;
}

}  // namespace graphproof::engines
