// Which parts of a model an engine of modules captures.
#pragma once

#include <algorithm>

#include "workloads/config/model_config.h"
#include "workloads/engines/capture/engine.h"
#include "workloads/forward/module_runner.h"

namespace graphproof::engines {

/// The parts that a configuration chooses: those of its modules, in the layers of its models.
/// Constant, so any thread may use it.
class CapturedParts {
 public:
  CapturedParts(const EngineConfig& config, const workloads::ModelConfig& model)
      : modules_(config.modules),
        models_(config.captured_models),
        first_encoder_layer_(model.first_encoder_layer()) {
    if (modules_.empty()) modules_ = {workloads::ModuleKind::layer};
  }

  bool has(const workloads::ModuleCall& call) const {
    const bool of_encoder = call.layer >= first_encoder_layer_;
    return models_ != (of_encoder ? CapturedModels::decoder : CapturedModels::encoder) &&
           std::ranges::find(modules_, call.kind) != modules_.end();
  }

 private:
  std::vector<workloads::ModuleKind> modules_;
  CapturedModels models_;
  std::int64_t first_encoder_layer_;
};

}  // namespace graphproof::engines
