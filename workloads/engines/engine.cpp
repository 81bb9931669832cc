#include "workloads/engines/capture/engine.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "workloads/engines/modules/callables.h"
#include "workloads/engines/modules/local.h"
#include "workloads/engines/modules/transformer_engine.h"
#include "workloads/engines/step/eager.h"
#include "workloads/engines/step/full_iteration.h"
#include "workloads/engines/step/manual.h"

namespace graphproof::engines {
namespace {

/// How one engine is made.
struct Row {
  std::string_view impl;
  std::unique_ptr<Engine> (*make)(const EngineConfig&, capture::Device&, c10::Stream,
                                  workloads::TrainStep&, Observer*);
};
/// One row for each engine of the traits, in any order.
constexpr std::array<Row, kEngineTraits.size()> kEngines{
    {{"none", make_eager},
     {"local", make_local},
     {"transformer_engine", make_transformer_engine},
     {"callables", make_callables},
     {"manual", make_manual},
     {"full_iteration", make_full_iteration}}};

}  // namespace

std::unique_ptr<Engine> make_engine(const EngineConfig& config, capture::Device& device,
                                    c10::Stream stream, workloads::TrainStep& step,
                                    Observer* observer) {
  const std::string_view impl = traits_of(config.impl).impl;
  const Row& row = *std::ranges::find(kEngines, impl, &Row::impl);
  const auto make = [&row, stream, &step](const EngineConfig& of, capture::Device& on,
                                          Observer* seen_by) {
    return row.make(of, on, stream, step, seen_by);
  };
  std::unique_ptr<Engine> made;
  if (!step.faults().makes_engine({config, device, stream, step, observer}, make, made))
    made = make(config, device, observer);
  return made;
}

}  // namespace graphproof::engines
