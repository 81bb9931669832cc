#include "workloads/training/gradient_reduction.h"

#include <torch/csrc/autograd/utils/lambda_post_hook.h>

#include "fixtures/comm/collectives.h"
#include "fixtures/comm/collectives_into.h"
#include "fixtures/comm/torch_group.h"
#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {
namespace {

/// How often a backward adds to the gradient of a parameter. Autograd sums the gradients of one
/// backward and adds once. If the step runs layer by layer (overlap_ep_comm), each piece has its
/// own backward, so an embedding gets an addition for each piece that uses it: the head if it is
/// tied, what is ahead of a layer of multi-token prediction, and the front of the model.
std::int64_t additions(const ModelConfig& config, const Layout& layout, const std::string& name) {
  if (!config.overlap_ep_comm || name != "param:embedding.weight") return 1;
  const bool tied = layout.last_stage() && config.tied_embeddings,
             predicts = layout.last_stage() && config.mtp_num_layers > 0;
  return (layout.first_stage() ? 1 : 0) + (tied ? 1 : 0) + (predicts ? 1 : 0);
}

}  // namespace

GradientReduction::GradientReduction(const ModelConfig& config, const Layout& layout,
                                     const Parameters& parameters, const GradientBuffer& gradients,
                                     HostChecks& checks, capture::Device& device,
                                     faults::FaultHooks& faults)
    : config_(config),
      layout_(layout),
      gradients_(gradients),
      checks_(checks),
      faults_(faults),
      side_(config.overlap_grad_reduce ? device.stream_from_pool() : device.current_stream(),
            faults::SideWork::gradient_reduction, faults) {
  if (layout.replicas() == 1) return;
  if (config.overlap_grad_reduce && !config.distributed_optimizer) {
    if (auto group = comm::torch_group(layout.replica_group(), gradients.flat().device().type())) {
      std::vector<at::Tensor> leaves;
      for (const auto& parameter : parameters.all()) leaves.push_back(parameter.tensor);
      ddp_ = std::make_unique<DdpReduction>(std::move(leaves), std::move(group));
      return;
    }
  }
  std::int64_t own_elements = 0;
  for (Bucket& bucket : cut_buckets(config, layout, parameters, gradients)) {
    FlatRange own;
    if (config.distributed_optimizer)
      own = {.begin = own_elements, .elements = bucket.own().elements};
    own_elements += own.elements;
    std::int64_t count = 0;
    for (const std::size_t i : bucket.parameters)
      count += additions(config, layout, parameters.all()[i].name);
    buckets_.push_back({.bucket = std::move(bucket), .own = own, .additions = count});
  }
  if (config.distributed_optimizer) own_ = at::zeros({own_elements}, gradients.flat().options());
  if (config.overlap_grad_reduce) register_hooks(parameters);
}

void GradientReduction::register_hooks(const Parameters& parameters) {
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    for (const std::size_t i : buckets_[b].bucket.parameters) {
      bucket_of_[parameters.all()[i].tensor.unsafeGetTensorImpl()] = b;
      torch::autograd::impl::grad_accumulator(parameters.all()[i].tensor)
          ->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
              [this, b](const torch::autograd::variable_list& outputs,
                        const torch::autograd::variable_list&) {
                added(b);
                return outputs;
              }));
    }
}

void GradientReduction::added(const at::Tensor& parameter) {
  if (const auto bucket = bucket_of_.find(parameter.unsafeGetTensorImpl());
      bucket != bucket_of_.end())
    added(bucket->second);
}

void GradientReduction::begin_step() {
  if (ddp_) ddp_->begin_step();
  overlapped_ = 0;
  for (Reduced& bucket : buckets_) {
    bucket.missing = faults_.additions(bucket.additions, bucket.bucket.parameters.size());
    bucket.done = false;
  }
}

void GradientReduction::begin_backward(bool last) {
  last_ = last;
  if (ddp_ && last) ddp_->begin_last_backward();
}

void GradientReduction::added(std::size_t index) {
  Reduced& bucket = buckets_[index];
  if (!last_ || --bucket.missing != 0) return;
  reduce(bucket);
  ++overlapped_;
}

std::optional<std::int64_t> GradientReduction::overlapped() const {
  return config_.overlap_grad_reduce && !ddp_ ? std::optional(overlapped_) : std::nullopt;
}

void GradientReduction::reduce(Reduced& bucket) {
  bucket.done = true;
  checks_.gradients(bucket.bucket.of(gradients_.flat()));
  if (!config_.overlap_grad_reduce) return issue(bucket);
  side_.fork();
  const c10::StreamGuard guard(side_.stream());
  issue(bucket);
}

void GradientReduction::issue(const Reduced& bucket) {
  const at::NoGradGuard no_grad;
  const at::Tensor gradients = bucket.bucket.of(gradients_.flat());
  if (own_.defined())
    comm::reduce_scatter_into(bucket.own.of(own_), gradients, bucket.bucket.group);
  else
    comm::all_reduce_(gradients, bucket.bucket.group);
}

void GradientReduction::finish() {
  const at::NoGradGuard no_grad;
  if (buckets_.empty()) {
    checks_.gradients(gradients_.flat());
    if (!ddp_ && config_.experts > 0 && layout_.expert_replicas() > 1)
      comm::all_reduce_(gradients_.experts(),
                        layout_.edp_group);  // each tensor parallel rank had its own tokens
  } else {
    for (Reduced& bucket : buckets_)
      if (!bucket.done)
        reduce(bucket);  // without overlap, or if the last backward missed one of its parameters
    if (config_.overlap_grad_reduce) {
      c10::Event reduced = side_.record();
      side_.join(reduced);
    }
    if (own_.defined()) keep_own();
  }
  checks_.end_step(gradients_.flat().numel());
  if (layout_.replicas() > 1 && !ddp_) at::Tensor(gradients_.flat()).mul_(1.0 / layout_.replicas());
  if (layout_.sequence_parallel) comm::all_reduce_(gradients_.by_tokens(), layout_.tp_group);
}

void GradientReduction::keep_own() {
  at::Tensor(gradients_.flat()).zero_();
  for (const Reduced& bucket : buckets_)
    bucket.bucket.own().of(gradients_.flat()).copy_(bucket.own.of(own_));
}

void GradientReduction::gather() {
  const at::NoGradGuard no_grad;
  if (!own_.defined()) return;
  for (const Reduced& bucket : buckets_)
    comm::all_reduce_(bucket.bucket.of(gradients_.flat()), bucket.bucket.group);
}

}  // namespace graphproof::workloads
