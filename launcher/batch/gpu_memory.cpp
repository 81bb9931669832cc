#include "launcher/batch/gpu_memory.h"

#include <algorithm>
#include <utility>

namespace graphproof::launcher {

GpuMemory::GpuMemory(const Nvml* nvml, std::vector<std::string> gpus, std::vector<GpuUse> clean)
    : nvml_(nvml), gpus_(std::move(gpus)), before_(std::move(clean)) {
  if (before_.empty()) before_ = in_use({});
}

std::vector<GpuUse> GpuMemory::in_use(const std::vector<int>& successor_pids) const {
  std::vector<GpuUse> uses;
  if (nvml_ == nullptr) return uses;
  for (const std::string& gpu : gpus_) {
    auto use = nvml_->use(gpu);
    if (!use) return {};
    if (!successor_pids.empty()) use->bytes -= nvml_->used_bytes(gpu, successor_pids).value_or(0);
    uses.push_back(*std::move(use));
  }
  return uses;
}

bool GpuMemory::lists(const std::vector<int>& pids) const {
  return nvml_ != nullptr && std::all_of(gpus_.begin(), gpus_.end(), [&](const std::string& gpu) {
           return nvml_->used_bytes(gpu, pids).has_value();
         });
}

bool GpuMemory::is_back(const std::vector<int>& successor_pids) const {
  const std::vector<GpuUse> after = in_use(successor_pids);
  for (std::size_t i = 0; i < std::min(after.size(), before_.size()); ++i)
    if (after[i].more_than(before_[i]) > kNoise_bytes) return false;
  return true;
}

std::optional<std::vector<record::Cleanup::GpuMemory>> GpuMemory::left_in_use(
    const std::vector<int>& successor_pids) const {
  if (before_.empty()) return std::nullopt;
  std::vector<record::Cleanup::GpuMemory> left;
  const std::vector<GpuUse> after = in_use(successor_pids);
  for (std::size_t i = 0; i < after.size(); ++i)
    if (const std::int64_t more = after[i].more_than(before_[i]); more > kNoise_bytes)
      left.push_back({static_cast<int>(i), more});
  return left;
}

GpuMemoryWait::Step GpuMemoryWait::step(bool back, const std::optional<Successor>& successor,
                                        std::int64_t now_ms) {
  if (back) return Step::settled;
  const bool shared = successor && successor->uses_device;
  // The time counts anew from when the successor's processes are gone.
  if (successor_ended_ && shared && !successor->over) since_ms_ = now_ms;
  if (now_ms - since_ms_ <= kSettle_ms) return Step::wait;
  if (successor_ended_ || !shared) return Step::settled;
  successor_ended_ = true;
  since_ms_ = now_ms;
  return Step::end_successor;
}

}  // namespace graphproof::launcher
