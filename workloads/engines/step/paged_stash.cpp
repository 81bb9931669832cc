#include "workloads/engines/step/paged_stash.h"

#include <algorithm>
#include <cmath>

#include "fixtures/comm/collectives.h"
#include "fixtures/tensors/torch.h"

namespace graphproof::engines {
namespace {

/// What the ranks found in one step: in how many dispatches rows were lost on any of them, and the
/// most rows that were sent to one of them.
struct Found {
  std::int64_t overflowed = 0, needed = 0;
};

/// Waits for the device. All ranks of a stage call it.
Found of_all_ranks(const workloads::ExpertBuffers& buffers, const workloads::Layout& layout) {
  at::Tensor found = at::stack({buffers.overflowed(), buffers.needed()}).unsqueeze(0);  // [1, 2]
  if (layout.tp > 1) found = comm::all_gather(found, layout.tp_group);
  if (layout.replicas() > 1) found = comm::all_gather(found, layout.replica_group());
  const at::Tensor most = found.amax({0}).cpu();
  const auto values = most.accessor<std::int64_t, 1>();
  return {values[0], values[1]};
}

}  // namespace

std::int64_t PagedStash::first_limit(const workloads::ExpertBuffers& buffers) {
  return static_cast<std::int64_t>(
      std::ceil(kCapacityFactor * static_cast<double>(buffers.even_rows())));
}

void PagedStash::begin_step() {
  const workloads::ExpertBuffers& buffers = step_.expert_buffers();
  if (buffers.limited()) at::Tensor(buffers.overflowed()).zero_();
}

void PagedStash::finish_step(const workloads::Batch& batch,
                             const std::function<void()>& drop_graph) {
  workloads::ExpertBuffers& buffers = step_.expert_buffers();
  if (!buffers.limited()) return;
  const Found found = of_all_ranks(buffers, step_.layout());
  if (found.overflowed == 0) return;
  ++reruns_;
  const std::int64_t limit = buffers.rows();
  buffers.limit(buffers.most_rows());
  step_.forward_backward(batch);
  // Layers behind the one that lost rows send others now.
  const std::int64_t needed = std::max(found.needed, of_all_ranks(buffers, step_.layout()).needed);
  const std::int64_t pages = (needed + kPageRows - 1) / kPageRows;
  buffers.limit(std::max(limit, pages * kPageRows));
  drop_graph();
}

}  // namespace graphproof::engines
