// D22: no rank stayed silent beyond the limit of its phase. The launcher watches; this check names
// what it saw.
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

/// A rank that waits fell silent first, so its silence is what passed the limit.
std::string waiting(const Attempt& attempt, const std::vector<int>& ranks) {
  if (ranks.empty()) return "nobody";
  std::string text;
  for (const int rank : ranks) {
    const record::RankContext* facts = facts_of(attempt, rank);
    text += concat(text.empty() ? "" : ", ", "rank ", rank, " for ", facts ? facts->silent_ms : 0,
                   " ms");
  }
  return text;
}

}  // namespace

/// The launcher watched every rank, and none was silent beyond the limit of its phase. The result
/// names the rank that is missing and the last collective that it entered.
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
         .got = concat("silent for ", facts ? facts->silent_ms : hang->limit_ms,
                       " ms; last: ", describe(hang->last_collective),
                       "; waiting for it: ", waiting(attempt, hang->waiting_ranks)),
         .want = concat("a heartbeat of every rank within ", hang->limit_ms, " ms"),
         .why = hang->stacks.empty() ? "no stack could be taken"
                                     : concat("what every rank was doing is in ", hang->stacks)});
  }
  for (const RankFiles& files : attempt.ranks) {
    const record::RankContext* facts = facts_of(attempt, files.rank);
    if (!facts || (!facts->phase && !facts->case_ended)) {
      if (!stopped_because(files).empty()) {
        judgement.unexercised(concat("the launcher saw no heartbeat of rank ", files.rank));
      } else {
        judgement.defect({.rank = files.rank,
                          .step = std::nullopt,
                          .what = concat("nobody watched rank ", files.rank),
                          .got = "no heartbeat of this case",
                          .want = "a phase in context.json",
                          .why = "a rank that finished without a heartbeat was not watched"});
      }
      continue;
    }
    judgement.confirm(files.rank);
    // Where a rank hangs its peers fall silent too; the launcher has already named the one that is
    // missing.
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
  return judgement.result(concat(attempt.ranks.size(), " ranks, none silent beyond its limit"),
                          "a heartbeat within the limit of each phase");
}

}  // namespace graphproof::checks::d22
