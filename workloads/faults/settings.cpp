// Faults of settings that change no result: they are lost on their way to the step, and only what
// the device does tells.
#include <memory>

#include "workloads/faults/planted.h"

namespace graphproof::faults {
namespace {

class SettingLost final : public FaultHooks {
 public:
  explicit SettingLost(bool workloads::ModelConfig::* setting) : setting_(setting) {}
  void plan_step(const StepPlan& plan) override { plan.config.*setting_ = false; }

 private:
  bool workloads::ModelConfig::* setting_;
};

std::shared_ptr<FaultHooks> lost(bool workloads::ModelConfig::* setting) {
  return std::make_shared<SettingLost>(setting);
}

}  // namespace

std::shared_ptr<FaultHooks> activations_not_offloaded() {
  return lost(&workloads::ModelConfig::cpu_offload);
}
std::shared_ptr<FaultHooks> autocast_left_out() { return lost(&workloads::ModelConfig::autocast); }
std::shared_ptr<FaultHooks> autocast_cache_left_off() {
  return lost(&workloads::ModelConfig::autocast_cache);
}

}  // namespace graphproof::faults
