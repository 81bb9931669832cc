// Exchanges tokens between expert parallel ranks on a side stream, concurrently with the
// computation of another microbatch.
#pragma once

#include <string>

#include "fixtures/device/device.h"
#include "fixtures/tensors/torch.h"
#include "workloads/streams/side_stream.h"

namespace graphproof::workloads {

/// Used by the thread that runs the step. Outside autograd.
class ExchangeStream {
 public:
  /// `faults` outlives it.
  ExchangeStream(capture::Device& device, std::string group, faults::FaultHooks& faults);

  /// An exchange in progress. Keeps both tensors alive until end().
  struct Exchange {
    at::Tensor sent, received;
    c10::Event done;
  };
  /// Enqueues an all-to-all of rows [N * A, ...] on the side stream, after all work of the current
  /// stream so far.
  Exchange begin(const at::Tensor& rows);
  /// Makes the current stream wait for the exchange. Returns the received rows, of the same shape.
  at::Tensor end(Exchange exchange) const;

 private:
  std::string group_;
  faults::FaultHooks& faults_;
  SideStream side_;
};

}  // namespace graphproof::workloads
