#include "launcher/policy/spending.h"

namespace graphproof::launcher {

Spending::Spending(const record::Options& options, std::int64_t started_ms)
    : budget_ms_(options.budget_ms), max_gpu_ms_(options.max_gpu_ms), started_ms_(started_ms) {}

void Spending::add_earlier(const record::Record& record) {
  ended_leases_ms_ += static_cast<std::int64_t>(record.seconds * 1000) * record.ranks;
}

void Spending::started(const std::string& batch, int ranks, std::int64_t now_ms) {
  leases_[batch] = {ranks, now_ms};
}

void Spending::ended(const std::string& batch, std::int64_t now_ms) {
  const auto lease = leases_.extract(batch);
  if (!lease) return;
  ended_leases_ms_ += lease.mapped().ranks * (now_ms - lease.mapped().since_ms);
}

void Spending::forget(const std::string& batch) { leases_.erase(batch); }

std::int64_t Spending::leased_ms(std::int64_t now_ms) const {
  std::int64_t leased_ms = ended_leases_ms_;
  for (const auto& [batch, lease] : leases_) leased_ms += lease.ranks * (now_ms - lease.since_ms);
  return leased_ms;
}

std::optional<RunEnd> Spending::reached(std::int64_t now_ms) const {
  if (budget_ms_ > 0 && now_ms - started_ms_ > budget_ms_)
    return RunEnd{reports::Ending::budget,
                  "the time budget is over: running cases end, no others start; graphproof resume "
                  "goes on"};
  if (max_gpu_ms_ > 0 && leased_ms(now_ms) >= max_gpu_ms_)
    return RunEnd{reports::Ending::budget,
                  "--max-gpu-minutes is reached: running cases end, no others start; graphproof "
                  "resume goes on"};
  return std::nullopt;
}

}  // namespace graphproof::launcher
