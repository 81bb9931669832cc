#include "workloads/training/host_checks.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {
namespace {

void require_finite(const at::Tensor& values, const std::string& what) {
  if (at::isfinite(values).all().item<bool>()) return;
  throw std::runtime_error(
      what +
      ": got a value that is not finite; want finite values; why: training on would spread it "
      "to every parameter; next: ./graphproof repro this case, whose evidence names the first "
      "tensor "
      "that differs from eager, or look at the data of this step");
}

}  // namespace

HostChecks::HostChecks(const ModelConfig& config, faults::FaultHooks& faults)
    : check_loss_(config.nan_check_loss),
      check_gradients_(config.nan_check_grad),
      faults_(faults) {}

bool HostChecks::due(bool by_configuration, std::int64_t looked) const {
  return by_configuration && faults_.host_checks(looked);
}

void HostChecks::loss(const at::Tensor& value, std::int64_t microbatch) {
  if (!due(check_loss_, losses_)) return;
  require_finite(value, "loss of microbatch " + std::to_string(microbatch));
  ++losses_;
}

void HostChecks::gradients(const at::Tensor& gradients) {
  if (!due(check_gradients_, gradients_)) return;
  require_finite(gradients, "gradients of this rank before their reduction");
  elements_ += gradients.numel();
}

void HostChecks::end_step(std::int64_t elements) {
  if (std::exchange(elements_, 0) == elements) ++gradients_;
}

}  // namespace graphproof::workloads
