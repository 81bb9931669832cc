#include "workloads/forward/exchange_stream.h"

#include <utility>

#include "fixtures/comm/collectives_into.h"

namespace graphproof::workloads {

ExchangeStream::ExchangeStream(capture::Device& device, std::string group, fixtures::Fault fault)
    : device_(device),
      group_(std::move(group)),
      fault_(std::move(fault)),
      side_(device.stream_from_pool()) {}

ExchangeStream::Exchange ExchangeStream::begin(const at::Tensor& rows) {
  const at::NoGradGuard no_grad;
  // M166 stands for an exchange that sends a copy and does not keep it.
  const at::Tensor sent = fault_.is("M166") ? rows.detach().clone() : rows.detach().contiguous();
  // Both are memory of the current stream, which is behind the exchange again before they can be
  // given back.
  Exchange exchange{sent, at::empty_like(sent), c10::Event(side_.device_type())};
  const c10::impl::VirtualGuardImpl streams(side_.device_type());
  c10::Event ready(side_.device_type());
  ready.record(streams.getStream(side_.device()));
  ready.block(side_);
  const c10::StreamGuard guard(side_);
  if (fault_.is("M115") && device_.name() == "cuda" && !device_.capturing(side_)) delay();
  comm::all_to_all_into(exchange.arrived, exchange.sent, group_);
  exchange.over.record(side_);
  if (fault_.is("M166")) exchange.sent.reset();
  return exchange;
}

at::Tensor ExchangeStream::end(Exchange exchange) const {
  // M115 stands for a schedule that forgets to wait, on a network that is slow; of a capture the
  // missing join is enough.
  if (!fault_.is("M115"))
    exchange.over.block(c10::impl::VirtualGuardImpl(side_.device_type()).getStream(side_.device()));
  return exchange.arrived;
}

/// Milliseconds of work, so that what doesn't wait for it is surely too early.
void ExchangeStream::delay() const {
  constexpr std::int64_t kSize = 2048, kProducts = 32;
  const at::Tensor square = at::zeros({kSize, kSize}, at::TensorOptions().device(side_.device()));
  for (std::int64_t i = 0; i < kProducts; ++i) at::mm(square, square);
}

}  // namespace graphproof::workloads
