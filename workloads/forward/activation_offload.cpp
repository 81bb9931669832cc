#include "workloads/forward/activation_offload.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace graphproof::workloads {
namespace {

// A number of these bytes is a NaN in fp32 and in both types of 16 bits.
constexpr unsigned char kMark = 0xff;

struct OffloadedProduct : torch::autograd::Function<OffloadedProduct> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weight, std::int64_t offload) {
    context->save_for_backward({weight});
    context->saved_data["offload"] = offload;
    context->saved_data["buffer"] =
        static_cast<std::int64_t>(reinterpret_cast<ActivationOffload*>(offload)->keep(x));
    return at::mm(x, weight.t());
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const at::NoGradGuard no_grad;
    const at::Tensor weight = context->get_saved_variables()[0];
    const at::Tensor& dy = gradients[0];
    auto* const offload =
        reinterpret_cast<ActivationOffload*>(context->saved_data["offload"].toInt());
    const at::Tensor x =
        offload->fetch(static_cast<std::size_t>(context->saved_data["buffer"].toInt()));
    return {at::mm(dy, weight), at::mm(dy.t(), x), at::Tensor()};
  }
};

}  // namespace

ActivationOffload::ActivationOffload(capture::Device& device, faults::FaultHooks& faults)
    : device_(device),
      side_(device.stream_from_pool(), faults::SideWork::activation_offload, faults),
      fetched_(at::zeros({}, at::TensorOptions().dtype(at::kLong).device(device.torch_device()))) {}

std::size_t ActivationOffload::keep(const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  const std::size_t buffer = next_++;
  const bool fits = buffer < buffers_.size() && buffers_[buffer].sizes() == x.sizes() &&
                    buffers_[buffer].scalar_type() == x.scalar_type();
  if (!fits && device_.capturing(device_.current_stream()))
    throw std::logic_error(
        "activation offload: got activation " + std::to_string(buffer) +
        " in a capture, and no host buffer of its shape and type; want one that an eager step has "
        "made; why: host memory cannot be allocated in a capture; next: run the same step eagerly "
        "before the capture");
  if (!fits) {
    if (buffers_.size() <= buffer) buffers_.resize(buffer + 1);
    buffers_[buffer] =
        at::empty(x.sizes(), at::TensorOptions().dtype(x.scalar_type()).pinned_memory(true));
  }
  finish();  // one copy is on its way at a time
  const at::Tensor from = x.detach().contiguous();
  side_.fork();
  const c10::StreamGuard guard(side_.stream());
  buffers_[buffer].copy_(from, /*non_blocking=*/true);
  copying_.emplace(Copying{from, side_.record()});
  return buffer;
}

at::Tensor ActivationOffload::fetch(std::size_t buffer) {
  const at::NoGradGuard no_grad;
  const at::Tensor& kept = buffers_.at(buffer);
  // Memory of the current stream, which waits for the copy before anything reads or frees it.
  at::Tensor fetched = at::empty(
      kept.sizes(), at::TensorOptions().dtype(kept.scalar_type()).device(device_.torch_device()));
  side_.fork();
  c10::Event done(side_.stream().device_type());
  {
    const c10::StreamGuard guard(side_.stream());
    fetched.copy_(kept, /*non_blocking=*/true);
    done = side_.record();
  }
  side_.join(done);
  fetched_.add_(1);
  return fetched;
}

void ActivationOffload::finish() {
  if (!copying_) return;
  side_.join(copying_->done);
  copying_.reset();
}

void ActivationOffload::mark() {
  for (const at::Tensor& buffer : buffers_)
    std::memset(buffer.mutable_data_ptr(), kMark, buffer.nbytes());
  fetched_.zero_();
}

ActivationOffload::Counts ActivationOffload::counts() const {
  Counts counts{.buffers = std::ssize(buffers_), .fetched = fetched_.item<std::int64_t>()};
  for (const at::Tensor& buffer : buffers_) {
    const std::span bytes(static_cast<const unsigned char*>(buffer.const_data_ptr()),
                          buffer.nbytes());
    counts.pinned += buffer.is_pinned() ? 1 : 0;
    counts.written +=
        std::ranges::any_of(bytes, [](unsigned char byte) { return byte != kMark; }) ? 1 : 0;
  }
  return counts;
}

at::Tensor offloaded_product(const at::Tensor& x, const at::Tensor& weight,
                             ActivationOffload& offload) {
  return OffloadedProduct::apply(x, weight, reinterpret_cast<std::int64_t>(&offload));
}

}  // namespace graphproof::workloads
