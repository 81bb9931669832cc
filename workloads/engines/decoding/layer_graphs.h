// The inference graphs of single layers: for each batch one graph of every layer. As in Megatron-LM
// (CudaGraphManager in inference), each is captured where the layer is called for the first time.
// The first layer copies its input into memory of its own; every other layer takes the output of
// the layer before it where that lies. Embedding and output layer stay eager.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "workloads/engines/capture/graph_capture.h"

namespace graphproof::engines {

/// Runs the layers of inference steps. Used by one thread, with the stream of the engine current.
class LayerGraphs final : public workloads::ModuleRunner {
 public:
  /// All graphs go into `pool`. What `parts` refers to outlives it.
  LayerGraphs(const CaptureParts& parts, capture::Pool pool);
  ~LayerGraphs() override;

  /// The layers of the next inference step are captured or replayed as those of `batch`.
  void begin(std::string batch) { batch_ = std::move(batch); }
  std::vector<at::Tensor> run(const workloads::ModuleCall& call,
                              const std::vector<at::Tensor>& inputs,
                              const std::vector<at::Tensor>& parameters,
                              const workloads::ModuleBody& body) override;
  /// The outputs of the layers of a captured batch, which its replay writes completely.
  std::vector<NamedTensor> outputs(const std::string& batch) const;
  /// REQUIRES: the device has finished the last replay.
  void drop();

 private:
  struct LayerGraph {
    at::Tensor input, output;  // static
    std::unique_ptr<capture::Graph> graph;
  };
  void capture(LayerGraph& made, const std::string& name, const at::Tensor& input,
               const workloads::ModuleBody& body);

  CaptureParts parts_;
  capture::Pool pool_;
  std::string batch_;
  std::map<std::string, std::map<std::int64_t, LayerGraph>> graphs_;  // by batch and layer
};

}  // namespace graphproof::engines
