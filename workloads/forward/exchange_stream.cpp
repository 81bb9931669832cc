#include "workloads/forward/exchange_stream.h"

#include <utility>

#include "fixtures/comm/collectives_into.h"

namespace graphproof::workloads {

ExchangeStream::ExchangeStream(capture::Device& device, std::string group,
                               faults::FaultHooks& faults)
    : group_(std::move(group)),
      faults_(faults),
      side_(device.stream_from_pool(), faults::SideWork::token_exchange, faults) {}

ExchangeStream::Exchange ExchangeStream::begin(const at::Tensor& rows) {
  const at::NoGradGuard no_grad;
  const at::Tensor sent = faults_.sent_rows(rows.detach()).contiguous();
  // Both tensors are memory of the current stream. They are released after end(), when that stream
  // waits for the exchange.
  Exchange exchange{sent, at::empty_like(sent), c10::Event(side_.stream().device_type())};
  side_.fork();
  const c10::StreamGuard guard(side_.stream());
  comm::all_to_all_into(exchange.received, exchange.sent, group_);
  exchange.done = side_.record();
  faults_.exchange_enqueued(exchange.sent);
  return exchange;
}

at::Tensor ExchangeStream::end(Exchange exchange) const {
  side_.join(exchange.done);
  return exchange.received;
}

}  // namespace graphproof::workloads
