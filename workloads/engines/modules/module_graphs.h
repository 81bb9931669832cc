// The forward and the backward graph of one module, captured once and replayed as one node of
// autograd. CapturePolicy holds the differences between engines.
//
// Contract:
// - Static inputs are in the graph pool. If an input is the output of another module, it is the
//   memory of that output, and nothing is copied; the same holds for gradients of outputs. With
//   CapturePolicy::inputs and CapturePolicy::output_gradient an engine provides its own memory,
//   into which inputs are copied and which the engine keeps.
// - A part whose results need no gradients, because neither its inputs nor its parameters do, has a
//   forward graph alone. Its results keep their memory in the pool, because no backward tells when
//   they were used.
// - Warm-up passes run forward and backward eagerly. The engine must undo their effects.
// - The backward is autograd::grad inside the capture. It returns the gradients of the inputs. The
//   gradients of the parameters are added to .grad inside the graph, as Megatron-LM's local graphs
//   add to main_grad, or returned to autograd (CapturePolicy::weight_gradients). Parameters on
//   which the outputs do not depend get no gradient; these must be the same in the passes and in
//   the capture.
// - Weight gradients that the backward delays (Recorded::weight_gradients) are a third graph, which
//   is launched after the backward and adds to .grad. The memory that it reads is kept until it is
//   captured.
// - Memory of the pool is kept from its capture to the last capture that needs it: inputs, outputs
//   and gradients of outputs until the module's own backward is captured, the gradient of an input
//   until the backward that consumes it is captured. Afterwards later captures may reuse it, and
//   the tensors here do not own it (unowned.h).
// - The outputs and gradients that are returned are the static memory itself, valid until the next
//   launch that writes them.
// - A backward that is to be differentiated again (create_graph) is refused, because a replay
//   leaves no history.
// - A parameter is an input of the autograd node if its gradient is returned to autograd or if its
//   accumulator has hooks, which then run although the gradient is added already.
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

/// The graphs of one module for one slot. Used by the thread that runs the step.
class ModuleGraphs {
 public:
  /// Where one graph's memory comes from. `order` is null for a pool that no other graph shares.
  struct Place {
    capture::Pool pool;
    PoolOrder* order = nullptr;
  };
  /// A recorded call: its arguments, its work and its number of outputs. `name` is the name of the
  /// part in evidence. For `body` and `parameters` see workloads::ModuleRunner.
  struct Recorded {
    workloads::ModuleCall call;
    std::string name;
    std::vector<Argument> arguments;
    workloads::ModuleBody body;
    const std::vector<at::Tensor>* parameters;
    std::size_t outputs;
    /// Adds the weight gradients that the latest backward deferred
    /// (workloads/layers/delayed_gradients.h); empty if it defers none.
    std::function<void()> weight_gradients = {};
  };

  /// added: to .grad, inside the graph. cloned: each replay returns copies, which autograd adds.
  /// aliased: each replay returns the static memory itself.
  enum class WeightGradients { added, cloned, aliased };
  /// What the engines do differently.
  struct CapturePolicy {
    std::vector<at::Tensor> inputs = {};  // static inputs; empty: memory of the pool
    /// Returns memory for the gradient of output number `index`, with the properties of `output`;
    /// empty: memory of the pool.
    std::function<at::Tensor(std::size_t index, const at::Tensor& output)> output_gradient = {};
    WeightGradients weight_gradients = WeightGradients::added;
    double warm_up_gradient = 0;  // the elements of output gradients in warm-up passes
    bool results_stay = false;    // results keep their memory in the pool
    bool unused_inputs = true;    // an input that requires a gradient may get none
    /// Refuse a parameter that was moved or frozen after the capture.
    bool unchanged_parameters = false;
  };

  /// `slot` numbers the module's graphs by outstanding microbatch, and is part of their names.
  ModuleGraphs(const CaptureParts& parts, Recorded recorded, std::size_t slot,
               CapturePolicy policy);
  ModuleGraphs(const ModuleGraphs&) = delete;
  ModuleGraphs& operator=(const ModuleGraphs&) = delete;

  /// Declares that input number `index` is output number `output` of `producer`.
  void feed(std::size_t index, ModuleGraphs& producer, std::size_t output);
  /// One eager pass, in separate calls, because other modules may run between its forward and
  /// backward.
  void warm_up_forward();
  void warm_up_backward();
  void warm_up_weight_gradients() { recorded_.weight_gradients(); }
  /// Passes that run immediately before a capture, and what undoes their effects. May be empty.
  struct WarmUp {
    std::function<void()> run = {}, undo = {};
  };
  /// `warmups`: eager runs of the module up to its capture, for evidence.
  void capture_forward(Place place, std::int64_t warmups, const WarmUp& warm_up);
  /// Whether there is a backward. REQUIRES: capture_forward().
  bool has_backward() const { return !differentiable_.empty(); }
  /// REQUIRES: has_backward() and, for every module that consumes an output of this one, its
  /// capture_backward().
  void capture_backward(Place place);
  bool delays_weight_gradients() const { return static_cast<bool>(recorded_.weight_gradients); }
  /// REQUIRES: delays_weight_gradients(), capture_backward() and no other module's backward since.
  void capture_weight_gradients(Place place);
  /// Allows later captures to reuse the memory of the inputs' gradients. REQUIRES:
  /// capture_backward(); the module that consumes these gradients runs before the graphs of later
  /// captures.
  void release_input_gradients();

  /// Whether no forward waits for its backward, so that the next call may use these graphs.
  bool idle() const { return idle_; }
  /// Whether `inputs` have the captured properties.
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
  /// node, whose backward copies the gradients in and launches the backward graph. Enqueues on the
  /// current stream without waiting. REQUIRES: both captures, idle(), fits(inputs). Throws
  /// std::logic_error for a launch that its pool does not allow, and std::invalid_argument for an
  /// input that is not at the address where the graph of its producer leaves it.
  std::vector<at::Tensor> replay(const workloads::ModuleCall& call,
                                 const std::vector<at::Tensor>& inputs);

  /// Launches the graph of the delayed weight gradients. Throws std::logic_error unless the
  /// backward was replayed since the last call.
  void replay_weight_gradients();

  /// A replay in pieces, for the speed floor, without checks, observer and autograd.
  void launch_forward() { forward_.graph->replay(); }
  void launch_backward() { backward_.graph->replay(); }
  void load(const workloads::ModuleCall& call, const std::vector<at::Tensor>& inputs);
  void load_gradients(const std::vector<at::Tensor>& gradients);
  /// Adds the gradients of parameters that replay() would return to autograd.
  void add_weight_gradients();
  const std::vector<at::Tensor>& outputs() const { return outputs_; }
  /// The indices of the outputs that have a gradient.
  const std::vector<std::size_t>& differentiable() const { return differentiable_; }
  const std::vector<at::Tensor>& input_gradients() const { return grad_inputs_; }
  /// The module whose output is the only input of this one, if both have one input and one output;
  /// null otherwise.
  ModuleGraphs* predecessor() const;

  /// Discards the outstanding work of the last step.
  void begin_step();
  /// The launches of all its graphs so far.
  std::int64_t replays() const;
  std::int64_t graphs() const {
    return (forward_.graph ? 1 : 0) + (backward_.graph ? 1 : 0) + (weight_gradients_.graph ? 1 : 0);
  }
  /// Destroys the graphs. REQUIRES: the device has finished. Idempotent.
  void reset();

 private:
  /// Where an input comes from, or where an output goes.
  struct Source {
    ModuleGraphs* module = nullptr;
    std::size_t index = 0;  // of the producer's output, or of the consumer's input
  };
  struct Captured {
    std::string name, range;  // for evidence; for a profiler
    std::unique_ptr<capture::Graph> graph;
    Place place;
    std::int64_t position = 0;                  // in the order of its pool
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
  void require_pool_order(const Captured& graph);
  void launch_weight_gradients();

  CaptureParts parts_;
  Recorded recorded_;
  std::size_t slot_;
  CapturePolicy policy_;
  std::vector<Source> sources_;                 // by input; the module is null for an eager input
  std::vector<std::vector<Source>> consumers_;  // by output
  Captured forward_, backward_, weight_gradients_;
  bool idle_ = true;
  bool weight_gradients_pending_ = false;  // the backward was replayed, its third graph was not
  std::int64_t warmups_ = 0;

  std::vector<at::Tensor> inputs_, outputs_;
  std::vector<at::Tensor> grad_inputs_;       // by input; undefined if no gradient is needed
  std::vector<std::size_t> differentiable_;   // indices of outputs
  std::vector<at::Tensor> grad_outputs_;      // one for each of differentiable_
  std::vector<at::Tensor> captured_outputs_;  // with autograd history, until the backward capture
  std::vector<at::Tensor> warm_inputs_, warm_outputs_;  // between the two halves of a warm-up pass
  std::vector<bool> connected_;      // by parameter; empty before the first backward
  std::vector<std::size_t> hooked_;  // indices of parameters that are inputs of the node
  std::vector<at::Tensor> wgrads_;   // by parameter; empty if they are added in the graph
  std::vector<const void*> parameter_addresses_;  // at the capture
};

}  // namespace graphproof::engines
