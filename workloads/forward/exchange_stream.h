// A stream of its own for the exchange of tokens between expert parallel ranks, so that it runs
// beside another microbatch's computation. Forks from the current stream, and what waits joins it
// again.
#pragma once

#include <string>

#include "fixtures/device/device.h"
#include "fixtures/tensors/torch.h"
#include "workloads/streams/side_stream.h"

namespace graphproof::workloads {

class ExchangeStream {
 public:
  /// `faults` outlives it.
  ExchangeStream(capture::Device& device, std::string group, faults::FaultHooks& faults);

  /// Under way; what is sent stays until it is over.
  struct Exchange {
    at::Tensor sent, arrived;
    c10::Event over;
  };
  /// Enqueues an all-to-all of rows [N * A, ...] behind all work of the current stream, outside
  /// autograd.
  Exchange begin(const at::Tensor& rows);
  /// Makes the current stream wait for it. Returns what arrived, of the same shape.
  at::Tensor end(Exchange exchange) const;

 private:
  std::string group_;
  faults::FaultHooks& faults_;
  SideStream side_;
};

}  // namespace graphproof::workloads
