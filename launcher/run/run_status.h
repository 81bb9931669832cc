// What others see of a run while it is under way: live.json, which `graphproof status` and the
// agents of the run read, and the progress that the listener is given.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>

#include "launcher/batch/running_batch.h"
#include "launcher/run/run.h"
#include "reports/outcome/run_result.h"
#include "reports/print/terminal.h"

namespace graphproof::launcher {

using RunningBatches = std::list<std::shared_ptr<RunningBatch>>;

/// The status of one launcher's part of a run.
class RunStatus {
 public:
  /// `earlier_seconds`: what earlier launchers of this run took. `setup` and `listener` must
  /// outlive it.
  RunStatus(const RunSetup& setup, const RunListener& listener, double earlier_seconds);

  /// Writes live.json and calls the listener as often as each is due. `recorded`: what the recorder
  /// knows. `ending`: why no more cases start, if so. Throws record::WriteError.
  void show(std::int64_t now_ms, const reports::Progress& recorded, const RunningBatches& running,
            std::optional<reports::Ending> ending);
  /// `recorded`, with the time so far and what runs.
  reports::Progress progress(std::int64_t now_ms, reports::Progress recorded,
                             const RunningBatches& running) const;
  /// Removes live.json: the run has ended.
  void remove() const;

  std::int64_t started_ms() const { return started_ms_; }
  /// Of all launchers of this run.
  double wall_seconds(std::int64_t now_ms) const;

 private:
  const RunSetup& setup_;
  const RunListener& listener_;
  const double earlier_seconds_;
  const std::int64_t started_ms_;
  std::int64_t live_ms_ = 0, progress_ms_ = 0;  // when each was shown last
};

}  // namespace graphproof::launcher
