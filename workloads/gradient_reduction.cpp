#include "workloads/gradient_reduction.h"

#include <torch/csrc/autograd/utils/lambda_post_hook.h>

#include <algorithm>

#include "fixtures/comm/collectives.h"
#include "fixtures/torch.h"

namespace graphproof::workloads {
namespace {

// Small beside Megatron-LM's 40 million: models here must have several buckets.
constexpr std::int64_t kBucketElements = std::int64_t{1} << 15;

}  // namespace

GradientReduction::GradientReduction(const ModelConfig& config, const Layout& layout, const Parameters& parameters,
                                     const GradientBuffer& gradients, capture::Device& device, fixtures::Fault fault)
    : config_(config),
      layout_(layout),
      gradients_(gradients),
      fault_(std::move(fault)),
      device_(device),
      side_(config.overlap_grad_reduce ? device.stream_from_pool() : device.current_stream()) {
  if (config.overlap_grad_reduce && layout.replicas() > 1) cut_buckets(parameters);
}

void GradientReduction::cut_buckets(const Parameters& parameters) {
  struct Place {
    std::int64_t begin;
    at::Tensor parameter;
  };
  std::vector<Place> places;
  const at::Tensor shared = gradients_.shared();
  for (std::size_t i = 0; i < parameters.all().size(); ++i)
    if (!parameters.shards()[i].expert)
      places.push_back({gradients_.views()[i].tensor.storage_offset() - shared.storage_offset(), parameters.all()[i].tensor});
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.begin < b.begin; });
  std::vector<std::size_t> bucket_of;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (bucket_of.empty() || places[i].begin - begin >= kBucketElements) {
      if (!buckets_.empty()) buckets_.back().gradients = shared.narrow(0, begin, places[i].begin - begin);
      begin = places[i].begin;
      buckets_.emplace_back();
    }
    ++buckets_.back().parameters;
    bucket_of.push_back(buckets_.size() - 1);
  }
  buckets_.back().gradients = shared.narrow(0, begin, shared.numel() - begin);
  for (std::size_t i = 0; i < places.size(); ++i)
    torch::autograd::impl::grad_accumulator(places[i].parameter)
        ->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
            [this, bucket = bucket_of[i]](const torch::autograd::variable_list& outputs, const torch::autograd::variable_list&) {
              added(bucket);
              return outputs;
            }));
}

void GradientReduction::begin_backward(bool last) {
  last_ = last;
  for (Bucket& bucket : buckets_) {
    bucket.missing = bucket.parameters;
    bucket.reduced = false;
  }
}

void GradientReduction::added(std::size_t index) {
  Bucket& bucket = buckets_[index];
  if (last_ && --bucket.missing == 0) reduce(bucket);
}

void GradientReduction::reduce(Bucket& bucket) {
  const at::NoGradGuard no_grad;
  const c10::impl::VirtualGuardImpl streams(side_.device_type());
  c10::Event ready(side_.device_type());
  ready.record(streams.getStream(side_.device()));
  ready.block(side_);
  const c10::StreamGuard guard(side_);
  comm::all_reduce_(bucket.gradients, layout_.replica_group());
  bucket.reduced = true;
}

void GradientReduction::finish() {
  const at::NoGradGuard no_grad;
  if (layout_.replicas() > 1) {
    // M88 stands for a mask against NaN on one rank that takes sound gradients too: after the sum all ranks agree.
    if (fault_.is("M88") && layout_.dp_rank == 1) gradients_.views().front().tensor.zero_();
    for (Bucket& bucket : buckets_)
      if (!bucket.reduced) reduce(bucket);  // of a parameter that took no part in the last microbatch
    if (buckets_.empty()) {
      comm::all_reduce_(gradients_.shared(), layout_.replica_group());
    } else if (!fault_.is("M11") || !device_.capturing(device_.current_stream())) {
      // M11 stands for a join that a capture forgets: it ends with work that nothing waits for.
      c10::Event reduced(side_.device_type());
      reduced.record(side_);
      reduced.block(c10::impl::VirtualGuardImpl(side_.device_type()).getStream(side_.device()));
    }
    if (config_.experts > 0 && layout_.replicas() > layout_.ep) comm::all_reduce_(gradients_.experts(), layout_.edp_group);
    at::Tensor(gradients_.flat()).mul_(1.0 / layout_.replicas());
  }
  if (layout_.sequence_parallel) comm::all_reduce_(gradients_.by_tokens(), layout_.tp_group);
}

}  // namespace graphproof::workloads
