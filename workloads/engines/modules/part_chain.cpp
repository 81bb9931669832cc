#include "workloads/engines/modules/part_chain.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

namespace graphproof::engines {
namespace {

/// A tensor of the shape of `tensor` that has only one element of memory.
at::Tensor stand_in_for(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  const at::Tensor one = at::empty({1}, tensor.options());
  if (tensor.scalar_type() == at::kBool)
    one.fill_(true);
  else if (at::isFloatingType(tensor.scalar_type()))
    one.fill_(std::numeric_limits<double>::quiet_NaN());
  else
    one.fill_(-1);
  return one.expand(tensor.sizes());
}

}  // namespace

PartChain::PartChain(const workloads::ModuleCall& call, std::vector<Argument> arguments,
                     const std::vector<at::Tensor>& parameters, const workloads::ModuleBody& body)
    : arguments_(std::move(arguments)), parameters_(parameters), links_{{call, body, {}, {}}} {}

bool PartChain::append(const workloads::ModuleCall& call, const Tensors& inputs,
                       const std::vector<at::Tensor>& parameters,
                       const workloads::ModuleBody& body) {
  Link link{call, body, {}, {}};
  for (const at::Tensor& input : inputs)
    for (std::size_t part = 0; part < links_.size(); ++part)
      for (std::size_t output = 0; output < links_[part].outputs.size(); ++output)
        if (links_[part].outputs[output].recorded.lock().get() == input.unsafeGetTensorImpl())
          link.inputs.push_back({part, output});
  if (inputs.empty() || link.inputs.size() != inputs.size()) return false;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    links_[link.inputs[i].part].outputs[link.inputs[i].output].stand_in = stand_in_for(inputs[i]);
  links_.push_back(std::move(link));
  parameters_.insert(parameters_.end(), parameters.begin(), parameters.end());
  return true;
}

void PartChain::ran(const Tensors& outputs) {
  for (const at::Tensor& output : outputs)
    links_.back().outputs.push_back({decltype(Output::recorded)(output.getIntrusivePtr()), {}});
}

bool PartChain::feeds(const Tensors& inputs) const {
  if (inputs.size() != 1 || outputs() != 1) return false;
  for (const Link& link : links_)
    for (const Output& output : link.outputs)
      if (!output.stand_in.defined() &&
          output.recorded.lock().get() == inputs[0].unsafeGetTensorImpl())
        return true;
  return false;
}

std::ptrdiff_t PartChain::part_of(const workloads::ModuleCall& call) const {
  const auto link = std::find_if(links_.begin(), links_.end(), [&](const Link& candidate) {
    return candidate.call.kind == call.kind && candidate.call.layer == call.layer;
  });
  return link == links_.end() ? -1 : link - links_.begin();
}

std::string PartChain::name() const {
  std::string name;
  for (const Link& link : links_)
    name += (name.empty() ? "" : "+") + std::string(workloads::name(link.call.kind));
  return name;
}

std::size_t PartChain::outputs() const {
  std::size_t count = 0;
  for (const Link& link : links_)
    for (const Output& output : link.outputs) count += output.stand_in.defined() ? 0 : 1;
  return count;
}

workloads::ModuleBody PartChain::body() const {
  return [this](const Tensors& inputs) {
    std::vector<Tensors> made;
    Tensors results;
    for (const Link& link : links_) {
      Tensors given = link.inputs.empty() ? inputs : Tensors();
      for (const Source& source : link.inputs) given.push_back(made[source.part][source.output]);
      made.push_back(link.body(given));
      for (std::size_t o = 0; o < link.outputs.size(); ++o)
        if (!link.outputs[o].stand_in.defined()) results.push_back(made.back().at(o));
    }
    return results;
  };
}

PartChain::Tensors PartChain::begin(Tensors results) {
  results_ = std::move(results);
  returned_ = 0;
  return share(0);
}

PartChain::Tensors PartChain::next(const workloads::ModuleCall& call, std::size_t part,
                                   const Tensors& inputs) {
  const Link& link = links_.at(part);
  bool expected = next_ == part && inputs.size() == link.inputs.size();
  for (std::size_t i = 0; expected && i < inputs.size(); ++i)
    expected =
        inputs[i].is_same(links_[link.inputs[i].part].outputs[link.inputs[i].output].stand_in);
  if (!expected)
    throw std::logic_error(
        place(call) +
        ": got a call out of order or with other inputs; want it after the previous part, with "
        "the outputs of that part; why: one graph holds " +
        name() +
        ", and nothing can run between its parts; next: leave one of the parts out of "
        "modules");
  return share(part);
}

void PartChain::require_finished() const {
  if (next_ == 0) return;
  throw std::logic_error(place(links_[next_].call) +
                         ": got no call; want it after the previous part; why: one graph holds " +
                         name() + " and has run all of it; next: leave this part out of modules");
}

PartChain::Tensors PartChain::share(std::size_t part) {
  Tensors outputs;
  for (const Output& output : links_[part].outputs)
    outputs.push_back(output.stand_in.defined() ? output.stand_in : results_.at(returned_++));
  next_ = part + 1 == links_.size() ? 0 : part + 1;
  if (next_ == 0) results_.clear();
  return outputs;
}

}  // namespace graphproof::engines
