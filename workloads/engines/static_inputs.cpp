#include "workloads/engines/static_inputs.h"

#include <sstream>
#include <stdexcept>

#include "fixtures/torch.h"

namespace graphproof::engines {
namespace {

void require_same_shape(const char* what, std::size_t index, const at::Tensor& fresh, const at::Tensor& held) {
  if (fresh.sizes() == held.sizes() && fresh.scalar_type() == held.scalar_type()) return;
  std::ostringstream message;
  message << "static input " << what << "." << index << ": got " << fresh.scalar_type() << " " << fresh.sizes()
          << "; want " << held.scalar_type() << " " << held.sizes()
          << "; why: the graph holds address and shape of its first batch; next: use another engine for another shape";
  throw std::invalid_argument(message.str());
}

}  // namespace

void StaticInputs::load(const workloads::Batch& fresh) {
  if (batch_.tokens.empty()) {
    for (const at::Tensor& tokens : fresh.tokens) batch_.tokens.push_back(tokens.clone());
    for (const at::Tensor& labels : fresh.labels) batch_.labels.push_back(labels.clone());
    return;
  }
  require_fit(fresh);
  if (fault_.is("M26")) {
    // M26 stands for `static_in = batch`: the handle moves on, the graph reads the old address. The old tensors are
    // kept, so that the graph reads old values and not freed memory: wrong in silence, as in the field.
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
  ready.block(*side_);
  {
    const c10::StreamGuard guard(*side_);
    copy(fresh);
    loaded.record(*side_);
  }
  loaded.block(current);
}

void StaticInputs::require_fit(const workloads::Batch& fresh) const {
  if (fresh.tokens.size() != batch_.tokens.size() || fresh.labels.size() != batch_.labels.size())
    throw std::invalid_argument("static inputs: got " + std::to_string(fresh.tokens.size()) +
                                " microbatches; want " + std::to_string(batch_.tokens.size()) +
                                "; why: the graph holds one pass for each; next: use another engine for another number");
  for (std::size_t m = 0; m < fresh.tokens.size(); ++m) {
    require_same_shape("tokens", m, fresh.tokens[m], batch_.tokens[m]);
    require_same_shape("labels", m, fresh.labels[m], batch_.labels[m]);
  }
}

void StaticInputs::copy(const workloads::Batch& fresh) {
  for (std::size_t m = 0; m < fresh.tokens.size(); ++m) {
    batch_.tokens[m].copy_(fresh.tokens[m], /*non_blocking=*/true);
    batch_.labels[m].copy_(fresh.labels[m], /*non_blocking=*/true);
  }
}

}  // namespace graphproof::engines
