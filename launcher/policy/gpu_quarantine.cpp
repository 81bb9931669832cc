#include "launcher/policy/gpu_quarantine.h"

#include "matrix/input/input_error.h"

namespace graphproof::launcher {

GpuQuarantine::Observation GpuQuarantine::observe(const record::Context& context) {
  const std::string& batch = context.batch;
  const std::vector<Slot> slots = schedule_.slots_of(batch);
  Observation observation;
  if (context.infra) troubled_.insert(batch);
  if (context.infra && context.infra->kind == "gpu" && !avoided_.contains(batch)) {
    avoided_.emplace(batch, slots);
    if (const std::vector<Slot> struck_out = schedule_.strike(batch); !struck_out.empty())
      observation.notices.push_back(withdraw(struck_out, context.infra->why));
    observation.end_batch = true;
  }
  if (!context.cleanup.gpu_memory) return observation;
  // Memory that stays in use would be part of the next case's measurements.
  for (const auto& [gpu, bytes] : *context.cleanup.gpu_memory) {
    const Slot slot = slots.at(static_cast<std::size_t>(gpu));
    observation.notices.push_back(withdraw(
        {slot},
        std::to_string(bytes) + " bytes stayed in use after batch " + batch + users_(slot)));
  }
  return observation;
}

std::string GpuQuarantine::withdraw_from(const std::string& batch,
                                         const std::vector<std::string>& unkillable) {
  return withdraw(schedule_.slots_of(batch),
                  "held by " + matrix::listed(unkillable, unkillable.size()) + " of batch " +
                      batch + ", which even SIGKILL does not end");
}

std::vector<Slot> GpuQuarantine::avoided(const std::string& batch) const {
  const auto found = avoided_.find(batch);
  return found == avoided_.end() ? std::vector<Slot>() : found->second;
}

std::string GpuQuarantine::withdraw(const std::vector<Slot>& slots, const std::string& why) {
  schedule_.withdraw(slots);
  std::set<Slot> gpus;
  for (const Slot slot : slots) gpus.insert(schedule_.gpu_of(slot));
  std::vector<std::string> names;
  for (const Slot gpu : gpus) names.push_back(std::to_string(gpu));
  const std::string which = "slots " + matrix::listed(names, names.size());
  reasons_ += (reasons_.empty() ? "" : "; ") + which + ": " + why;
  return which + " are not leased again: " + why;
}

}  // namespace graphproof::launcher
