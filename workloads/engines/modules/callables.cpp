#include "workloads/engines/modules/callables.h"

#include <limits>
#include <stdexcept>

namespace graphproof::engines {

AheadOfTime::CapturePolicy callables_policy() {
  // num_warmup_iters of make_graphed_callables, which ignores earlier runs of the modules.
  constexpr std::int64_t kPasses = 3;
  return {.warm_up_passes = [](std::int64_t, std::int64_t, std::int64_t) { return kPasses; },
          .graphs = {.weight_gradients = ModuleGraphs::WeightGradients::aliased,
                     .warm_up_gradient = std::numeric_limits<double>::quiet_NaN(),
                     .results_stay = true,
                     .unused_inputs = false,
                     .unchanged_parameters = true}};
}

std::unique_ptr<Engine> make_callables(const EngineConfig& config, capture::Device& device,
                                       c10::Stream stream, workloads::TrainStep& step,
                                       Observer* observer) {
  if (step.layout().pp > 1)
    throw std::invalid_argument("callables: got pp = " + std::to_string(step.layout().pp) +
                                "; want 1; why: a callable has one pair of graphs, and a stage has "
                                "several microbatches outstanding; next: set impl to "
                                "local or transformer_engine");
  return std::make_unique<AheadOfTime>(config, device, stream, step, observer,
                                       captured_schedule(step), callables_policy());
}

}  // namespace graphproof::engines
