#include "launcher/policy/batch_queue.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace graphproof::launcher {
namespace {

/// Whether a check that fails as fail.perf is required of the case. Whatever else runs at the same
/// time would be part of its figures.
bool measures_time(const record::PlanLine& line, const reports::CheckEffects& effects) {
  return std::any_of(line.required_checks.begin(), line.required_checks.end(),
                     [&](const std::string& check) {
                       const auto effect = effects.find(check);
                       return effect != effects.end() && effect->second.verdict == "fail.perf";
                     });
}

/// A refusal must come before device work, and a planned hang takes its time to end: neither gains
/// anything from ranks that were started before their turn.
bool gains_by_prestart(const record::PlanLine& line) {
  return line.expect.kind != "rejected" && line.expect.kind != "hazard";
}

/// Equal for batches whose ranks have the same environment from their start on.
std::string prestart_key(const record::PlanLine& line) {
  std::string key = std::to_string(line.ranks);
  for (const auto& [name, value] : line.environment) key += "\n" + name + "=" + value;
  return key;
}

}  // namespace

std::string BatchQueue::add(CaseGroup group, const std::vector<Slot>& avoided, bool may_prestart) {
  char name[16];
  std::snprintf(name, sizeof name, "b%03d", ++count_);
  Queued queued{.batch = name,
                .slots = slots_of(group),
                .expected_seconds = group.expected_seconds(),
                .avoided = avoided};
  const record::PlanLine& first = group.attempts.front().line;
  queued.exclusive = exclusive(group);
  if (may_prestart && !queued.exclusive && gains_by_prestart(first))
    queued.prestart_key = prestart_key(first);
  schedule_.add(queued);
  waiting_.emplace(name, std::move(group));
  return name;
}

CaseGroup BatchQueue::take(const std::string& batch) {
  return std::move(waiting_.extract(batch).mapped());
}

void BatchQueue::drop(const std::string& batch) {
  schedule_.drop(batch);
  waiting_.erase(batch);
}

std::vector<std::string> BatchQueue::drop_all() {
  std::vector<std::string> dropped = schedule_.drop_waiting();
  for (const std::string& batch : dropped) waiting_.erase(batch);
  return dropped;
}

int BatchQueue::slots_of(const CaseGroup& group) const {
  return ranks_per_gpu_ > 1 ? std::min(group.ranks(), schedule_.slot_count()) : group.ranks();
}

bool BatchQueue::exclusive(const CaseGroup& group) const {
  return std::any_of(group.attempts.begin(), group.attempts.end(),
                     [&](const Attempt& attempt) { return measures_time(attempt.line, effects_); });
}

}  // namespace graphproof::launcher
