// overlap_param_gather: the distributed optimizer's parameters are gathered at the beginning of the
// next step, bucket by bucket on a stream of their own, and each part of the model waits for the
// buckets of its parameters right before it runs, as Megatron-LM's forward pre-hooks. The wait of a
// part that is captured alone stays outside its graph: a graph that held it would wait for the
// gather of its capture.
#pragma once

#include <c10/core/Event.h>

#include <cstddef>
#include <map>
#include <vector>

#include "fixtures/device/device.h"
#include "workloads/parameters/parameter_shards.h"
#include "workloads/parameters/parameters.h"
#include "workloads/streams/side_stream.h"

namespace graphproof::workloads {

class ParameterGather {
 public:
  /// All outlive it.
  ParameterGather(const ParameterShards& shards, const Parameters& parameters,
                  capture::Device& device, faults::FaultHooks& faults);

  /// Enqueues the gathers of a step, after all work of the current stream so far.
  void begin();
  /// Makes the current stream wait for the buckets of `parameters`, once a step.
  void wait(const std::vector<at::Tensor>& parameters);
  /// For all buckets that nothing waited for. A capture that forked to the gathers' stream is
  /// joined here.
  void finish();

 private:
  void wait_for(std::map<std::size_t, c10::Event>::iterator gathered);

  const ParameterShards& shards_;
  const SideStream side_;
  std::map<const c10::TensorImpl*, std::size_t> bucket_of_;
  std::map<std::size_t, c10::Event> gathered_;  // by bucket, of the step in hand
};

}  // namespace graphproof::workloads
