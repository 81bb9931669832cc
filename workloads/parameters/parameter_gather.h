// overlap_param_gather: the distributed optimizer's parameters are gathered at the beginning of the
// next step, bucket by bucket on a stream of their own, and each part of the model waits for the
// buckets of its parameters right before it runs, as Megatron-LM's forward pre-hooks. The wait of a
// part that is captured alone stays outside its graph: a graph that held it would wait for the
// gather of its capture.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <cstddef>
#include <map>
#include <vector>

#include "fixtures/device/device.h"
#include "fixtures/process/fault.h"
#include "workloads/parameters/parameter_shards.h"
#include "workloads/parameters/parameters.h"

namespace graphproof::workloads {

class ParameterGather {
 public:
  /// All outlive it.
  ParameterGather(const ParameterShards& shards, const Parameters& parameters,
                  capture::Device& device, fixtures::Fault fault);

  /// Enqueues the gathers of a step, behind what the current stream holds. `captured_parts`: an
  /// engine runs parts of the model from graphs of their own.
  void begin(bool captured_parts);
  /// Makes the current stream wait for the buckets of `parameters`, once a step.
  void wait(const std::vector<at::Tensor>& parameters);
  /// For all buckets that nothing waited for. A capture that forked to the gathers' stream is
  /// joined here.
  void finish();

 private:
  void wait_for(std::map<std::size_t, c10::Event>::iterator gathered);

  const ParameterShards& shards_;
  const fixtures::Fault fault_;
  const c10::Stream side_;
  std::map<const c10::TensorImpl*, std::size_t> bucket_of_;
  std::map<std::size_t, c10::Event> gathered_;  // by bucket, of the step in hand
  bool began_ = false;
};

}  // namespace graphproof::workloads
