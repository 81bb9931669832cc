// The policy of a paged stash (axis dispatch), as Megatron-LM's PagedStashRunner has it around its
// training schedule: receive buffers of the flex dispatcher for a share of the rows that could
// arrive, a flag on the device that says whether more did, and a second, eager run of such a step.
//
// Contract:
// - Without limited buffers (ExpertBuffers::limit) nothing happens, and nothing waits.
// - The flag is set to zero before forward and backward, and read after them, outside any
//   graph. The host waits for it. If it is set on any rank, all ranks run forward and backward of
//   the same batch again, eagerly and with room for every row, before the optimizer runs. Nothing
//   of the first run is left: gradients, losses and ledgers begin anew. Random numbers go on, so
//   that both runs draw from the generators.
// - After that the buffers grow to what both runs of this step needed, in whole pages. The caller
//   drops its graph, which has the old size, and captures again in the next step. Upstream gives
//   its limit up instead and goes on without graphs of experts.
#pragma once

#include <cstdint>
#include <functional>

#include "workloads/training/train_step.h"

namespace graphproof::engines {

/// Part of an engine; used by its thread, with its stream current, outside captures.
class PagedStash {
 public:
  /// Upstream's buffer is 1.1 times an even share unless the user states more; rounded up, as small
  /// models are less even.
  static constexpr double kCapacityFactor = 1.25;
  /// Rows of a page. Upstream's pages have 64 rows, which is all that a small model sends.
  static constexpr std::int64_t kPageRows = 4;
  /// The rows with which the buffers of `step` begin if they are limited.
  static std::int64_t first_limit(const workloads::ExpertBuffers& buffers);

  explicit PagedStash(workloads::TrainStep& step) : step_(step) {}

  /// Before the forward and backward of a step, or the replay that holds them.
  void begin_step();
  /// After them, before the optimizer. `batch` is what they read. drop_graph() is called after the
  /// buffers have grown.
  void finish_step(const workloads::Batch& batch, const std::function<void()>& drop_graph);
  /// How many steps ran a second time.
  std::int64_t reruns() const { return reruns_; }

 private:
  workloads::TrainStep& step_;
  std::int64_t reruns_ = 0;
};

}  // namespace graphproof::engines
