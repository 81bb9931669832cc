// D53: ranks with the same part of the model have the same parameter bytes after every eager step.
// No other check finds a rank whose parameters drift: it agrees with its own graph, and with coarse
// rounding (fp8, 16 bits) it may stay within the bound of the reference.
#include <map>
#include <vector>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d53 {
namespace {

/// The ranks by their part of the model: pipeline stage, part of the dense parameters, part of the
/// experts. process_groups.h has the order of ranks.
std::map<std::vector<std::int64_t>, std::vector<int>> ranks_by_part(const Axes& axes,
                                                                    int world_size) {
  const std::int64_t tp = axes.integer("tp"), stage_ranks = world_size / axes.integer("pp");
  const std::int64_t parts =
      axes.integer("experts") > 0 ? axes.integer("ep") * axes.integer("etp") : 1;
  std::map<std::vector<std::int64_t>, std::vector<int>> result;
  for (int rank = 0; rank < world_size; ++rank)
    result[{rank / stage_ranks, rank % tp, rank % parts}].push_back(rank);
  return result;
}

}  // namespace

/// After every step of eager_a the parameters have equal digests on all ranks that hold the same
/// part of the model: of one pipeline stage, tensor parallel rank and part of the experts. Not
/// applicable if every rank has another part.
record::CheckResult replicas(Judgement& judgement, const Attempt& attempt) {
  const std::int64_t steps = judgement.expected().steps;
  std::size_t replicated = 0;
  for (const auto& [part, ranks] : ranks_by_part(attempt.axes, attempt.context.world_size)) {
    if (ranks.size() == 1) continue;
    replicated += ranks.size();
    for (std::int64_t step = 0; step < steps; ++step) {
      std::string first;
      int first_rank = 0;
      for (const int rank : ranks) {
        const RankFiles& files = attempt.ranks[static_cast<std::size_t>(rank)];
        const auto* line = judgement.first<record::StepLine>(files, "eager_a", step);
        if (!line) {
          judgement.absent<record::StepLine>(files, "of arm eager_a", step);
          continue;
        }
        const std::string& mine = line->digest.params;
        if (mine.empty()) {
          judgement.absent(files, "digest of the parameters in a `step` line", step);
          continue;
        }
        if (first.empty()) {
          first = mine;
          first_rank = rank;
        }
        if (mine == first) {
          judgement.confirm(rank);
          continue;
        }
        judgement.defect({.rank = rank,
                          .step = step,
                          .what = concat("the parameters of rank ", rank, " are not those of rank ",
                                         first_rank, " after step ", step),
                          .got = concat("digest ", mine),
                          .want = concat(first, ", because both have the same part of the model"),
                          .why = "ranks whose copies differ train different models, and no later "
                                 "step makes them equal again"});
      }
    }
  }
  if (replicated == 0) {
    judgement.not_applicable("every rank has another part of the model");
    return judgement.result("", "");
  }
  return judgement.result(
      concat("the same parameters after each of ", steps, " steps on ", replicated, " ranks"),
      "equal bytes");
}

}  // namespace graphproof::checks::d53
