#include "workloads/engines/modules/arguments.h"

#include <sstream>
#include <stdexcept>

namespace graphproof::engines {
namespace {

Argument argument(const at::Tensor& input) {
  return {input.sizes().vec(), input.strides().vec(), input.scalar_type(), input.device(),
          input.requires_grad()};
}

bool same(const Argument& captured, const at::Tensor& input) {
  return input.defined() && captured.sizes == input.sizes() &&
         captured.dtype == input.scalar_type() && captured.device == input.device() &&
         captured.requires_grad == input.requires_grad() && captured.strides == input.strides();
}

std::string text(const Argument& argument) {
  std::ostringstream text;
  text << argument.dtype << " " << at::IntArrayRef(argument.sizes) << " strides "
       << at::IntArrayRef(argument.strides) << " on " << argument.device
       << (argument.requires_grad ? " with" : " without") << " a gradient";
  return text.str();
}

std::string layout_text(at::Layout layout) {
  std::ostringstream text;
  text << "layout " << layout;
  return text.str();
}

[[noreturn]] void unsupported(const workloads::ModuleCall& call, std::size_t index,
                              const std::string& got) {
  throw std::invalid_argument(
      place(call) + ", input " + std::to_string(index) + ": got " + got +
      "; want a dense tensor of the graph's device; why: a graph reads its inputs at one address "
      "in one layout; next: pass such a tensor, or leave this module out of modules");
}

}  // namespace

std::string place(const workloads::ModuleCall& call) {
  return std::string(workloads::name(call.kind)) + " of layer " + std::to_string(call.layer) +
         ", microbatch " + std::to_string(call.microbatch);
}

std::vector<Argument> arguments_of(const workloads::ModuleCall& call,
                                   const std::vector<at::Tensor>& inputs, at::Device device) {
  std::vector<Argument> arguments;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor& input = inputs[i];
    if (!input.defined()) unsupported(call, i, "an undefined tensor");
    if (input.layout() != at::kStrided) unsupported(call, i, layout_text(input.layout()));
    if (input.device() != device) unsupported(call, i, "a tensor on " + input.device().str());
    if (!input.is_non_overlapping_and_dense())
      unsupported(call, i, "a tensor with gaps or overlaps");
    arguments.push_back(argument(input));
  }
  return arguments;
}

std::string signature(const std::vector<Argument>& arguments) {
  std::string all;
  for (const Argument& argument : arguments) all += text(argument) + "; ";
  return all;
}

at::Tensor like(const Argument& argument) {
  return at::empty_strided(argument.sizes, argument.strides,
                           at::TensorOptions().dtype(argument.dtype).device(argument.device));
}

bool fits(const std::vector<Argument>& captured, const std::vector<at::Tensor>& inputs) {
  if (captured.size() != inputs.size()) return false;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!same(captured[i], inputs[i])) return false;
  return true;
}

std::string mismatch(const std::vector<Argument>& captured, const std::vector<at::Tensor>& inputs) {
  if (captured.size() != inputs.size())
    return std::to_string(inputs.size()) + " inputs instead of " + std::to_string(captured.size());
  std::string all;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (same(captured[i], inputs[i])) continue;
    all += (all.empty() ? "input " : ", input ") + std::to_string(i) + " " +
           (inputs[i].defined() ? text(argument(inputs[i])) : "undefined") + " instead of " +
           text(captured[i]);
  }
  return all;
}

}  // namespace graphproof::engines
