#include "workloads/parameters/parameters.h"

#include "fixtures/tensors/torch.h"
#include "workloads/config/precision.h"
#include "workloads/parameters/draw.h"

namespace graphproof::workloads {
namespace {

std::int64_t padded(std::int64_t elements) {
  constexpr std::int64_t kAlignment = ParameterBuffer::kAlignmentElements;
  return (elements + kAlignment - 1) / kAlignment * kAlignment;
}

at::Tensor part(const at::Tensor& x, std::int64_t dimension, int index, int count) {
  const std::int64_t length = x.size(dimension) / count;
  return x.narrow(dimension, index * length, length);
}

}  // namespace

at::Tensor Shard::of(const at::Tensor& full) const {
  return part(part(full, dimension, index, count), inner_dimension, inner_index, inner_count);
}

at::Tensor Parameters::create(const std::string& name, const std::vector<std::int64_t>& full_shape,
                              Shard shard, Distribution distribution) {
  const Draw draw(seed_, name);
  at::Tensor full = at::empty(full_shape, at::kFloat);
  float* values = full.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < full.numel(); ++i)
    values[i] = static_cast<float>(distribution.mean + distribution.half_width * draw.uniform(i));
  at::Tensor parameter = shard.of(full).contiguous().to(type_).to(device_).requires_grad_(!frozen_);
  // Makes autograd cast the gradient before it accumulates, so that .grad may be the fp32 main
  // gradient itself.
  if (type_ != wide_type(type_) && !frozen_) parameter.set_grad_dtype(wide_type(type_));
  if (!frozen_) accumulators_.push_back(torch::autograd::impl::grad_accumulator(parameter));
  all_.push_back({"param:" + name, parameter});
  shards_.push_back(shard);
  return parameter;
}

std::vector<at::Tensor> Parameters::starting_with(const std::string& prefix) const {
  std::vector<at::Tensor> chosen;
  for (const auto& [name, tensor] : all_)
    if (name.starts_with("param:" + prefix)) chosen.push_back(tensor);
  return chosen;
}

ParameterBuffer::ParameterBuffer(const Parameters& parameters, const std::string& prefix,
                                 at::ScalarType type, const MakeBuffer& make)
    : begins_(parameters.all().size()) {
  const auto& all = parameters.all();
  std::int64_t elements = 0;
  const auto place = [&](bool by_tokens, bool expert) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Shard& shard = parameters.shards()[i];
      if (shard.by_tokens != by_tokens || shard.expert != expert) continue;
      begins_[i] = elements;
      elements += padded(all[i].tensor.numel());
    }
    return elements;
  };
  by_tokens_elements_ = place(/*by_tokens=*/true, /*expert=*/false);
  shared_elements_ = place(/*by_tokens=*/false, /*expert=*/false);
  place(/*by_tokens=*/false, /*expert=*/true);
  const auto options = all.front().tensor.options().dtype(type).requires_grad(false);
  flat_ = make ? make(elements, options) : at::zeros({elements}, options);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& [name, parameter] = all[i];
    views_.push_back({prefix + name.substr(name.find(':') + 1),
                      flat_.narrow(0, begins_[i], parameter.numel()).view(parameter.sizes())});
  }
}

GradientBuffer::GradientBuffer(const Parameters& parameters, const MakeBuffer& make)
    : ParameterBuffer(parameters, "grad:", wide_type(parameters.all().front().tensor.scalar_type()),
                      make) {
  for (std::size_t i = 0; i < views().size(); ++i) {
    at::Tensor parameter = parameters.all()[i].tensor;
    parameter.mutable_grad() = views()[i].tensor;
  }
}

}  // namespace graphproof::workloads
