// Faults of seeds and random states.
#include <random>

#include "workloads/faults/planted.h"
#include "workloads/forward/dropout.h"

namespace graphproof::faults {
namespace {

/// A mask [sizes] that follows from a number alone.
at::Tensor mask_of(std::int64_t seed, at::IntArrayRef sizes, const at::TensorOptions& options,
                   double probability) {
  // A multiplicative hash of (element, seed) in 31 bits: every product stays below 2^63.
  constexpr std::int64_t kBits31 = 0x7fffffff;
  at::Tensor h =
      at::arange(c10::multiply_integers(sizes), options.dtype(at::kLong).requires_grad(false));
  h = ((h * 2654435761 + seed * 40503) & kBits31);
  h = h ^ at::bitwise_right_shift(h, 15);
  h = (h * 0x2c1b3c6d) & kBits31;
  h = h ^ at::bitwise_right_shift(h, 12);
  const auto limit = static_cast<std::int64_t>(probability * static_cast<double>(kBits31));
  return h.ge(limit).to(at::kByte).view(sizes);
}

/// A dropout kernel takes its seed as an argument, so a capture freezes it.
class SeedByValue final : public FaultHooks {
 public:
  void dropout_mask(at::Tensor& mask, workloads::DropoutPlace&, at::IntArrayRef sizes,
                    const at::TensorOptions& options, double probability) override {
    mask = mask_of(++seed_, sizes, options, probability);
  }

 private:
  std::int64_t seed_ = 0;
};

/// A dropout kernel takes its seed from a generator of the host, which a capture draws from once.
class SeedFromHostGenerator final : public FaultHooks {
 public:
  void dropout_mask(at::Tensor& mask, workloads::DropoutPlace&, at::IntArrayRef sizes,
                    const at::TensorOptions& options, double probability) override {
    constexpr std::uint64_t kSeeds = 1 << 24;
    mask = mask_of(static_cast<std::int64_t>(host_() % kSeeds), sizes, options, probability);
  }

 private:
  std::mt19937_64 host_{2718};  // alike in all arms
};

/// The seed of a mask has the tensor parallel rank in it where it should not, or lacks it.
class SeedOfTheWrongRank final : public Planted {
 public:
  /// Changes the masks inside tensor parallel regions, which then lack the rank, or those outside.
  explicit SeedOfTheWrongRank(bool inside) : inside_(inside) {}
  void dropout_mask(at::Tensor& mask, workloads::DropoutPlace& place, at::IntArrayRef sizes,
                    const at::TensorOptions& options, double probability) override {
    if ((place.site == workloads::DropoutSite::core_attention) != inside_) return;
    constexpr std::int64_t kOfEachRank = 1 << 20;
    const std::int64_t of_rank = inside_ ? 0 : kOfEachRank * layout().tp_rank;
    mask = mask_of(++seed_ + of_rank, sizes, options, probability);
  }

 private:
  const bool inside_;
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
std::shared_ptr<FaultHooks> dropout_seed_from_host_generator() {
  return std::make_shared<SeedFromHostGenerator>();
}
std::shared_ptr<FaultHooks> tensor_parallel_ranks_drop_alike() {
  return std::make_shared<SeedOfTheWrongRank>(/*inside=*/true);
}
std::shared_ptr<FaultHooks> copies_dropped_differently() {
  return std::make_shared<SeedOfTheWrongRank>(/*inside=*/false);
}
std::shared_ptr<FaultHooks> recompute_draws_new_mask() { return std::make_shared<NewMask>(); }
std::shared_ptr<FaultHooks> seed_mixed_with_address() {
  return std::make_shared<SeedWithAddress>();
}
std::shared_ptr<FaultHooks> checkpoint_without_random_numbers() {
  return std::make_shared<NoRandomNumbers>();
}

}  // namespace graphproof::faults
