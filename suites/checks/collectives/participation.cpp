// D26: either all ranks replay a step, or none does.
#include <map>
#include <tuple>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d26 {

using record::ReplayLine;

/// In each step of an arm every rank has the same number of graph launches and of fallbacks. With a
/// vision encoder or multi-token prediction in a pipeline that holds within a stage; D43 counts the
/// launches of each.
record::CheckResult participation(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  // The first rank that has a line of an arm and step, and launches as many graphs in a step.
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, std::pair<int, const ReplayLine*>>
      first;
  for (const RankFiles& files : attempt.ranks) {
    const auto lines = judgement.lines<ReplayLine>(files);
    if (lines.empty()) judgement.absent<ReplayLine>(files, "");
    const std::int64_t launches = judgement.expected_of(files).launches_per_step;
    for (const ReplayLine& line : lines) {
      const auto& [rank, other] =
          first.try_emplace({line.arm, line.step, launches}, files.rank, &line).first->second;
      if (line.replays == other->replays && line.fallbacks == other->fallbacks) {
        judgement.confirm(files.rank);
        continue;
      }
      const auto counts = [](const ReplayLine& one) {
        return concat(one.replays, " launches, ", one.fallbacks, " fallbacks");
      };
      judgement.defect(
          {.rank = files.rank,
           .step = line.step,
           .what = concat("ranks ", rank, " and ", files.rank,
                          " launched different numbers of graphs in step ", line.step, " of arm ",
                          line.arm),
           .got = counts(line),
           .want = concat(counts(*other), ", as rank ", rank),
           .why = "the collectives of a rank that runs eagerly meet other collectives of the ranks "
                  "that replay"});
    }
  }
  return judgement.result(concat("the same launches on ", attempt.ranks.size(), " ranks"),
                          "one decision for all ranks");
}

}  // namespace graphproof::checks::d26
