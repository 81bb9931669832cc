// The arms of a case with model collective. They have the names and lines of a training case
// (eager_a, lockstep_eager, lockstep_graph, free_graph), so that the same checks read them, and
// second runs (eager_b, graph_b, free_eager). They have no lines about losses, parameters, learning
// rates or layers. In addition they have the placement of buffers (lines `placement`) and
// comparisons with a result that one rank can compute alone (comparison closed_form).
//
// These cases look for hangs. Nothing here waits with a deadline: each step sends a heartbeat
// first, and the launcher's hang detector sees all ranks. NCCL's log about a capture is flushed
// before the first replay.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "suites/arms/arm.h"

namespace graphproof::suites {

class CollectiveArm;

/// All arms of the case. Used from one thread.
class CollectiveArms {
 public:
  /// REQUIRES: parts.config.collective, a group of at least two ranks; `parts` outlives it.
  explicit CollectiveArms(const CaseParts& parts);
  ~CollectiveArms();
  CollectiveArms(const CollectiveArms&) = delete;
  CollectiveArms& operator=(const CollectiveArms&) = delete;

  /// Builds, runs and compares all arms, with the votes of a training case.
  void run();
  /// Destroys the graphs of the arms that are still alive. Waits for the device.
  void drop_graphs();
  /// Destroys those arms.
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
