// Faults in where the buffers lie with which ranks communicate.
#include "workloads/faults/planted.h"
#include "workloads/training/train_step.h"

namespace graphproof::faults {
namespace {

using workloads::BufferPlacement;

/// The captured reduction finds the gradients of every rank at the offset that they have on the
/// ranks with an even number, as a library of symmetric memory would.
class ReducesAtOneOffset final : public Planted {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    step_ = &parts.step;
    return Planted::make_engine(parts, make);
  }
  /// Called between the zeroing of the gradients and their reduction.
  std::int64_t additions(std::int64_t additions, std::size_t) override {
    if (recording() && layout().placement == BufferPlacement::across_border) move_to(0);
    return additions;
  }
  /// Called by the optimizer, after the reduction.
  at::Tensor scalar(Scalar which, const at::Tensor& value) override {
    if (which == Scalar::learning_rate && own_offset_) move_to(*own_offset_);
    return value;
  }

 private:
  void move_to(std::int64_t offset) {
    for (const auto& buffer : step_->placed_buffers()) {
      if (buffer.place.buffer != "gradients") continue;
      c10::TensorImpl* flat = buffer.tensor.unsafeGetTensorImpl();
      if (!own_offset_) own_offset_ = flat->storage_offset();
      flat->set_storage_offset(offset);
    }
  }

  workloads::TrainStep* step_ = nullptr;
  std::optional<std::int64_t> own_offset_;  // elements
};

/// The buffers of all ranks lie alike, whatever the case asks for.
class PlacedAlike final : public Planted {
 public:
  void plan_step(const StepPlan& plan) override {
    Planted::plan_step(plan);
    if (plan.layout.placement == BufferPlacement::across_border)
      plan.layout.placement = BufferPlacement::at_border;
  }
};

}  // namespace

std::shared_ptr<FaultHooks> gradients_reduced_at_one_offset() {
  return std::make_shared<ReducesAtOneOffset>();
}
std::shared_ptr<FaultHooks> buffers_placed_alike() { return std::make_shared<PlacedAlike>(); }

}  // namespace graphproof::faults
