// The properties of the inputs that a module's graphs were captured with, and whether a later call
// may use these graphs.
//
// Contract: a graph fixes the number, shape, strides, type, device and requires_grad of its inputs.
// Megatron-LM compares all but strides and requires_grad (mismatch errors of its runners). Here
// these count too, because an input at the captured address is used without a copy.
#pragma once

#include <string>
#include <vector>

#include "fixtures/tensors/torch.h"
#include "workloads/forward/module_runner.h"

namespace graphproof::engines {

/// The properties of one captured input.
struct Argument {
  std::vector<std::int64_t> sizes, strides;
  at::ScalarType dtype;
  at::Device device;
  bool requires_grad;
};

/// Names a call in messages: "attn of layer 3, microbatch 1".
std::string place(const workloads::ModuleCall& call);

/// The properties of `inputs`. Throws std::invalid_argument for an input that no graph can take: an
/// undefined tensor, one that is not strided, is not on `device`, or has gaps or overlaps.
std::vector<Argument> arguments_of(const workloads::ModuleCall& call,
                                   const std::vector<at::Tensor>& inputs, at::Device device);

/// A text that is equal for two lists of arguments if they may share static tensors.
std::string signature(const std::vector<Argument>& arguments);

/// A new uninitialised tensor with these properties.
at::Tensor like(const Argument& argument);

/// Whether graphs that were captured with `captured` can take `inputs`.
bool fits(const std::vector<Argument>& captured, const std::vector<at::Tensor>& inputs);

/// The differences, for a message; empty if fits().
std::string mismatch(const std::vector<Argument>& captured, const std::vector<at::Tensor>& inputs);

}  // namespace graphproof::engines
