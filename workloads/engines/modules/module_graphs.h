// The forward and the backward graph of one module: captured once, replayed as one node of
// autograd. What engines do differently is in Ways.
//
// Contract:
// - Static inputs lie in the graph pool; where an input is another module's output it is that
// output's own memory, and
//   nothing is copied. Gradients of outputs likewise. With Ways::inputs and Ways::output_gradient
//   an engine gives memory of its own, which is copied into and stays the engine's.
// - Warm-up passes run forward and backward eagerly; putting back what they change is the engine's
// duty.
// - The backward is autograd::grad inside the capture. It hands out the inputs' gradients. The
// parameters' gradients are
//   added to .grad inside the graph, as upstream's local graphs add to main_grad, or handed to
//   autograd (Ways::weight_gradients). Parameters that the outputs don't depend on take no part;
//   which these are may not change between the passes and the capture.
// - Weight gradients that the backward leaves for later (Recorded::weight_gradients) are a third
// graph, launched behind the
//   backward: it adds to .grad. What it reads is alive until it is captured.
// - Memory is alive from its capture to the last capture that needs it: inputs, outputs and their
// gradients until the
//   module's own backward is captured, an input's gradient until the backward that takes it is.
//   Afterwards the pool may give it to later captures, and the tensors here only know where it is.
// - Outputs and gradients handed out are the static memory itself, valid until the next launch that
// writes them.
// - A backward that is to be differentiated again (create_graph) is refused: a graph has no
// history.
// - A parameter is made an input of the node where its gradient is handed to autograd, or where its
// accumulator has hooks,
//   which then run although the gradient is already added; without hooks nobody would see it.
#pragma once

#include <torch/csrc/autograd/functions/utils.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "workloads/engines/capture/graph_capture.h"
#include "workloads/engines/modules/arguments.h"
#include "workloads/engines/modules/pool_order.h"

namespace graphproof::engines {

class ModuleGraphs {
 public:
  /// Where one graph's memory comes from. `order` is null for a pool that no other graph shares.
  struct Place {
    capture::Pool pool;
    PoolOrder* order = nullptr;
  };
  /// As recorded: the call, what it was called with, what it did. `name`: of the part in evidence.
  /// `body` and `parameters`: see workloads::ModuleRunner.
  struct Recorded {
    workloads::ModuleCall call;
    std::string name;
    std::vector<Argument> arguments;
    workloads::ModuleBody body;
    const std::vector<at::Tensor>* parameters;
    std::size_t outputs;
    /// Adds what the latest backward owes (workloads/layers/delayed_gradients.h); empty where it
    /// owes nothing.
    std::function<void()> weight_gradients = {};
  };

  /// added: to .grad, inside the graph. cloned: each replay hands copies to autograd, which adds
  /// them. aliased: it hands out the static memory itself.
  enum class WeightGradients { added, cloned, aliased };
  struct Ways {
    std::vector<at::Tensor> inputs = {};  // static inputs in place of memory of the pool, if any
    /// Memory for the gradient of output `index`, which looks like `output`, in place of memory of
    /// the pool; may be empty.
    std::function<at::Tensor(std::size_t index, const at::Tensor& output)> output_gradient = {};
    WeightGradients weight_gradients = WeightGradients::added;
    /// What gradients of outputs are filled with in warm-up passes.
    double warm_up_gradient = 0;
    bool results_stay = false;  // what is handed out keeps its memory in the pool for good
    bool unused_inputs = true;  // an input that requires a gradient may get none
    bool unchanged_parameters =
        false;  // a parameter that was moved or frozen since the capture is refused
  };

  /// `slot`: which of the module's microbatches; part of the graphs' names.
  ModuleGraphs(const CaptureParts& parts, Recorded recorded, std::size_t slot, Ways ways);
  ModuleGraphs(const ModuleGraphs&) = delete;
  ModuleGraphs& operator=(const ModuleGraphs&) = delete;

  /// Input `index` is output `output` of `producer`.
  void feed(std::size_t index, ModuleGraphs& producer, std::size_t output);
  /// One eager pass; forward and backward apart, because between them others may run theirs.
  void warm_up_forward();
  void warm_up_backward();
  void warm_up_weight_gradients() { recorded_.weight_gradients(); }
  /// Passes that run right before a capture, and what puts back what they changed. May be empty.
  struct WarmUp {
    std::function<void()> run = {}, undo = {};
  };
  /// `warmups`: eager runs of the module by the time of its capture.
  void capture_forward(Place place, std::int64_t warmups, const WarmUp& warm_up);
  /// REQUIRES: capture_forward() and, for every module that takes an output of this one, its
  /// capture_backward().
  void capture_backward(Place place);
  bool delays_weight_gradients() const { return static_cast<bool>(recorded_.weight_gradients); }
  /// REQUIRES: delays_weight_gradients(), capture_backward() and no other module's backward since.
  void capture_weight_gradients(Place place);
  /// From now on the pool may give the memory of the inputs' gradients away. REQUIRES:
  /// capture_backward(), and whoever takes these gradients has done so by the time a later capture
  /// runs.
  void release_input_gradients();

  /// Whether the next call may use these graphs: no backward is owed, and the arguments are those
  /// of the capture.
  bool idle() const { return idle_; }
  bool fits(const std::vector<at::Tensor>& inputs) const {
    return engines::fits(recorded_.arguments, inputs);
  }
  std::string mismatch(const std::vector<at::Tensor>& inputs) const {
    return engines::mismatch(recorded_.arguments, inputs);
  }
  void idle(bool idle) { idle_ = idle; }
  const Recorded& recorded() const { return recorded_; }
  std::size_t slot() const { return slot_; }

  /// Copies the inputs in, launches the forward and returns its outputs as results of one autograd
  /// node, which copies their gradients in and launches the backward. On the current stream; waits
  /// for nothing. REQUIRES: both captures, idle(), fits(inputs). Throws std::logic_error for a
  /// launch that its pool does not allow, std::invalid_argument for an input that is not where the
  /// producer's graph leaves it.
  std::vector<at::Tensor> replay(const workloads::ModuleCall& call,
                                 const std::vector<at::Tensor>& inputs);

  /// Launches the third graph. Throws std::logic_error where the backward was not replayed before.
  void replay_weight_gradients();

  /// A replay in pieces, for the speed floor: no checks, no observer, no autograd.
  void launch_forward() { forward_.graph->replay(); }
  void launch_backward() { backward_.graph->replay(); }
  void load(const workloads::ModuleCall& call, const std::vector<at::Tensor>& inputs);
  void load_gradients(const std::vector<at::Tensor>& gradients);
  /// What autograd would do with the gradients of parameters that replay() hands it.
  void add_weight_gradients();
  const std::vector<at::Tensor>& outputs() const { return outputs_; }
  const std::vector<std::size_t>& differentiable() const {
    return differentiable_;
  }  // indices of outputs
  const std::vector<at::Tensor>& input_gradients() const { return grad_inputs_; }
  /// The module whose output is this one's only input, if both have one input and one output.
  ModuleGraphs* predecessor() const;

  void begin_step();
  std::int64_t replays() const;
  std::int64_t graphs() const {
    return (forward_.graph ? 1 : 0) + (backward_.graph ? 1 : 0) + (weight_gradients_.graph ? 1 : 0);
  }
  /// REQUIRES: the device has finished. Idempotent.
  void reset();

 private:
  struct Source {
    ModuleGraphs* module = nullptr;
    std::size_t index = 0;  // of its output, or of its input where this is a consumer
  };
  struct Captured {
    std::string name, range;  // for evidence, for a profiler
    std::unique_ptr<capture::Graph> graph;
    Place place;
    std::int64_t turn = 0;                      // its place in the order of its pool
    std::vector<NamedTensor> statics, outputs;  // for the observer
  };
  class ReplayBackward;

  std::vector<at::Tensor> static_inputs() const;
  void record_forward();
  void record_backward();
  void require_unchanged_parameters() const;
  void note_connected(const std::vector<at::Tensor>& gradients);
  void accumulate(const std::vector<at::Tensor>& gradients);
  void require_outputs(const std::vector<at::Tensor>& outputs) const;
  at::Tensor gradient_buffer(std::size_t output) const;
  void describe();
  void release();
  std::vector<at::Tensor> replay_backward(std::vector<at::Tensor>&& gradients);
  std::vector<at::Tensor> handed_weight_gradients() const;
  void take_turn(const Captured& graph);
  void launch_weight_gradients();

  CaptureParts parts_;
  Recorded recorded_;
  std::size_t slot_;
  Ways ways_;
  std::vector<Source> sources_;                 // by input; module null for an input from outside
  std::vector<std::vector<Source>> consumers_;  // by output
  Captured forward_, backward_, weight_gradients_;
  bool idle_ = true;
  bool owes_ = false;  // the backward was replayed, the weight gradients were not
  std::int64_t warmups_ = 0;

  std::vector<at::Tensor> inputs_, outputs_,
      grad_inputs_;                           // grad_inputs_ undefined where no gradient is needed
  std::vector<std::size_t> differentiable_;   // indices of outputs
  std::vector<at::Tensor> grad_outputs_;      // one for each of differentiable_
  std::vector<at::Tensor> captured_outputs_;  // with history, until the backward is captured
  std::vector<at::Tensor> warm_inputs_, warm_outputs_;  // between the two halves of a warm-up pass
  std::vector<bool> connected_;      // by parameter; empty before the first backward
  std::vector<std::size_t> hooked_;  // indices of parameters that are inputs of the node
  std::vector<at::Tensor> wgrads_;   // by parameter; where they are not added in the graph
  std::vector<const void*> parameter_addresses_;  // at the capture
};

}  // namespace graphproof::engines
