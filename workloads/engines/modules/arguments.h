// What a module's graphs were captured with, and whether a later call may use them.
//
// Contract: a graph has count, shape, strides, type, device and need of a gradient of its inputs
// for good. Upstream compares all but strides and the need of a gradient (Megatron-LM, mismatch
// errors of its runners); here they count, because an input whose address agrees is used without a
// copy.
#pragma once

#include <string>
#include <vector>

#include "fixtures/tensors/torch.h"
#include "workloads/forward/module_runner.h"

namespace graphproof::engines {

struct Argument {
  std::vector<std::int64_t> sizes, strides;
  at::ScalarType dtype;
  at::Device device;
  bool requires_grad;
};

/// "attn of layer 3, microbatch 1"
std::string place(const workloads::ModuleCall& call);

/// Throws std::invalid_argument for what no graph can take: an undefined tensor, one that is not
/// strided, lies on another device than `device`, or overlaps itself.
std::vector<Argument> arguments_of(const workloads::ModuleCall& call,
                                   const std::vector<at::Tensor>& inputs, at::Device device);

/// Type, device, shape and strides of each: equal where static tensors may be shared.
std::string signature(const std::vector<Argument>& arguments);

/// New memory for one, uninitialised.
at::Tensor like(const Argument& argument);

bool fits(const std::vector<Argument>& captured, const std::vector<at::Tensor>& inputs);

/// What differs, for a message; empty where fits().
std::string mismatch(const std::vector<Argument>& captured, const std::vector<at::Tensor>& inputs);

}  // namespace graphproof::engines
