// The slots that no further batch gets: those whose GPUs met trouble of the hardware twice, on
// which memory stayed in use, or whose batch holds processes that SIGKILL does not end. Without IO:
// contexts go in, and the schedule learns which slots to withdraw.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/policy/schedule.h"
#include "reports/record/job/context.h"

namespace graphproof::launcher {

/// The withdrawn slots of one run, and why they are.
class GpuQuarantine {
 public:
  /// `schedule` must outlive it. `users`: which processes are on the GPU of a slot now, for the
  /// notice, in parentheses; "" where that is not known.
  GpuQuarantine(Schedule& schedule, std::function<std::string(Slot)> users)
      : schedule_(schedule), users_(std::move(users)) {}

  /// What follows from a context.
  struct Observation {
    std::vector<std::string> notices;
    bool end_batch = false;  // its other cases run elsewhere
  };
  /// What the context of a case shows of the slots below it. REQUIRES: its batch has its slots.
  Observation observe(const record::Context& context);
  /// Withdraws the slots of a batch whose processes SIGKILL did not end. Returns the notice.
  std::string withdraw_from(const std::string& batch, const std::vector<std::string>& unkillable);

  /// The slots on which the batch met trouble of a GPU; its cases avoid them from now on.
  std::vector<Slot> avoided(const std::string& batch) const;
  /// Whether a case of the batch ended infra.*; a second call for the same batch says no.
  bool take_trouble(const std::string& batch) { return troubled_.erase(batch) > 0; }
  /// Why slots are withdrawn, one clause each; "" while none is.
  const std::string& reasons() const { return reasons_; }

 private:
  std::string withdraw(const std::vector<Slot>& slots, const std::string& why);

  Schedule& schedule_;
  const std::function<std::string(Slot)> users_;
  std::map<std::string, std::vector<Slot>> avoided_;  // by batch: its slots, if a GPU met trouble
  std::set<std::string> troubled_;                    // batches with a case that ended infra.*
  std::string reasons_;
};

}  // namespace graphproof::launcher
