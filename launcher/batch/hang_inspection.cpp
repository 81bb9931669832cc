#include "launcher/batch/hang_inspection.h"

#include <vector>

namespace graphproof::launcher {
namespace {

/// The missing rank first: the time may not be enough for all.
std::vector<int> in_order(const HangDecision& hang) {
  std::vector<int> ranks{hang.missing_rank};
  ranks.insert(ranks.end(), hang.waiting_ranks.begin(), hang.waiting_ranks.end());
  return ranks;
}

std::vector<StackCollection::Target> targets(const HangDecision& hang,
                                             const HangDetector& detector) {
  std::vector<StackCollection::Target> targets;
  for (const int rank : in_order(hang)) targets.push_back({rank, detector.process(rank).pid});
  return targets;
}

}  // namespace

HangInspection::HangInspection(const HangDecision& hang, const HangDetector& ranks,
                               const Places& places, bool debugger, std::int64_t now_ms)
    : hang_(hang),
      since_ms_(now_ms),
      stacks_(places.evidence_folder / "stacks", targets(hang, ranks), debugger, now_ms),
      flight_data_(places.node_folder, places.batch_folder, places.evidence_folder / "stacks",
                   in_order(hang), now_ms) {
  if (places.ras_address)
    ras_.emplace(*places.ras_address, places.evidence_folder / "stacks" / "nccl-ras", now_ms);
}

bool HangInspection::step(std::int64_t now_ms) {
  const bool stacks = stacks_.step(now_ms), ras = !ras_ || ras_->step(now_ms),
             flight_data = flight_data_.step(now_ms);
  return stacks && ras && flight_data;
}

record::Hang HangInspection::hang() const {
  return {.phase = hang_.phase,
          .limit_ms = hang_.limit_ms,
          .missing_rank = hang_.missing_rank,
          .waiting_ranks = hang_.waiting_ranks,
          .last_collective = hang_.last_collective,
          .stacks = "stacks",
          .silent_ms = hang_.silent_ms,
          .went_on = {}};
}

}  // namespace graphproof::launcher
