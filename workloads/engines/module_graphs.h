// The forward and the backward graph of one module (impl local): captured once, replayed as one node of autograd.
//
// Contract:
// - Static inputs lie in the graph pool; where an input is another module's output it is that output's own memory, and
//   nothing is copied. Gradients of outputs likewise.
// - Warm-up passes run forward and backward eagerly on zeros right before the forward's capture; what they change is
//   put back.
// - The backward is autograd::grad inside the capture. It adds the parameters' gradients to .grad, inside the graph, as
//   upstream adds to main_grad, and hands out the inputs' gradients. Parameters that the outputs don't depend on take
//   no part.
// - Memory is alive from its capture to the last capture that needs it: inputs, outputs and their gradients until the
//   module's own backward is captured, an input's gradient until the backward that takes it is. Afterwards the pool may
//   give it to later captures, and the tensors here only know where it is.
// - Outputs and gradients handed out are the static memory itself, valid until the next launch that writes them.
// - A parameter is made an input of the node where its accumulator has hooks, which then run although the gradient is
//   already added; without hooks nobody would see it.
#pragma once

#include <torch/csrc/autograd/functions/utils.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "workloads/engines/arguments.h"
#include "workloads/engines/graph_capture.h"
#include "workloads/engines/pool_order.h"

namespace graphproof::engines {

class ModuleGraphs {
 public:
  /// Where one graph's memory comes from. `order` is null for a pool that no other graph shares.
  struct Place {
    capture::Pool pool;
    PoolOrder* order = nullptr;
  };
  /// As recorded: the call, what it was called with, what it did. `body` and `parameters`: see workloads::ModuleRunner.
  struct Recorded {
    workloads::ModuleCall call;
    std::vector<Argument> arguments;
    workloads::ModuleBody body;
    const std::vector<at::Tensor>* parameters;
    std::size_t outputs;
  };

  /// `slot`: which of the module's outstanding microbatches; part of the graphs' names.
  ModuleGraphs(const CaptureParts& parts, Recorded recorded, std::size_t slot);
  ModuleGraphs(const ModuleGraphs&) = delete;
  ModuleGraphs& operator=(const ModuleGraphs&) = delete;

  /// Input `index` is output `output` of `producer`.
  void feed(std::size_t index, ModuleGraphs& producer, std::size_t output);
  /// `restore` puts back what warm-up passes have changed.
  void capture_forward(Place place, const std::function<void()>& restore);
  /// REQUIRES: capture_forward() and, for every module that takes an output of this one, its capture_backward().
  void capture_backward(Place place);

  /// Whether the next call may use these graphs: no backward is owed, and the arguments are those of the capture.
  bool idle() const { return idle_; }
  bool fits(const std::vector<at::Tensor>& inputs) const { return engines::fits(recorded_.arguments, inputs); }
  std::string mismatch(const std::vector<at::Tensor>& inputs) const { return engines::mismatch(recorded_.arguments, inputs); }
  void idle(bool idle) { idle_ = idle; }
  /// Whether its pool allows the forward now.
  bool in_order() const { return !forward_.place.order || forward_.place.order->allows(forward_.turn); }
  const Recorded& recorded() const { return recorded_; }
  std::size_t slot() const { return slot_; }

  /// Copies the inputs in, launches the forward and returns its outputs as results of one autograd node, which copies
  /// their gradients in and launches the backward. On the current stream; waits for nothing.
  /// REQUIRES: both captures, idle(), fits(inputs). Throws std::logic_error for a launch that its pool does not allow,
  /// std::invalid_argument for an input that is not where the producer's graph leaves it.
  std::vector<at::Tensor> replay(const workloads::ModuleCall& call, const std::vector<at::Tensor>& inputs);

  /// The two launches alone, for the speed floor: no checks, no observer, no autograd.
  void launch_forward() { forward_.graph->replay(); }
  void launch_backward() { backward_.graph->replay(); }
  void load(const workloads::ModuleCall& call, const std::vector<at::Tensor>& inputs);
  void load_gradients(const std::vector<at::Tensor>& gradients);
  const std::vector<at::Tensor>& outputs() const { return outputs_; }
  const std::vector<std::size_t>& differentiable() const { return differentiable_; }  // indices of outputs
  const std::vector<at::Tensor>& input_gradients() const { return grad_inputs_; }
  /// The module whose output is this one's only input, if both have one input and one output.
  ModuleGraphs* predecessor() const;

  void begin_step();
  std::int64_t replays() const;
  std::int64_t graphs() const { return (forward_.graph ? 1 : 0) + (backward_.graph ? 1 : 0); }
  /// REQUIRES: the device has finished. Idempotent.
  void reset();
  /// M43 only: `early`'s backward is launched before this one's.
  void launch_before_backward(ModuleGraphs* early) { early_ = early; }

 private:
  struct Source {
    ModuleGraphs* module = nullptr;
    std::size_t index = 0;  // of its output, or of its input where this is a consumer
  };
  struct Captured {
    std::string name, range;  // for evidence, for a profiler
    std::unique_ptr<capture::Graph> graph;
    Place place;
    std::int64_t turn = 0;                       // its place in the order of its pool
    std::vector<NamedTensor> statics, outputs;  // for the observer
  };
  class ReplayBackward;

  void warm_up(const std::function<void()>& restore);
  void record_forward();
  void record_backward();
  void accumulate(const std::vector<at::Tensor>& gradients);
  void steal();
  void require_outputs(const std::vector<at::Tensor>& outputs) const;
  at::Tensor gradient_buffer(std::size_t output) const;
  void describe();
  void release();
  std::vector<at::Tensor> replay_backward(std::vector<at::Tensor>&& gradients);
  void take_turn(const Captured& graph);

  CaptureParts parts_;
  Recorded recorded_;
  std::size_t slot_;
  std::vector<Source> sources_;                 // by input; module null for an input from outside
  std::vector<std::vector<Source>> consumers_;  // by output
  Captured forward_, backward_;
  bool idle_ = true;
  std::int64_t warmups_ = 0;

  std::vector<at::Tensor> inputs_, outputs_, grad_inputs_;  // grad_inputs_ undefined where no gradient is needed
  std::vector<std::size_t> differentiable_;                 // indices of outputs
  std::vector<at::Tensor> grad_outputs_;                    // one for each of differentiable_
  std::vector<at::Tensor> captured_outputs_;                // with history, until the backward is captured
  std::vector<at::Tensor> hooked_;                          // parameters that are inputs of the node
  std::vector<at::Tensor> wgrads_, stolen_;                 // M36 only, by parameter
  at::Tensor squatter_;                                     // M27 only
  ModuleGraphs* early_ = nullptr;                           // M43 only
};

}  // namespace graphproof::engines
