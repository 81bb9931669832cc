// The transfers between the stages of a pipeline: activations to the next chunk, and their
// gradients to the previous one. For their order, and why there is no deadlock, see
// workloads/pipeline/pipeline_schedule.h. All of them run on the current stream, so that a capture
// of the step holds them in that order.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fixtures/comm/point_to_point.h"
#include "fixtures/comm/process_groups.h"
#include "fixtures/tensors/torch.h"
#include "workloads/pipeline/pipeline_schedule.h"

namespace graphproof::workloads {

/// The place of this rank's stage in the pipeline.
inline order::Stage stage_of(const Layout& layout, const ModelConfig& config) {
  return {.pp = layout.pp,
          .rank = layout.pp_rank,
          .chunks = layout.vpp,
          .microbatches = config.microbatches,
          .group = layout.microbatch_group};
}

/// Sends and receives for one rank. Used by the thread that runs the step.
class StageTransfers {
 public:
  /// All transfers are [N/P, H] in the type of activations. Under sequence parallelism each tensor
  /// parallel rank transfers its part of the sequence over its own edges.
  StageTransfers(const Layout& layout, const ModelConfig& config, at::TensorOptions options)
      : layout_(layout),
        hidden_(config.hidden),
        options_(options),
        microbatches_(config.microbatches) {}

  /// Sends x [N/P, H]. REQUIRES: this rank is on stage transfer.from.
  void send(const order::Transfer& transfer, const at::Tensor& x) const {
    const at::NoGradGuard no_grad;
    comm::send(x.detach().contiguous(), tag(transfer), comm::edge_name(transfer.from, transfer.to));
  }
  /// Returns a new tensor [N/P, H] without autograd history. `tokens` [B, S] are those of the
  /// microbatch of the transfer: a step's microbatches may have lengths of their own. REQUIRES:
  /// this rank is on stage transfer.to.
  at::Tensor receive(const order::Transfer& transfer, const at::Tensor& tokens) const {
    const at::NoGradGuard no_grad;
    at::Tensor out = at::empty({tokens.numel() / layout_.sequence_parts(), hidden_}, options_);
    comm::receive_into(out, tag(transfer), comm::edge_name(transfer.from, transfer.to));
    return out;
  }

 private:
  /// The number of the work that consumes the transfer, doubled; a gradient adds one. Both ends
  /// compute the same tag.
  std::int64_t tag(const order::Transfer& transfer) const {
    const order::Work& work = transfer.consumer;
    return 2 * (work.chunk * microbatches_ + work.microbatch) + (work.forward ? 0 : 1);
  }

  Layout layout_;
  std::int64_t hidden_;
  at::TensorOptions options_;
  std::int64_t microbatches_;
};

}  // namespace graphproof::workloads
