// Consecutive parts of a layer that share one graph: all inputs of each later part are outputs of
// earlier ones. Transformer Engine captures the modules of a layer in this way, for example
// attention and the router after it in one graph.
//
// Contract:
// - The chain runs its parts in order. Its results are the outputs that no later part of the chain
//   consumes, in the order of the parts.
// - The model still calls each part. The first call runs the whole chain and returns the outputs of
//   its part; the later calls return theirs and run nothing. A tensor that one part passes to the
//   next exists only inside the graph. Between the calls a stand-in of the same shape takes its
//   place, filled with NaN (true if boolean, -1 if integer), so that any other use shows.
// - It is an error to call a part out of order or with inputs other than the stand-ins, or to leave
//   a chain before its end.
#pragma once

#include <string>
#include <vector>

#include "workloads/engines/modules/arguments.h"
#include "workloads/forward/module_runner.h"

namespace graphproof::engines {

/// One chain. It is built from the calls of an eager step: the constructor, then append() and ran()
/// for each further part. Afterwards begin() and next() serve the calls of replayed steps. Used by
/// the engine's thread.
class PartChain {
 public:
  using Tensors = std::vector<at::Tensor>;

  /// The first part, with the `arguments` of its inputs. For `parameters` and `body` see
  /// workloads::ModuleRunner.
  PartChain(const workloads::ModuleCall& call, std::vector<Argument> arguments,
            const std::vector<at::Tensor>& parameters, const workloads::ModuleBody& body);
  PartChain(const PartChain&) = delete;
  PartChain& operator=(const PartChain&) = delete;

  /// Appends the part of `call` and returns true if all `inputs` are outputs of earlier parts;
  /// otherwise returns false.
  bool append(const workloads::ModuleCall& call, const Tensors& inputs,
              const std::vector<at::Tensor>& parameters, const workloads::ModuleBody& body);
  /// Records the outputs of the last part.
  void ran(const Tensors& outputs);
  /// Whether the chain has one result so far, which is the only one of `inputs`.
  bool feeds(const Tensors& inputs) const;
  /// The index of the part that is called; -1 if it is not in this chain.
  std::ptrdiff_t part_of(const workloads::ModuleCall& call) const;

  std::string name() const;  // "attn+moe_router"
  const workloads::ModuleCall& call() const { return links_.front().call; }
  const std::vector<Argument>& arguments() const { return arguments_; }
  const std::vector<at::Tensor>& parameters() const { return parameters_; }  // of all parts
  std::size_t outputs() const;         // the number of results of the chain
  workloads::ModuleBody body() const;  // refers to this object

  /// After a replay of the chain that returned `results`: returns the outputs of the first part.
  /// REQUIRES: require_finished() does not throw.
  Tensors begin(Tensors results);
  /// Returns the outputs of part number `part`. Throws std::logic_error for a call out of order or
  /// with other inputs.
  Tensors next(const workloads::ModuleCall& call, std::size_t part, const Tensors& inputs);
  /// Throws std::logic_error if a pass has begun and not all of its parts were called.
  void require_finished() const;
  /// Discards a pass that an error ended.
  void abandon() { next_ = 0; }

 private:
  /// Output number `output` of part number `part`.
  struct Source {
    std::size_t part, output;
  };
  struct Output {
    /// As returned in the recorded step. Weak, so that it keeps no activation alive.
    c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> recorded;
    at::Tensor stand_in;  // undefined for a result of the chain
  };
  struct Link {
    workloads::ModuleCall call;
    workloads::ModuleBody body;
    std::vector<Source> inputs;  // empty for the first
    std::vector<Output> outputs;
  };

  Tensors share(std::size_t part);

  std::vector<Argument> arguments_;
  std::vector<at::Tensor> parameters_;
  std::vector<Link> links_;
  Tensors results_;           // of the replay whose parts the model is calling
  std::size_t next_ = 0;      // the part to call next; 0 outside a pass
  std::size_t returned_ = 0;  // the number of results returned so far
};

}  // namespace graphproof::engines
