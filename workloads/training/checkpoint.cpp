#include "workloads/training/checkpoint.h"

#include <stdexcept>
#include <string>

#include "fixtures/inspect/host_copies.h"
#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {
namespace {

constexpr const char* kGenerator = "generator:";

std::vector<fixtures::NamedTensor> kept_tensors(TrainStep& step) {
  std::vector<fixtures::NamedTensor> tensors = step.parameters();
  for (fixtures::NamedTensor& tensor : step.optimizer_state()) tensors.push_back(std::move(tensor));
  return tensors;
}

}  // namespace

Checkpoint::Checkpoint(TrainStep& step) : tensors_(fixtures::on_host(kept_tensors(step))) {
  if (!step.faults().saves_random_numbers()) return;
  for (at::Generator& generator : step.rng().generators())
    generators_.push_back(generator.get_state());
}

Checkpoint::Checkpoint(std::vector<fixtures::NamedTensor> contents) {
  for (fixtures::NamedTensor& one : contents) {
    if (one.name.starts_with(kGenerator))
      generators_.push_back(std::move(one.tensor));
    else
      tensors_.push_back(std::move(one));
  }
}

std::vector<fixtures::NamedTensor> Checkpoint::contents() const {
  std::vector<fixtures::NamedTensor> all = tensors_;
  for (std::size_t i = 0; i < generators_.size(); ++i)
    all.push_back({kGenerator + std::to_string(i), generators_[i]});
  return all;
}

void Checkpoint::load_into(TrainStep& step) const {
  const at::NoGradGuard no_grad;
  const std::vector<fixtures::NamedTensor> own = kept_tensors(step);
  if (own.size() != tensors_.size())
    throw std::logic_error("checkpoint: got " + std::to_string(tensors_.size()) +
                           " tensors for a model that keeps " + std::to_string(own.size()) +
                           "; want the same; why: it is of another configuration; next: load it "
                           "into a model like the one that saved it");
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i].name != tensors_[i].name || own[i].tensor.sizes() != tensors_[i].tensor.sizes())
      throw std::logic_error("checkpoint: got " + tensors_[i].name + " where the model has " +
                             own[i].name +
                             "; want the same name and shape; why: it is of another configuration; "
                             "next: load it into a "
                             "model like the one that saved it");
    own[i].tensor.copy_(tensors_[i].tensor);
  }
  std::vector<at::Generator> generators = step.rng().generators();
  for (std::size_t i = 0; i < generators_.size(); ++i) generators.at(i).set_state(generators_[i]);
}

}  // namespace graphproof::workloads
