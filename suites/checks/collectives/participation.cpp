// D26: all ranks replay a step, or none does.
#include <map>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d26 {
namespace {

using record::ReplayLine;

}  // namespace

/// Every rank has as many graph launches and fallbacks as the first rank that has a line of that
/// arm and step.
record::CheckResult participation(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  // Every rank launches the same number of graphs in each step, whatever that number is.
  std::map<std::pair<std::string, std::int64_t>, std::pair<int, const ReplayLine*>> first;
  for (const RankFiles& files : attempt.ranks) {
    const auto lines = judgement.lines<ReplayLine>(files);
    if (lines.empty()) judgement.absent<ReplayLine>(files, "");
    for (const ReplayLine& line : lines) {
      const auto& [rank, other] =
          first.try_emplace({line.arm, line.step}, files.rank, &line).first->second;
      if (line.replays == other->replays && line.fallbacks == other->fallbacks) {
        judgement.confirm(files.rank);
        continue;
      }
      const auto taken = [](const ReplayLine& one) {
        return concat(one.replays, " launches, ", one.fallbacks, " fallbacks");
      };
      judgement.defect(
          {.rank = files.rank,
           .step = line.step,
           .what =
               concat("ranks ", rank, " and ", files.rank,
                      " did not take the same way through step ", line.step, " of arm ", line.arm),
           .got = taken(line),
           .want = concat(taken(*other), ", as rank ", rank),
           .why = "a rank that runs eagerly beside ranks that replay pairs its collectives with "
                  "other ones"});
    }
  }
  return judgement.result(concat("the same launches on ", attempt.ranks.size(), " ranks"),
                          "one decision for all ranks");
}

}  // namespace graphproof::checks::d26
