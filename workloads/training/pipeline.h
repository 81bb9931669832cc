// What the stages of a pipeline hand each other: activations to the chunk behind, their gradients
// back. Which, when, and why no stage waits for ever: workloads/pipeline/pipeline_schedule.h.
// Everything runs on the current stream, so that a capture of the step holds its transfers in that
// order.
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

/// This stage's part of a pipeline.
inline order::Stage stage_of(const Layout& layout, const ModelConfig& config) {
  return {.pp = layout.pp,
          .rank = layout.pp_rank,
          .chunks = layout.vpp,
          .microbatches = config.microbatches,
          .group = layout.microbatch_group};
}

class StageTransfers {
 public:
  /// What travels is [N/P, H] in the type of activations, both ways: under sequence parallelism
  /// each tensor parallel rank's own part of the sequence, over edges of its own.
  StageTransfers(const Layout& layout, const ModelConfig& config, at::TensorOptions options)
      : sizes_{config.microbatch_size * layout.own_length(config) / layout.sequence_parts(),
               config.hidden},
        options_(options),
        microbatches_(config.microbatches) {}

  /// REQUIRES: this rank is on stage transfer.from. x [N/P, H] is read, not changed.
  void send(const order::Transfer& transfer, const at::Tensor& x) const {
    const at::NoGradGuard no_grad;
    comm::send(x.detach().contiguous(), tag(transfer), comm::edge_name(transfer.from, transfer.to));
  }
  /// REQUIRES: this rank is on stage transfer.to. Returns a new tensor [N/P, H] without history.
  at::Tensor receive(const order::Transfer& transfer) const {
    const at::NoGradGuard no_grad;
    at::Tensor out = at::empty(sizes_, options_);
    comm::receive_into(out, tag(transfer), comm::edge_name(transfer.from, transfer.to));
    return out;
  }

 private:
  /// Both ends count the work that takes it: activations from 0, gradients from 1, in steps of two.
  std::int64_t tag(const order::Transfer& transfer) const {
    const order::Work& work = transfer.consumer;
    return 2 * (work.chunk * microbatches_ + work.microbatch) + (work.forward ? 0 : 1);
  }

  std::vector<std::int64_t> sizes_;
  at::TensorOptions options_;
  std::int64_t microbatches_;
};

}  // namespace graphproof::workloads
