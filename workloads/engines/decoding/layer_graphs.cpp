#include "workloads/engines/decoding/layer_graphs.h"

#include <stdexcept>

#include "fixtures/tensors/torch.h"

namespace graphproof::engines {

LayerGraphs::LayerGraphs(const CaptureParts& parts, capture::Pool pool)
    : parts_(parts), pool_(pool) {}
LayerGraphs::~LayerGraphs() = default;

std::vector<at::Tensor> LayerGraphs::run(const workloads::ModuleCall& call,
                                         const std::vector<at::Tensor>& inputs,
                                         const std::vector<at::Tensor>&,
                                         const workloads::ModuleBody& body) {
  if (call.kind != workloads::ModuleKind::layer) return body(inputs);
  const at::Tensor& input = inputs.at(0);
  auto& layers = graphs_[batch_];
  const std::string name = batch_ + ".layer" + std::to_string(call.layer);
  LayerGraph& layer = layers[call.layer];
  if (!layer.graph) {
    // The first layer has an input of its own. The others are captured with the tensor that the
    // layer before them writes.
    layer.input = call.layer == 0 ? input.clone() : input;
    capture(layer, name, layer.input, body);
    return {layer.output};
  }
  if (call.layer == 0)
    layer.input.copy_(input);
  else if (!input.is_same(layer.input))
    throw std::logic_error("the input of " + name + " is not the output of the layer before it");
  parts_.observer.before_replay(name, {{name + ".input", layer.input}}, {});
  layer.graph->replay();
  parts_.observer.after_replay(name, {});
  return {layer.output};
}

void LayerGraphs::capture(LayerGraph& made, const std::string& name, const at::Tensor& input,
                          const workloads::ModuleBody& body) {
  const std::int64_t warmups = parts_.config.warmup_steps;
  const at::Tensor counter = parts_.step.layer_counter(), counted = counter.clone();
  made.graph = capture_graph(parts_, {.graph = name,
                                      .pool = pool_,
                                      .work = [&] { made.output = body({input})[0]; },
                                      .warmups = warmups,
                                      .warm_up =
                                          [&] {
                                            for (std::int64_t run = 0; run < warmups; ++run)
                                              body({input});
                                          },
                                      .undo_warm_up = [&] { counter.copy_(counted); }});
  made.output.zero_();  // a capture computes nothing, and the next layer warms up with this
}

std::vector<NamedTensor> LayerGraphs::outputs(const std::string& batch) const {
  std::vector<NamedTensor> tensors;
  for (const auto& [index, layer] : graphs_.at(batch))
    tensors.push_back({"hidden." + std::to_string(index), layer.output});
  return tensors;
}

void LayerGraphs::drop() {
  for (auto& [batch, layers] : graphs_)
    for (auto& [index, layer] : layers)
      if (layer.graph) layer.graph->reset();
  graphs_.clear();
}

}  // namespace graphproof::engines
