#include "suites/rank/planted_stall.h"

#include <chrono>
#include <thread>

namespace graphproof::suites {
namespace {

// Four times the limit of a replay under this fault. The launcher ends the ranks much earlier.
constexpr std::chrono::milliseconds kStall{20'000};

}  // namespace

PlantedStall::PlantedStall(const std::optional<faults::RunPlan::Stall>& plan, int rank,
                           capture::Device& device)
    : plan_(plan && plan->rank == rank ? plan : std::nullopt),
      device_(device),
      captured_(device.name() == "cuda") {
  constexpr double kShort_ms = 0.001;
  if (plan_) device_.delay_work(capture::DelayedStreams::current, kShort_ms);
}

void PlantedStall::before(const record::Collective& collective, const CaseScope& scope) {
  if (!plan_ || collective.group != plan_->group || scope.arm() != "lockstep_graph") return;
  const bool capturing = device_.capturing(device_.current_stream());
  const bool inside_graph = captured_ ? capturing : !capturing && scope.phase() == Phase::replay;
  if (!inside_graph || ++met_ != plan_->ahead_of) return;
  if (captured_) {
    device_.delay_work(capture::DelayedStreams::current, static_cast<double>(kStall.count()));
  } else {
    std::this_thread::sleep_for(kStall);
  }
}

}  // namespace graphproof::suites
