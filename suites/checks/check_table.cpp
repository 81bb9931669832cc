#include "suites/checks/check_table.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/detectors.h"
#include "suites/checks/figures.h"
#include "suites/checks/harmless.h"

namespace graphproof::checks {
namespace {

constexpr std::array kChecks = {
    Check{"D01.lockstep", lockstep},
    Check{"D01.capture_inputs_last", capture_inputs_last},
    Check{"D01.free_run", free_run},
    Check{"D02.eager_repeats", eager_repeats},
    Check{"D02.graph_repeats", graph_repeats},
    Check{"D03.outputs_written", outputs_written},
    Check{"D03.launches_watched", launches_watched},
    Check{"D04.learning_rate", learning_rate},
    Check{"D04.optimizer_step", optimizer_step},
    Check{"D04.loss_scale", loss_scale},
    Check{"D05.operands_alive", operands_alive},
    Check{"D06.freed_memory", freed_memory},
    Check{"D07.static_addresses", static_addresses},
    Check{"D07.outputs_registered", outputs_registered},
    Check{"D08.masks", masks},
    Check{"D08.generator", generator},
    Check{"D09.registered_generators", registered_generators},
    Check{"D11.accumulated_gradients", accumulated_gradients},
    Check{"D12.kept_losses", kept_losses},
    Check{"D13.late_eager", late_eager},
    Check{"D13.late_replays", late_replays},
    Check{"D15.census", census},
    Check{"D18.coverage", coverage},
    Check{"D19.capture_status", capture_status},
    Check{"D21.evidence_complete", evidence_complete},
    Check{"D21.log_clean", log_clean},
    Check{"D22.progress", progress},
    Check{"D24.rank_signatures", rank_signatures},
    Check{"D25.collective_ledger", collective_ledger},
    Check{"D26.votes", votes},
    Check{"D26.participation", participation},
    Check{"D27.registration_parity", registration_parity},
    Check{"D28.one_libnccl", one_libnccl},
    Check{"D28.effective_config", effective_config},
    Check{"D28.placement", placement},
    Check{"D29.teardown_order", teardown_order},
    Check{"D29.idle_when_dropped", idle_when_dropped},
    Check{"D30.returned_after_flush", returned_after_flush},
    Check{"D31.allocator_series", allocator_series},
    Check{"D31.device_trend", device_trend},
    Check{"D31.resident_trend", resident_trend},
    Check{"D31.pool_sharing", pool_sharing},
    Check{"D32.pools_released", pools_released},
    Check{"D33.failed_capture_leaves_nothing", failed_capture_leaves_nothing},
    Check{"D34.graph_cache", graph_cache},
    Check{"D35.pool_order", pool_order},
    Check{"D36.capture_changes_nothing", capture_changes_nothing},
    Check{"D37.warmed_up", warmed_up},
    Check{"D37.modules_warmed_up", modules_warmed_up},
    Check{"D38.padding", padding},
    Check{"D39.fp8_weights", fp8_weights},
    Check{"D40.expert_ledger", expert_ledger},
    Check{"D41.schedule", schedule},
    Check{"D42.recompute", recompute},
    Check{"D43.replays", replays},
    Check{"D43.host_checks", host_checks},
    Check{"D43.overlapped_reduction", overlapped_reduction},
    Check{"D43.shape_buckets", shape_buckets},
    Check{"D47.evaluation", evaluation},
    Check{"D47.resume", resume},
    Check{"D48.shape_buckets", bucketed_replay},
    Check{"D53.layout_reference", layout_reference},
    Check{"D53.replicas", replicas},
    Check{"D53.eager_collective", eager_collective},
    Check{"D53.replayed_collective", replayed_collective},
    Check{"D56.races", races},
};

record::CheckResult too_old(const Check& check, const matrix::CheckEntry& entry,
                            const Attempt& attempt) {
  return {.check = std::string(check.name),
          .result = record::Result::not_applicable,
          .rank = std::nullopt,
          .message = {.what = "",
                      .got = concat("evidence of revision ", evidence_revision(attempt)),
                      .want = concat("revision ", entry.since, " or newer"),
                      .why = "ranks did not write down yet what this check looks at",
                      .next = "nothing to do; run the case again for an answer"}};
}

}  // namespace

std::span<const Check> all_checks() { return kChecks; }

record::CheckResult run_check(const Check& check, const matrix::CheckEntry& entry,
                              const Attempt& attempt) {
  record::CheckResult result = evidence_revision(attempt) < entry.since
                                   ? too_old(check, entry, attempt)
                                   : check.function(attempt);
  if (result.message.what.empty()) result.message.what = entry.states;
  const auto& required = attempt.context.required_checks;
  if (result.result == record::Result::not_applicable &&
      std::ranges::find(required, check.name) != required.end()) {
    result.result = record::Result::unexercised;
    result.message.next = concat("./graphproof explain ", attempt.context.run_id, "/",
                                 attempt.context.case_id, ": the case requires this check");
  }
  return result;
}

record::Checks judge(const Attempt& attempt, const matrix::CheckTable& table,
                     const std::set<std::string>& dropped) {
  for (const std::string& name : dropped) {
    if (!table.find(name))
      throw std::invalid_argument(concat("--drop ", name, ": there is no such check"));
  }
  record::Checks checks;
  checks.case_id = attempt.context.case_id;
  checks.attempt = attempt.context.attempt;
  for (const RankFiles& files : attempt.ranks) checks.ranks.push_back(rank_progress(files));
  checks.figures = figures(attempt);
  checks.harmless_because = harmless_because(attempt);
  for (const Check& check : all_checks()) {
    const matrix::CheckEntry* entry = table.find(check.name);
    if (!entry)
      throw std::logic_error(
          concat("check ", check.name, " has no row in matrix/tables/checks.json"));
    if (!dropped.contains(std::string(check.name)))
      checks.checks.push_back(run_check(check, *entry, attempt));
  }
  return checks;
}

}  // namespace graphproof::checks
