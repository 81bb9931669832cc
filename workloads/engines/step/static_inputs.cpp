#include "workloads/engines/step/static_inputs.h"

#include <sstream>
#include <stdexcept>

#include "fixtures/tensors/torch.h"

namespace graphproof::engines {
namespace {

void require_same_shape(const char* what, std::size_t index, const at::Tensor& fresh,
                        const at::Tensor& held) {
  if (fresh.sizes() == held.sizes() && fresh.scalar_type() == held.scalar_type()) return;
  std::ostringstream message;
  message << "static input " << what << "." << index << ": got " << fresh.scalar_type() << " "
          << fresh.sizes() << "; want " << held.scalar_type() << " " << held.sizes()
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
  if (fault_.is("M26")) {
    // M26 stands for `static_in = batch`: the handle moves on, the graph reads the old address. The
    // old tensors are kept, so that the graph reads old values and not freed memory: wrong in
    // silence, as in the field.
    forgotten_.push_back(batch_);
    batch_ = fresh;
    return;
  }
  if (!side_) return copy(fresh);
  const c10::DeviceType device = fresh.tokens[0].device().type();
  const c10::impl::VirtualGuardImpl streams(device);
  const c10::Stream current = streams.getStream(fresh.tokens[0].device());
  c10::Event ready(device), loaded(device);
  ready.record(current);
  // M40 stands for a loader that does not wait for whoever still reads what it loads.
  if (!fault_.is("M40")) ready.block(*side_);
  {
    const c10::StreamGuard guard(*side_);
    copy(fresh);
    loaded.record(*side_);
  }
  // M165 stands for a loader that the step does not wait for.
  if (!fault_.is("M165")) loaded.block(current);
}

void StaticInputs::require_fit(const workloads::Batch& fresh) const {
  for (const auto& [name, part] : workloads::kBatchParts) {
    if ((fresh.*part).size() == (batch_.*part).size()) continue;
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
