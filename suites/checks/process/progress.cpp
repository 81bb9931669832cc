// D22: no rank was silent for longer than the limit of its phase. The launcher measures this; the
// check reports what the launcher found.
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d22 {
namespace {

std::string describe(const std::optional<record::Collective>& collective) {
  if (!collective) return "no collective";
  return concat("collective ", collective->sequence, ", ", collective->op, " in group ",
                collective->group);
}

const record::RankContext* facts_of(const Attempt& attempt, int rank) {
  for (const record::RankContext& facts : attempt.context.ranks)
    if (facts.rank == rank) return &facts;
  return nullptr;
}

/// For messages: the ranks that wait for a silent one, and for how long each of them has been
/// silent.
std::string waiting(const Attempt& attempt, const std::vector<int>& ranks) {
  if (ranks.empty()) return "no rank";
  std::string text;
  for (const int rank : ranks) {
    const record::RankContext* facts = facts_of(attempt, rank);
    text += concat(text.empty() ? "" : ", ", "rank ", rank, " for ", facts ? facts->silent_ms : 0,
                   " ms");
  }
  return text;
}

}  // namespace

/// The launcher had heartbeats of every rank, and no rank was silent for longer than the limit of
/// its phase. After a hang the result names the missing rank and the last collective that it
/// entered.
record::CheckResult progress(Judgement& judgement, const Attempt& attempt) {
  if (const auto& hang = attempt.context.hang) {
    const record::RankContext* facts = facts_of(attempt, hang->missing_rank);
    judgement.defect(
        {.rank = hang->missing_rank,
         .step = facts ? std::optional(facts->step) : std::nullopt,
         .what =
             concat("rank ", hang->missing_rank, " stopped in phase ", record::name(hang->phase),
                    facts && !facts->arm.empty() ? concat(", arm ", facts->arm) : std::string(),
                    facts ? concat(", step ", facts->step) : std::string()),
         .got = concat("silent for ",
                       hang->silent_ms.value_or(facts ? facts->silent_ms : hang->limit_ms),
                       " ms; last: ", describe(hang->last_collective),
                       "; waiting for it: ", waiting(attempt, hang->waiting_ranks)),
         .want = concat("a heartbeat of every rank within ", hang->limit_ms, " ms"),
         .why =
             concat(hang->stacks.empty() ? "no stack could be taken"
                                         : concat("what every rank was doing is in ", hang->stacks),
                    hang->went_on.value_or(false)
                        ? "; the rank went on meanwhile, so it was slow and not stuck"
                        : "")});
  }
  for (const RankFiles& files : attempt.ranks) {
    const record::RankContext* facts = facts_of(attempt, files.rank);
    if (!facts || (!facts->phase && !facts->case_ended)) {
      if (!stopped_because(files).empty()) {
        judgement.unexercised(concat("the launcher saw no heartbeat of rank ", files.rank));
      } else {
        judgement.defect({.rank = files.rank,
                          .step = std::nullopt,
                          .what = concat("the launcher had no heartbeat of rank ", files.rank),
                          .got = "no heartbeat of this case",
                          .want = "a phase in context.json",
                          .why = "the hang detector cannot notice a rank without heartbeats"});
      }
      continue;
    }
    judgement.confirm(files.rank);
    // If a rank hangs, its peers become silent too. The launcher has named the missing one already.
    if (facts->case_ended || !facts->phase || attempt.context.hang) continue;
    const auto limit = attempt.context.limits_ms.find(*facts->phase);
    if (limit == attempt.context.limits_ms.end() || facts->silent_ms <= limit->second) continue;
    judgement.defect(
        {.rank = files.rank,
         .step = facts->step,
         .what = concat("rank ", files.rank, " was silent in phase ", record::name(*facts->phase)),
         .got = concat(facts->silent_ms, " ms"),
         .want = concat("a heartbeat within ", limit->second, " ms"),
         .why = "the launcher named no rank as missing"});
  }
  return judgement.result(
      concat(attempt.ranks.size(), " ranks, none silent for longer than its limit"),
      "a heartbeat within the limit of each phase");
}

}  // namespace graphproof::checks::d22
