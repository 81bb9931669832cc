#include "launcher/gpu/gpu_health.h"

#include <algorithm>
#include <utility>

namespace graphproof::launcher {
namespace {

struct XidRow {
  int number;
  bool hardware;
  std::string_view what;
};
/// Numbers and causes as in NVIDIA's "Xid Errors" document. Where it names both programs and
/// hardware as the cause, the program is taken.
constexpr XidRow kXids[] = {
    {13, false, "an exception of the graphics engine: a program's kernel failed"},
    {31, false, "a page fault: a program's kernel used an address that is not mapped"},
    {43, false, "work was stopped after a program's error"},
    {45, false, "work was cleaned up after its program was ended"},
    {48, true, "a memory error of two bits, which is not corrected"},
    {61, true, "its controller met a breakpoint"},
    {62, true, "its controller halted"},
    {63, true, "a row of its memory was replaced"},
    {64, true, "a row of its memory could not be replaced"},
    {74, true, "an error of NVLink"},
    {79, true, "it has fallen off the bus"},
    {92, true, "many memory errors of one bit"},
    {94, true, "a memory error that was contained"},
    {95, true, "a memory error that was not contained"},
    {119, true, "its system processor does not answer"},
    {120, true, "an error of its system processor"},
    {140, true, "a memory error that was not recovered from"},
    {143, true, "it could not be initialised"},
    {149, true, "an error of its NVLink's links"},
    {150, true, "an error of its NVLink's switch"},
};

}  // namespace

GpuTrouble trouble_of_xid(const std::string& gpu, int number) {
  const auto row = std::find_if(std::begin(kXids), std::end(kXids),
                                [&](const XidRow& one) { return one.number == number; });
  const bool known = row != std::end(kXids);
  return {gpu, "Xid " + std::to_string(number) + (known ? ": " + std::string(row->what) : ""),
          known && row->hardware};
}

GpuHealth::GpuHealth(Nvml& nvml, std::vector<std::string> gpus)
    : nvml_(nvml), gpus_(std::move(gpus)) {
  nvml_.listen(gpus_);
  for (const std::string& gpu : gpus_)
    uncorrected_[gpu] = nvml_.uncorrected_errors(gpu).value_or(0);
}

void GpuHealth::look(std::int64_t now_ms, bool at_once) {
  if (!at_once && now_ms - looked_ms_ < kLook_ms) return;
  looked_ms_ = now_ms;
  for (const Nvml::Xid& xid : nvml_.xids()) seen_.push_back(trouble_of_xid(xid.gpu, xid.number));
  for (const std::string& gpu : gpus_) {
    const std::int64_t before = uncorrected_[gpu],
                       now = nvml_.uncorrected_errors(gpu).value_or(before);
    if (now > before)
      seen_.push_back(
          {gpu, std::to_string(now - before) + " memory errors that could not be corrected"});
    uncorrected_[gpu] = now;
    if (nvml_.slowed_by_heat(gpu)) seen_.push_back({gpu, "slowed down by heat"});
  }
}

std::vector<GpuTrouble> GpuHealth::since(std::size_t first,
                                         const std::vector<std::string>& gpus) const {
  std::vector<GpuTrouble> found;
  for (std::size_t i = first; i < seen_.size(); ++i)
    if (std::find(gpus.begin(), gpus.end(), seen_[i].gpu) != gpus.end()) found.push_back(seen_[i]);
  return found;
}

}  // namespace graphproof::launcher
