#include "launcher/watch/hang_watch.h"

#include <algorithm>

namespace graphproof::launcher {
namespace {

bool progressed(const ProcessActivity& before, const ProcessActivity& now, std::int64_t idle_ms) {
  return now.stopped || now.evidence != before.evidence || now.cpu_ms - before.cpu_ms > idle_ms;
}

/// Whether the process can be waited for in vain on the GPU.
bool can_hang(const ProcessActivity& process) {
  return process.watched && (process.on_this_host || process.inside_call);
}

}  // namespace

bool HangWatch::look(std::int64_t now_ms, std::span<const ProcessActivity> processes) {
  const auto idle_ms = std::max(
      kIdle_ms, static_cast<std::int64_t>(kIdleShare * static_cast<double>(now_ms - looked_ms_)));
  bool moved = processes.size() != before_.size();
  std::map<std::string, ProcessActivity> seen;
  for (const ProcessActivity& process : processes) {
    const auto known = before_.find(process.name);
    moved = moved || known == before_.end() || progressed(known->second, process, idle_ms);
    seen.emplace(process.name, process);
  }
  before_ = std::move(seen);
  looked_ms_ = now_ms;
  if (moved) progress_ms_ = now_ms;
  return std::ranges::any_of(processes, can_hang) && still_ms(now_ms) >= hang_after_ms_;
}

}  // namespace graphproof::launcher
