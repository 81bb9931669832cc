#include "workloads/parameters/parameter_gather.h"

#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {

ParameterGather::ParameterGather(const ParameterShards& shards, const Parameters& parameters,
                                 capture::Device& device, fixtures::Fault fault)
    : shards_(shards), fault_(std::move(fault)), side_(device.stream_from_pool()) {
  for (std::size_t b = 0; b < shards.buckets().size(); ++b)
    for (const std::size_t i : shards.buckets()[b].parameters)
      bucket_of_[parameters.all()[i].tensor.unsafeGetTensorImpl()] = b;
}

void ParameterGather::begin(bool captured_parts) {
  gathered_.clear();  // of a step that an error ended
  // M93 stands for pre-hooks that hung on the modules' own forward and that nobody calls by hand
  // once graphs are in its place.
  if (fault_.is("M93") && captured_parts && std::exchange(began_, true)) return;
  const c10::impl::VirtualGuardImpl streams(side_.device_type());
  c10::Event ready(side_.device_type());
  ready.record(streams.getStream(side_.device()));
  ready.block(side_);
  const c10::StreamGuard guard(side_);
  for (std::size_t b = 0; b < shards_.buckets().size(); ++b) {
    shards_.gather(shards_.buckets()[b]);
    gathered_.emplace(b, side_.device_type()).first->second.record(side_);
  }
}

void ParameterGather::wait(const std::vector<at::Tensor>& parameters) {
  if (gathered_.empty()) return;
  for (const at::Tensor& parameter : parameters)
    if (const auto gathered = gathered_.find(bucket_of_.at(parameter.unsafeGetTensorImpl()));
        gathered != gathered_.end())
      wait_for(gathered);
}

void ParameterGather::finish() {
  while (!gathered_.empty()) wait_for(gathered_.begin());
}

void ParameterGather::wait_for(std::map<std::size_t, c10::Event>::iterator gathered) {
  gathered->second.block(
      c10::impl::VirtualGuardImpl(side_.device_type()).getStream(side_.device()));
  gathered_.erase(gathered);
}

}  // namespace graphproof::workloads
