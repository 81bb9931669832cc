// D83: all ranks skip a step if a gradient of any part of the model is infinite. In training all
// ranks overflow together, so no other check sees a decision that some ranks do not hear of.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d83 {
namespace {

using record::InfinityLine;

/// A part of the model whose gradients different ranks hold, and its lowest rank.
struct Victim {
  std::string part;
  int rank = 0;
};

/// The parts of a case, in the order of the lines. process_groups.h has the order of ranks; with a
/// distributed optimizer each rank owns gradients of its own.
std::vector<Victim> victims(const Axes& axes, int world_size) {
  const std::int64_t stage_ranks = world_size / axes.integer("pp");
  std::vector<Victim> all = {{"none", 0}};
  for (const bool experts : {false, true}) {
    if (experts && axes.integer("experts") == 0) continue;
    const std::int64_t parts =
        experts ? axes.integer("ep") * axes.integer("etp") : axes.integer("tp");
    std::map<std::array<std::int64_t, 3>, int> done;
    for (int rank = 0; rank < world_size; ++rank) {
      const std::int64_t place = rank % stage_ranks;
      const std::int64_t owner = axes.flag("distributed_optimizer") ? place / parts : 0;
      if (done.emplace(std::array{rank / stage_ranks, place % parts, owner}, rank).second)
        all.push_back({experts ? "experts" : "dense", rank});
    }
  }
  return all;
}

const InfinityLine* of(Judgement& judgement, const RankFiles& files, const Victim& victim) {
  for (const InfinityLine& line : judgement.lines<InfinityLine>(files))
    if (line.part == victim.part && line.victim == victim.rank) return &line;
  return nullptr;
}

}  // namespace

/// A step with one infinite gradient, on the ranks of any one part of the model, is skipped on
/// every rank and changes no parameter there; a step without one is taken on every rank.
record::CheckResult infinity_everywhere(Judgement& judgement, const Attempt& attempt) {
  std::map<std::string, std::size_t> occurred;
  const std::vector<Victim> all = victims(attempt.axes, attempt.context.world_size);
  for (const Victim& victim : all) {
    std::vector<const InfinityLine*> lines;
    for (const RankFiles& files : attempt.ranks) {
      lines.push_back(of(judgement, files, victim));
      if (!lines.back())
        judgement.absent<InfinityLine>(files,
                                       concat("of part ", victim.part, " and rank ", victim.rank));
    }
    // Without the line of a rank nobody knows whether its gradient was infinite.
    if (std::ranges::count(lines, nullptr) > 0) {
      ++occurred[victim.part];
      for (const RankFiles& files : attempt.ranks)
        if (lines[static_cast<std::size_t>(files.rank)]) judgement.confirm(files.rank);
      continue;
    }
    const bool infinite = std::ranges::any_of(lines, &InfinityLine::infinite);
    occurred[victim.part] += infinite ? 1 : 0;
    for (const RankFiles& files : attempt.ranks) {
      const InfinityLine* line = lines[static_cast<std::size_t>(files.rank)];
      if (line->skipped == infinite && !(infinite && line->moved)) {
        judgement.confirm(files.rank);
        continue;
      }
      const std::string did = concat(line->skipped ? "skipped the step" : "took the step",
                                     line->moved ? ", and parameters changed" : "");
      if (infinite)
        judgement.defect(
            {.rank = files.rank,
             .step = std::nullopt,
             .what = concat("rank ", files.rank, " did not skip a step in which a gradient of ",
                            victim.part == "experts" ? "an expert" : "the dense model",
                            " is infinite on rank ", victim.rank),
             .got = did,
             .want = "every rank skips it and changes nothing",
             .why = "ranks that skip different steps train different models, and infinite values "
                    "spread to every parameter"});
      else
        judgement.defect(
            {.rank = files.rank,
             .step = std::nullopt,
             .what = concat("rank ", files.rank, " skipped a step whose gradients are all finite"),
             .got = did,
             .want = "the step is taken",
             .why = "training stands still and the loss scale falls"});
    }
  }
  // A rank may own no element of a part. No rank at all means that nothing was tried.
  for (const auto& [part, count] : occurred)
    if (part != "none" && count == 0)
      for (const RankFiles& files : attempt.ranks)
        judgement.absent<InfinityLine>(files, concat("with an infinite gradient of part ", part));
  return judgement.result(
      concat(all.size() - 1, " parts of the model, on ", attempt.ranks.size(), " ranks"),
      "every rank skips the same steps");
}

}  // namespace graphproof::checks::d83
