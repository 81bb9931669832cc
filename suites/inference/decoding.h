// The arms of a case with schedule decode: an inference job instead of training steps. They have
// the names and lines of a training case (eager_a, lockstep_eager, lockstep_graph, free_graph), so
// that the same checks read them, second runs (eager_b, graph_b, free_eager), and lines `batch`.
//
// All arms compute the same batches, padded to the same sizes, because a matrix product of another
// size may round otherwise. Graph arms hold other numbers in their padding than the eager arms that
// they are compared with, and so does the arm padded_eager, which is compared with eager_a. What
// eager_a computed token by token is compared with one pass over whole sequences (line
// `sequences`).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "suites/inference/inference_job.h"

namespace graphproof::suites {

struct DecodingArm;

/// All arms of the case. Used from one thread.
class DecodingArms {
 public:
  /// REQUIRES: parts.config.decoding; `parts` outlives it.
  explicit DecodingArms(const CaseParts& parts);
  ~DecodingArms();
  DecodingArms(const DecodingArms&) = delete;
  DecodingArms& operator=(const DecodingArms&) = delete;

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
  InferenceJob& arm(InferenceArm arm);

  const CaseParts& parts_;
  std::vector<std::unique_ptr<DecodingArm>> kept_;
};

}  // namespace graphproof::suites
