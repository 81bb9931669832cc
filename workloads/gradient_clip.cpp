#include "workloads/gradient_clip.h"

#include "fixtures/comm/collectives.h"
#include "fixtures/torch.h"

namespace graphproof::workloads {
namespace {

at::Tensor sum_of_squares(const at::Tensor& x) { return x.square().sum(at::kDouble).view({1}); }

/// 1 for the elements that this rank counts: its shards, and what all tensor parallel ranks hold on the first of them.
at::Tensor counted_elements(const Parameters& parameters, const ParameterBuffer& buffer, const Layout& layout,
                            const fixtures::Fault& fault) {
  at::Tensor counted = at::ones_like(buffer.flat());
  // M97 stands for a norm that counts what every rank holds once for each rank.
  if (layout.tp_rank == 0 || fault.is("M97")) return counted;
  for (std::size_t i = 0; i < parameters.all().size(); ++i) {
    if (parameters.shards()[i].count > 1) continue;
    const at::Tensor& view = buffer.views()[i].tensor;
    counted.narrow(0, view.storage_offset() - buffer.flat().storage_offset(), view.numel()).zero_();
  }
  return counted;
}

}  // namespace

GradientClip::GradientClip(const Parameters& parameters, const GradientBuffer& gradients, const Layout& layout,
                           fixtures::Fault fault)
    : gradients_(gradients), layout_(layout) {
  const at::NoGradGuard no_grad;
  shared_counted_ = counted_elements(parameters, gradients, layout, fault).narrow(0, 0, gradients.shared().numel());
  norm_ = at::zeros({1}, gradients.flat().options());
}

void GradientClip::clip() {
  const at::NoGradGuard no_grad;
  at::Tensor shared = sum_of_squares(gradients_.shared() * shared_counted_);
  if (layout_.tp > 1) comm::all_reduce_(shared, layout_.tp_group);
  if (gradients_.experts().numel() > 0) {
    at::Tensor experts = sum_of_squares(gradients_.experts());
    if (layout_.ep > 1) comm::all_reduce_(experts, layout_.ep_group);
    shared.add_(experts);
  }
  norm_.copy_(shared.sqrt());
  // Megatron-LM's epsilon against a norm of zero.
  constexpr double kEpsilon = 1e-6;
  at::Tensor(gradients_.flat()).mul_((kLargestGradientNorm / (norm_ + kEpsilon)).clamp_max(1.0));
}

}  // namespace graphproof::workloads
