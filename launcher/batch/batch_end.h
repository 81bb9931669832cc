// Whose doing the end of a batch was, and how each rank ended: concluded from what the ranks
// showed, how their starter ended and what it printed. Without IO.
#pragma once

#include <optional>

#include "launcher/backend/starter_log.h"
#include "launcher/batch/hang_detector.h"
#include "launcher/host/child.h"
#include "reports/record/job/context.h"

namespace graphproof::launcher {

/// The rank whose end ended the batch, and how it ended.
struct Culprit {
  int rank = 0;
  record::Exit exit;
};

/// Everything about an end that was not asked for: no hang was decided, and the launcher did not
/// stop the batch. `starter`: how the starter ended, if it ended by itself. Nothing if all ranks
/// ended well.
std::optional<Culprit> culprit(const HangDetector& ranks, const StarterReport& report,
                               const std::optional<Exit>& starter);

/// How `rank` ended. `signal`: the strongest that the launcher sent; 0 if it sent none.
record::Exit exit_of(int rank, const HangDetector& ranks, const std::optional<Culprit>& culprit,
                     const std::optional<Exit>& starter, int signal);

/// Trouble of the infrastructure that explains the end of a batch whose ranks had begun: a signal
/// that neither a case nor the launcher sends. Nothing if there is none.
std::optional<record::Infra> ended_from_outside(const std::optional<Culprit>& culprit,
                                                const std::optional<Exit>& starter);

}  // namespace graphproof::launcher
