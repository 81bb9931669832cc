#include "workloads/parameters/parameter_gather.h"

#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {

ParameterGather::ParameterGather(const ParameterShards& shards, const Parameters& parameters,
                                 capture::Device& device, faults::FaultHooks& faults)
    : shards_(shards),
      side_(device.stream_from_pool(), faults::SideWork::parameter_gather, faults) {
  for (std::size_t b = 0; b < shards.buckets().size(); ++b)
    for (const std::size_t i : shards.buckets()[b].parameters)
      bucket_of_[parameters.all()[i].tensor.unsafeGetTensorImpl()] = b;
}

void ParameterGather::begin() {
  gathered_.clear();  // an error may have ended the last step
  side_.fork();
  const c10::StreamGuard guard(side_.stream());
  for (std::size_t b = 0; b < shards_.buckets().size(); ++b) {
    shards_.gather(shards_.buckets()[b]);
    gathered_.emplace(b, side_.record());
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
  side_.join(gathered->second);
  gathered_.erase(gathered);
}

}  // namespace graphproof::workloads
