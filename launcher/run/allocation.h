// Nodes that somebody else lends to a run: a cluster's scheduler, or hosts that were named. The run
// loop leases their slots as it does this host's; a batch lies on one node.
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

class Allocation {
 public:
  virtual ~Allocation() = default;

  /// Who hears what the user should know.
  void listen(std::function<void(const std::string&)> said) { said_ = std::move(said); }

  /// One round: asks for the nodes, hears them, asks again when they are lost. Never waits.
  virtual void step(std::int64_t now_ms) = 0;
  /// Whether a batch may be started now. Also true when the nodes are given up: batches then end
  /// infra.scheduler.
  virtual bool ready() const = 0;
  /// Starts it on these slots, which are of one node. REQUIRES: can_prestart(), where it is to be
  /// held.
  virtual std::unique_ptr<RunningBatch> start(BatchRequest request, const std::vector<Slot>& slots,
                                              std::int64_t now_ms) = 0;
  /// Whether ranks may be started there now, ahead of their turn.
  virtual bool can_prestart() const { return false; }
  /// Gives the nodes back; what still runs there is ended. Waits, up to a deadline of its own.
  /// Throws nothing.
  virtual void release() = 0;

  virtual int nodes() const = 0;
  /// Processes of this host that it waits for itself.
  virtual std::vector<int> children() const = 0;

 protected:
  void say(const std::string& text) const {
    if (said_) said_(text);
  }

 private:
  std::function<void(const std::string&)> said_;
};

}  // namespace graphproof::launcher
