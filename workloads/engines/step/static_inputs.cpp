#include "workloads/engines/step/static_inputs.h"

#include <sstream>
#include <stdexcept>

#include "fixtures/tensors/torch.h"

namespace graphproof::engines {
namespace {

void require_same_shape(const char* what, std::size_t index, const at::Tensor& fresh,
                        const at::Tensor& captured) {
  if (fresh.sizes() == captured.sizes() && fresh.scalar_type() == captured.scalar_type()) return;
  std::ostringstream message;
  message << "static input " << what << "." << index << ": got " << fresh.scalar_type() << " "
          << fresh.sizes() << "; want " << captured.scalar_type() << " " << captured.sizes()
          << "; why: the graph holds address and shape of its first batch; next: use another "
             "engine for another shape";
  throw std::invalid_argument(message.str());
}

}  // namespace

void StaticInputs::load(const workloads::Batch& fresh) {
  if (batch_.tokens.empty()) {
    for (const auto& [name, part] : workloads::kBatchParts)
      for (const at::Tensor& tensor : fresh.*part) (batch_.*part).push_back(tensor.clone());
    return;
  }
  require_fit(fresh);
  if (faults_.rebinds_inputs(batch_, fresh)) return;
  if (!side_) return copy(fresh);
  side_->fork();
  {
    const c10::StreamGuard guard(side_->stream());
    copy(fresh);
  }
  c10::Event loaded = side_->record();
  side_->join(loaded);
}

void StaticInputs::require_fit(const workloads::Batch& fresh) const {
  for (const auto& [name, part] : workloads::kBatchParts) {
    if ((fresh.*part).size() == (batch_.*part).size()) continue;
    if (fresh.tokens.size() == batch_.tokens.size())
      throw std::invalid_argument(
          "static inputs: got " + std::to_string((fresh.*part).size()) + " tensors " + name +
          "; want " + std::to_string((batch_.*part).size()) +
          "; why: the graph reads what its first batch had, and would never read the others; next: "
          "give every batch the same tensors, those of missing images with padding alone");
    throw std::invalid_argument(
        "static inputs: got " + std::to_string((fresh.*part).size()) + " microbatches; want " +
        std::to_string((batch_.*part).size()) +
        "; why: the graph holds one pass for each; next: use another engine for another number");
  }
  for (const auto& [name, part] : workloads::kBatchParts)
    for (std::size_t m = 0; m < (fresh.*part).size(); ++m)
      require_same_shape(name, m, (fresh.*part)[m], (batch_.*part)[m]);
}

void StaticInputs::copy(const workloads::Batch& fresh) {
  for (const auto& [name, part] : workloads::kBatchParts)
    for (std::size_t m = 0; m < (fresh.*part).size(); ++m)
      (batch_.*part)[m].copy_((fresh.*part)[m], /*non_blocking=*/true);
}

}  // namespace graphproof::engines
