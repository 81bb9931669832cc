#include "workloads/engines/capture/engine.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

#include "workloads/engines/modules/callables.h"
#include "workloads/engines/modules/local.h"
#include "workloads/engines/modules/transformer_engine.h"
#include "workloads/engines/step/eager.h"
#include "workloads/engines/step/full_iteration.h"
#include "workloads/engines/step/manual.h"

namespace graphproof::engines {
namespace {

struct Row {
  std::string_view impl;
  std::unique_ptr<Engine> (*make)(const EngineConfig&, capture::Device&, c10::Stream,
                                  workloads::TrainStep&, Observer*);
};
/// How each engine of the traits is made.
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
  EngineConfig effective = config;
  // M46 stands for a capture at the first call, of work that makes something on its first use; M168
  // for one that hides it.
  if (config.fault.is("M46") || config.fault.is("M168")) effective.warmup_steps = 0;
  const std::string_view impl = traits_of(config.impl).impl;
  return std::ranges::find(kEngines, impl, &Row::impl)
      ->make(effective, device, stream, step, observer);
}

void Engine::floor_step(const workloads::Batch&, double) {
  throw std::logic_error(
      "engine: got floor_step() of an engine without a floor; want an engine whose header "
      "describes "
      "one; why: the speed bench compares no other engine with its floor; next: measure step()");
}

void refuse_after_drop(bool dropped) {
  if (!dropped) return;
  throw std::logic_error(
      "engine: got step() after drop_graphs(); want no more steps; why: the captured graphs and "
      "their memory are gone; next: make a new engine");
}

}  // namespace graphproof::engines
