// Faults of autocast: casts that outlive the region or the capture that they belong to, and work
// that runs outside of its region.
#include <ATen/autocast_mode.h>

#include <memory>
#include <optional>
#include <utility>

#include "workloads/faults/planted.h"
#include "workloads/forward/autocast.h"

namespace graphproof::faults {
namespace {

namespace autocast = at::autocast;
using engines::CaptureParts, engines::CaptureRequest;
using workloads::AutocastRegion, workloads::AutocastState;

c10::DeviceType device_of(const CaptureParts& parts) { return parts.device.torch_device().type(); }

/// The region around warm-up and capture is one: the weights are cast before the capture begins,
/// and the captured passes find them in the cache.
class CastsOfWarmUp final : public FaultHooks {
 public:
  void before_capture(const CaptureParts& parts, CaptureRequest& request) override {
    const auto around = std::make_shared<std::optional<AutocastRegion>>();
    around->emplace(device_of(parts), AutocastState{.enabled = true, .cache = true});
    for (const NamedTensor& parameter : parts.step.parameters())
      casts_.push_back(workloads::autocast_operand(parameter.tensor));
    request.work = [around, work = std::move(request.work)] {
      work();
      around->reset();
    };
  }

 private:
  Tensors casts_;  // kept, so that replays read old values and not freed memory
};

/// The region that the first capture opens is left by nothing but the end of the step's life.
class RegionLeftOpen final : public FaultHooks {
 public:
  ~RegionLeftOpen() override {
    if (!open_) return;
    autocast::decrement_nesting();
    autocast::clear_cache();
  }
  void before_capture(const CaptureParts&, CaptureRequest&) override {
    if (!std::exchange(open_, true)) autocast::increment_nesting();
  }

 private:
  bool open_ = false;
};

/// A recompute that does not restore autocast.
class RecomputeOutside final : public FaultHooks {
 public:
  RecomputedWork recomputed(workloads::RecomputedPart, RecomputedWork work) override {
    return [work = std::move(work)](const Tensors& inputs, bool again) {
      if (!again) return work(inputs, again);
      const c10::DeviceType device = inputs[0].device().type();
      const bool enabled = autocast::is_autocast_enabled(device);
      autocast::set_autocast_enabled(device, false);
      const at::Tensor output = work(inputs, again);
      autocast::set_autocast_enabled(device, enabled);
      return output;
    };
  }
};

}  // namespace

std::shared_ptr<FaultHooks> casts_of_the_warm_up_captured() {
  return std::make_shared<CastsOfWarmUp>();
}
std::shared_ptr<FaultHooks> autocast_region_left_open() {
  return std::make_shared<RegionLeftOpen>();
}
std::shared_ptr<FaultHooks> recompute_outside_autocast() {
  return std::make_shared<RecomputeOutside>();
}

}  // namespace graphproof::faults
