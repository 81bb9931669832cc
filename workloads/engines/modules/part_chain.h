// Parts of a layer that follow each other and go into one graph: each takes nothing but what the
// ones before it made. Transformer Engine captures a layer's modules that way, attention with the
// router behind it in one graph.
//
// Contract:
// - The chain's work is that of its parts in turn. Its results are the outputs that no later part
// of it takes, in the
//   order of the parts.
// - The model still calls each part. The first call runs the chain and hands out its part's share;
// the others hand out
//   theirs and run nothing. What one part passes to the next exists only inside the graph: between
//   the calls a stand-in of the same shape takes its place, full of NaN (true where it is boolean,
//   -1 where it counts), so that nobody else can use it unnoticed.
// - A call out of turn, with anything but the stand-ins, or a chain that was left before its end,
// is an error.
#pragma once

#include <string>
#include <vector>

#include "workloads/engines/modules/arguments.h"
#include "workloads/forward/module_runner.h"

namespace graphproof::engines {

class PartChain {
 public:
  using Tensors = std::vector<at::Tensor>;

  /// The first part. `parameters` and `body`: see workloads::ModuleRunner; `arguments` of its
  /// inputs.
  PartChain(const workloads::ModuleCall& call, std::vector<Argument> arguments,
            const std::vector<at::Tensor>& parameters, const workloads::ModuleBody& body);
  PartChain(const PartChain&) = delete;
  PartChain& operator=(const PartChain&) = delete;

  /// While it is noted: takes the part where all `inputs` are outputs of parts before it.
  bool append(const workloads::ModuleCall& call, const Tensors& inputs,
              const std::vector<at::Tensor>& parameters, const workloads::ModuleBody& body);
  /// What the last part returned.
  void ran(const Tensors& outputs);
  /// Whether its only result so far is the only one of `inputs`.
  bool feeds(const Tensors& inputs) const;
  /// Which part a call is; -1 for none of this chain.
  std::ptrdiff_t part_of(const workloads::ModuleCall& call) const;

  std::string name() const;  // "attn+moe_router"
  const workloads::ModuleCall& call() const { return links_.front().call; }
  const std::vector<Argument>& arguments() const { return arguments_; }
  const std::vector<at::Tensor>& parameters() const { return parameters_; }  // of all parts
  std::size_t outputs() const;                                               // of the chain
  workloads::ModuleBody body() const;                                        // refers to this

  /// Replay: the chain ran and returned `results`; what its first part hands out. REQUIRES:
  /// require_finished().
  Tensors begin(Tensors results);
  /// What part `part` hands out.
  Tensors next(const workloads::ModuleCall& call, std::size_t part, const Tensors& inputs);
  /// Throws std::logic_error where parts are still to come.
  void require_finished() const;
  /// Forgets a pass that was cut off.
  void abandon() { next_ = 0; }

 private:
  struct Source {
    std::size_t part, output;
  };
  struct Output {
    c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>
        noted;            // weak: keeps no activation alive
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
  Tensors results_;        // of the replay that the model passes through
  std::size_t next_ = 0;   // part; 0 outside a pass
  std::size_t taken_ = 0;  // results handed out
};

}  // namespace graphproof::engines
