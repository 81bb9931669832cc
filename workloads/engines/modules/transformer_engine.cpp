#include "workloads/engines/modules/transformer_engine.h"

#include <limits>

namespace graphproof::engines {

std::int64_t warm_up_passes(std::int64_t warmup_steps, std::int64_t microbatches,
                            std::int64_t captured_microbatches) {
  constexpr std::int64_t kEagerRuns = 10;  // of each layer, before its capture
  const std::int64_t missing = kEagerRuns - warmup_steps * microbatches;
  return missing <= 0 ? 1 : (missing + captured_microbatches - 1) / captured_microbatches;
}

AheadOfTime::CapturePolicy transformer_engine_policy() {
  return {.one_graph_a_layer = true,
          .shared_memory = true,
          .warm_up_passes = warm_up_passes,
          .passes_over_schedule = true,
          .graphs = {.weight_gradients = ModuleGraphs::WeightGradients::cloned,
                     .warm_up_gradient = std::numeric_limits<double>::quiet_NaN()}};
}

std::unique_ptr<Engine> make_transformer_engine(const EngineConfig& config, capture::Device& device,
                                                c10::Stream stream, workloads::TrainStep& step,
                                                Observer* observer) {
  return std::make_unique<AheadOfTime>(config, device, stream, step, observer,
                                       captured_schedule(step), transformer_engine_policy());
}

}  // namespace graphproof::engines
