// How long a run has taken and how much slot time it has leased, and whether that reaches the
// bounds of --budget and --max-gpu-minutes. Without IO: batches and the time go in.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "launcher/policy/run_end.h"
#include "reports/record/run/record.h"
#include "reports/record/run/run.h"

namespace graphproof::launcher {

/// The time and the slot time of one run.
class Spending {
 public:
  /// `started_ms`: when this launcher started. The time budget is of one launcher.
  Spending(const record::Options& options, std::int64_t started_ms);

  /// A record of an earlier launcher of the same run: the price is of the whole run.
  void add_earlier(const record::Record& record);

  /// The batch leases one slot a rank from now on.
  void started(const std::string& batch, int ranks, std::int64_t now_ms);
  /// Its slots are free; what it cost until now counts.
  void ended(const std::string& batch, std::int64_t now_ms);
  /// Its ranks never began, so it has cost nothing.
  void forget(const std::string& batch);

  /// The reason for which the run ends now, if a bound is reached.
  std::optional<RunEnd> reached(std::int64_t now_ms) const;

 private:
  /// The slots of a running batch.
  struct Lease {
    int ranks = 0;
    std::int64_t since_ms = 0;
  };
  std::int64_t leased_ms(std::int64_t now_ms) const;

  const std::int64_t budget_ms_, max_gpu_ms_, started_ms_;
  std::int64_t ended_leases_ms_ = 0;  // ranks times how long ended batches held their slots
  std::map<std::string, Lease> leases_;
};

}  // namespace graphproof::launcher
