#include "workloads/parameters.h"

#include "fixtures/torch.h"
#include "workloads/draw.h"

namespace graphproof::workloads {
namespace {

// Views start at multiples of 64 elements (256 bytes), so that kernels choose the vector width that they would choose
// for a tensor of its own.
constexpr std::int64_t kAlignmentElements = 64;

std::int64_t padded(std::int64_t elements) {
  return (elements + kAlignmentElements - 1) / kAlignmentElements * kAlignmentElements;
}

}  // namespace

at::Tensor Parameters::create(const std::string& name, const std::vector<std::int64_t>& full_shape, Shard shard,
                              Distribution distribution) {
  const Draw draw(seed_, name);
  at::Tensor full = at::empty(full_shape, at::kFloat);
  float* values = full.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < full.numel(); ++i)
    values[i] = static_cast<float>(distribution.mean + distribution.half_width * draw.uniform(i));
  const std::int64_t length = full.size(shard.dimension) / shard.count;
  at::Tensor parameter =
      full.narrow(shard.dimension, shard.index * length, length).contiguous().to(device_).requires_grad_(true);
  accumulators_.push_back(torch::autograd::impl::grad_accumulator(parameter));
  all_.push_back({"param:" + name, parameter});
  return parameter;
}

std::vector<at::Tensor> Parameters::starting_with(const std::string& prefix) const {
  std::vector<at::Tensor> chosen;
  for (const auto& [name, tensor] : all_)
    if (name.starts_with("param:" + prefix)) chosen.push_back(tensor);
  return chosen;
}

GradientBuffer::GradientBuffer(const Parameters& parameters) {
  std::int64_t elements = 0;
  for (const auto& parameter : parameters.all()) elements += padded(parameter.tensor.numel());
  flat_ = at::zeros({elements}, parameters.all().front().tensor.options().requires_grad(false));
  std::int64_t begin = 0;
  for (const auto& [name, parameter] : parameters.all()) {
    const at::Tensor view = flat_.narrow(0, begin, parameter.numel()).view(parameter.sizes());
    parameter.mutable_grad() = view;
    views_.push_back({"grad:" + name.substr(name.find(':') + 1), view});
    begin += padded(parameter.numel());
  }
}

}  // namespace graphproof::workloads
