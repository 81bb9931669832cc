#include "workloads/training/gradient_clip.h"

#include "fixtures/comm/collectives.h"
#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {
namespace {

at::Tensor sum_of_squares(const at::Tensor& x) { return x.square().sum(at::kDouble).view({1}); }

/// 1 for the elements that this rank counts: its shards; parameters that all tensor parallel ranks
/// hold, on the first of them; embeddings that the last stage holds too, on the first stage.
at::Tensor counted_elements(const Parameters& parameters, const ParameterBuffer& buffer,
                            const Layout& layout) {
  at::Tensor counted = at::ones_like(buffer.flat());
  for (std::size_t i = 0; i < parameters.all().size(); ++i) {
    const bool of_first_rank = layout.tp_rank > 0 && parameters.shards()[i].count == 1;
    const bool of_first_stage =
        !layout.first_stage() && parameters.all()[i].name == "param:embedding.weight";
    if (of_first_rank || of_first_stage)
      counted.narrow(0, buffer.begin(i), parameters.all()[i].tensor.numel()).zero_();
  }
  return counted;
}

}  // namespace

GradientClip::GradientClip(const Parameters& parameters, const GradientBuffer& gradients,
                           const Layout& layout, bool sharded, faults::FaultHooks& faults)
    : gradients_(gradients), layout_(layout), sharded_(sharded) {
  const at::NoGradGuard no_grad;
  faults.clip_layout(layout_);
  shared_counted_ =
      counted_elements(parameters, gradients, layout_).narrow(0, 0, gradients.shared().numel());
  norm_ = at::zeros({1}, gradients.flat().options());
}

void GradientClip::clip() {
  const at::NoGradGuard no_grad;
  at::Tensor shared = sum_of_squares(gradients_.shared() * shared_counted_);
  if (sharded_) comm::all_reduce_(shared, layout_.replica_group());
  if (layout_.tp > 1) comm::all_reduce_(shared, layout_.tp_group);
  if (gradients_.experts().numel() > 0) {
    at::Tensor experts = sum_of_squares(gradients_.experts());
    // Each element is owned by one rank of a stage, or held by one of the ranks over which the
    // experts are split.
    if (sharded_) {
      comm::all_reduce_(experts, layout_.replica_group());
      if (layout_.tp > 1) comm::all_reduce_(experts, layout_.tp_group);
    } else {
      if (layout_.ep > 1) comm::all_reduce_(experts, layout_.ep_group);
      if (layout_.etp > 1) comm::all_reduce_(experts, layout_.etp_group);
    }
    shared.add_(experts);
  }
  if (layout_.pp > 1) comm::all_reduce_(shared, layout_.pp_group);
  norm_.copy_(shared.sqrt());
  // Megatron-LM's epsilon, which avoids a division by a norm of zero.
  constexpr double kEpsilon = 1e-6;
  at::Tensor(gradients_.flat()).mul_((kLargestGradientNorm / (norm_ + kEpsilon)).clamp_max(1.0));
}

}  // namespace graphproof::workloads
