// Nodes that are lent to a run: by the scheduler of a cluster, or because their hosts were named.
// The run loop leases their slots as it does those of its own host; a batch lies on one node.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "launcher/batch/batch_request.h"
#include "launcher/batch/running_batch.h"
#include "launcher/policy/schedule.h"

namespace graphproof::launcher {

/// No method but release() waits. For one thread.
class Allocation {
 public:
  virtual ~Allocation() = default;

  /// Sets the function that gets what the user should know.
  void listen(std::function<void(const std::string&)> notice) { notice_ = std::move(notice); }

  /// One round: asks for the nodes, reads their reports, asks again when they are lost.
  virtual void step(std::int64_t now_ms) = 0;
  /// Whether a batch may be started now. Also true when the nodes are given up: batches then end
  /// infra.scheduler.
  virtual bool ready() const = 0;
  /// Starts or prestarts the batch on these slots, which are of one node. REQUIRES: can_prestart(),
  /// if it is to be prestarted.
  virtual std::unique_ptr<RunningBatch> start(BatchRequest request, const std::vector<Slot>& slots,
                                              std::int64_t now_ms) = 0;
  /// Whether ranks may now be started there before their turn.
  virtual bool can_prestart() const { return false; }
  /// Gives the nodes back, and ends what still runs there. Waits, up to a deadline of its own.
  /// Throws nothing.
  virtual void release() = 0;

  virtual int nodes() const = 0;
  /// The processes of this host for which the allocation waits itself.
  virtual std::vector<int> children() const = 0;

 protected:
  void log(const std::string& notice) const {
    if (notice_) notice_(notice);
  }

 private:
  std::function<void(const std::string&)> notice_;
};

}  // namespace graphproof::launcher
