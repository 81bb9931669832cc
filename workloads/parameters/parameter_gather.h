// overlap_param_gather: the parameters of the distributed optimizer are gathered at the beginning
// of the next step, bucket by bucket on a side stream. Each part of the model waits for the buckets
// of its parameters immediately before it runs (Megatron-LM's forward pre-hooks). For a part that
// is captured alone this wait is outside the graph, because a captured wait would refer to the
// gather that ran during the capture.
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

/// The gathers of one step at a time. Used by the thread that runs the step.
class ParameterGather {
 public:
  /// The arguments outlive it.
  ParameterGather(const ParameterShards& shards, const Parameters& parameters,
                  capture::Device& device, faults::FaultHooks& faults);

  /// Enqueues the gathers of a step, after all work of the current stream so far.
  void begin();
  /// Makes the current stream wait for the buckets of `parameters`, once a step.
  void wait(const std::vector<at::Tensor>& parameters);
  /// Makes the current stream wait for all remaining buckets. In a capture this joins the side
  /// stream.
  void finish();

 private:
  void wait_for(std::map<std::size_t, c10::Event>::iterator gathered);

  const ParameterShards& shards_;
  const SideStream side_;
  std::map<const c10::TensorImpl*, std::size_t> bucket_of_;
  std::map<std::size_t, c10::Event>
      gathered_;  // by bucket: those of this step that were not waited for
};

}  // namespace graphproof::workloads
