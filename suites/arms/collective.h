// The arms of a case of `model: collective`: the words of a training case (eager_a, lockstep_eager,
// lockstep_graph, free_graph) with the same lines, so that the same checks read them, and second
// runs of their own (eager_b, graph_b, free_eager). What a collective has not, they don't leave:
// losses, parameters, learning rates, layers. What it has beside: the place of its buffers
// (`placement` lines), and a result that one rank can compute alone (comparisons of subject
// `closed_form`).
//
// A hang is what these cases look for. Nothing here waits with a deadline of its own: each step
// announces itself to the watcher first, which sees all ranks. Everything that NCCL logged about a
// capture is flushed before its first replay.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "suites/arms/arm.h"

namespace graphproof::suites {

class CollectiveArm;

class CollectiveArms {
 public:
  /// REQUIRES: parts.config.collective, a group of at least two ranks; `parts` outlives it.
  explicit CollectiveArms(const CaseParts& parts);
  ~CollectiveArms();
  CollectiveArms(const CollectiveArms&) = delete;
  CollectiveArms& operator=(const CollectiveArms&) = delete;

  /// Builds, runs and compares every arm, with the votes at the boundaries that a training case
  /// has.
  void run();
  /// Of the arms that are still alive. Waits for the device.
  void drop_graphs();
  /// Everything else of them.
  void drop_buffers();

 private:
  void run_eager();
  void run_lockstep();
  void run_free();
  CollectiveArm& arm(std::string name, bool graph, bool free = false);

  const CaseParts& parts_;
  std::vector<std::unique_ptr<CollectiveArm>> kept_;
};

}  // namespace graphproof::suites
