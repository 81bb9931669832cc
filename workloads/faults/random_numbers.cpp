// Faults of seeds and random states.
#include "workloads/faults/planted.h"
#include "workloads/forward/dropout.h"

namespace graphproof::faults {
namespace {

/// A dropout kernel takes its seed as an argument, so a capture freezes it.
class SeedByValue final : public FaultHooks {
 public:
  void dropout_mask(at::Tensor& mask, workloads::DropoutPlace&, at::IntArrayRef sizes,
                    const at::TensorOptions& options, double probability) override {
    // A multiplicative hash of (element, seed) in 31 bits: every product stays below 2^63.
    constexpr std::int64_t kBits31 = 0x7fffffff;
    ++seed_;
    at::Tensor h =
        at::arange(c10::multiply_integers(sizes), options.dtype(at::kLong).requires_grad(false));
    h = ((h * 2654435761 + seed_ * 40503) & kBits31);
    h = h ^ at::bitwise_right_shift(h, 15);
    h = (h * 0x2c1b3c6d) & kBits31;
    h = h ^ at::bitwise_right_shift(h, 12);
    const auto limit = static_cast<std::int64_t>(probability * static_cast<double>(kBits31));
    mask = h.ge(limit).to(at::kByte).view(sizes);
  }

 private:
  std::int64_t seed_ = 0;
};

/// The recompute does not restore the random state.
class NewMask final : public FaultHooks {
 public:
  void dropout_mask(at::Tensor&, workloads::DropoutPlace& place, at::IntArrayRef,
                    const at::TensorOptions&, double) override {
    place.again = false;
  }
};

/// The seed depends on something that differs between two runs, here an address.
class SeedWithAddress final : public FaultHooks {
 public:
  void plan_step(const StepPlan& plan) override {
    plan.seed += reinterpret_cast<std::uintptr_t>(this);
  }
};

/// A checkpoint lacks the random number generators.
class NoRandomNumbers final : public FaultHooks {
 public:
  bool saves_random_numbers() override { return false; }
};

}  // namespace

std::shared_ptr<FaultHooks> dropout_seed_by_value() { return std::make_shared<SeedByValue>(); }
std::shared_ptr<FaultHooks> recompute_draws_new_mask() { return std::make_shared<NewMask>(); }
std::shared_ptr<FaultHooks> seed_mixed_with_address() {
  return std::make_shared<SeedWithAddress>();
}
std::shared_ptr<FaultHooks> checkpoint_without_random_numbers() {
  return std::make_shared<NoRandomNumbers>();
}

}  // namespace graphproof::faults
