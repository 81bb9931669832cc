// D08: replays draw the same random numbers as eager steps, and new ones in each step.
#include <map>
#include <tuple>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d08 {
namespace {

using record::RngLine;
using LinesByGenerator = std::map<std::string, const RngLine*>;

LinesByGenerator ledger(Judgement& judgement, const RankFiles& files, std::string_view arm,
                        std::int64_t step) {
  LinesByGenerator result;
  for (const RngLine* line : judgement.find<RngLine>(files, arm, step))
    result.emplace(line->generator, line);
  return result;
}

/// The `rng` lines of both arms for one step, by generator.
struct Step {
  LinesByGenerator eager, graph;
};
/// Absent, and reported, if an arm has no lines or the arms have different generators.
std::optional<Step> step_of(Judgement& judgement, const RankFiles& files, std::int64_t step) {
  Step result{ledger(judgement, files, "lockstep_eager", step),
              ledger(judgement, files, "lockstep_graph", step)};
  if (result.eager.empty()) judgement.absent<RngLine>(files, "of arm lockstep_eager", step);
  if (result.graph.empty()) judgement.absent<RngLine>(files, "of arm lockstep_graph", step);
  if (result.eager.empty() || result.graph.empty()) return std::nullopt;
  for (const auto& [own, other] :
       {std::pair(&result.eager, &result.graph), std::pair(&result.graph, &result.eager)}) {
    for (const auto& [generator, line] : *own) {
      if (other->contains(generator)) continue;
      judgement.defect(
          {.rank = files.rank,
           .step = step,
           .what = concat("generator `", generator, "` is in one arm only at step ", step),
           .got = concat("in ", line->arm, " alone"),
           .want = "in both arms",
           .why = "numbers of a generator that only one arm uses cannot be compared"});
      return std::nullopt;
    }
  }
  return result;
}

void judge_new_mask(Judgement& judgement, const RankFiles& files, const RngLine& line,
                    std::int64_t step, std::map<std::string, std::string>& earlier) {
  const std::string key = line.arm + "/" + line.generator;
  const std::string& mask = line.mask;
  if (!mask.empty() && earlier[key] == mask) {
    judgement.defect({.rank = files.rank,
                      .step = step,
                      .what = concat("arm ", line.arm, " drew the same mask twice from generator `",
                                     line.generator, "`"),
                      .got = concat("mask ", mask, " at steps ", step - 1, " and ", step),
                      .want = "another mask in every step",
                      .why = "seed and offset passed by value are frozen at capture"});
  }
  earlier[key] = mask;
}

}  // namespace

/// In every replayed step the graph arm's mask of each generator equals the eager arm's, and
/// differs from the mask of the step before.
record::CheckResult masks(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    std::map<std::string, std::string> earlier;
    for (const std::int64_t step : judgement.expected().replayed_steps()) {
      const auto both = step_of(judgement, files, step);
      if (!both) continue;
      bool any_mask = false;
      for (const auto& [generator, eager] : both->eager) {
        const RngLine& graph = *both->graph.at(generator);
        // Before the comparison: a frozen mask also differs from eager's, and is the better
        // diagnosis.
        judge_new_mask(judgement, files, graph, step, earlier);
        judge_new_mask(judgement, files, *eager, step, earlier);
        const std::string &want = eager->mask, &got = graph.mask;
        any_mask |= !want.empty();
        if (got == want) continue;
        judgement.defect(
            {.rank = files.rank,
             .step = step,
             .what =
                 concat("generator `", generator, "` drew another mask than eager at step ", step),
             .got = concat("mask ", got.empty() ? "none" : got),
             .want = concat("mask ", want.empty() ? "none" : want, ", as lockstep_eager"),
             .why = "dropout of other elements trains another model"});
      }
      if (any_mask) {
        judgement.confirm(files.rank);
      } else {
        judgement.absent(files, "mask in any `rng` line", step);
      }
    }
  }
  return judgement.result(
      concat("equal to eager and new in each of ", judgement.expected().replayed_steps().size(),
             " replays on ", attempt.ranks.size(), " ranks"),
      "eager's masks, another one in every step");
}

/// In every replayed step the generator states before and after the step equal those of the eager
/// arm, and at least one generator moved.
record::CheckResult generator(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    for (const std::int64_t step : judgement.expected().replayed_steps()) {
      const auto both = step_of(judgement, files, step);
      if (!both) continue;
      bool moved = false;
      for (const auto& [generator, eager] : both->eager) {
        const RngLine& graph = *both->graph.at(generator);
        moved |= graph.before != graph.after;
        for (const auto& [when, got, want] : {std::tuple("before", graph.before, eager->before),
                                              std::tuple("after", graph.after, eager->after)}) {
          if (got == want && !want.empty()) continue;
          judgement.defect(
              {.rank = files.rank,
               .step = step,
               .what = concat("generator `", generator, "` is in another state than eager's ", when,
                              " step ", step),
               .got = concat("state ", got.empty() ? "none" : got),
               .want = concat("state ", want.empty() ? "none" : want, ", as lockstep_eager"),
               .why = "the numbers drawn from here on differ from eager's"});
        }
      }
      if (!moved) {
        judgement.defect(
            {.rank = files.rank,
             .step = step,
             .what = concat("no generator moved at step ", step),
             .got = concat(both->graph.size(), " generators, all as before the step"),
             .want = "at least one moved",
             .why = "a replay that leaves its generator alone draws the same numbers again"});
      }
      judgement.confirm(files.rank);
    }
  }
  return judgement.result(
      concat("equal to eager before and after ", judgement.expected().replayed_steps().size(),
             " replays on ", attempt.ranks.size(), " ranks"),
      "eager's states");
}

}  // namespace graphproof::checks::d08
