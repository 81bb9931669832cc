// D54: the long job (axis soak_steps) computes what the eager job computes, at the end of every
// cycle, and its recaptures give back what they take.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "suites/checks/attempt/comparison.h"
#include "suites/checks/attempt/concat.h"
#include "workloads/engine_traits/engine_traits.h"
#include "workloads/soak/soak_plan.h"

namespace graphproof::checks::d54 {
namespace {

using record::CycleLine;
using record::MemoryLine;

constexpr ArmPair kPair{"soak", "soak_eager", "soak_graph"};

soak::Plan plan_of(const Attempt& attempt) {
  return soak::Plan(attempt.axes.integer("soak_steps"));
}

/// The launches of a cycle, of training and of evaluation. With changing lengths it depends on
/// the cache; there it is the least: every length is warmed up in the first quarter of a cycle.
struct Launches {
  std::int64_t count;
  bool exact;
};
Launches launches_of_cycle(const Attempt& attempt, const Expected& expected) {
  const std::int64_t steps = plan_of(attempt).cycle_steps();
  if (attempt.axes.integer("shape_buckets") > 0)
    return {expected.launches_per_step * (steps / 2), false};
  // Its warm-up, the capture that replays at once, and one more evaluation.
  const bool evaluates = engines::traits_of(attempt.axes.text("impl")).captures_evaluation;
  return {expected.launches_per_step * (steps - expected.first_replay) + (evaluates ? 2 : 0), true};
}

/// The lines of all cycles of an arm, in order; nothing, and a defect, if one is absent.
std::vector<const CycleLine*> cycles(Judgement& judgement, const RankFiles& files,
                                     const soak::Plan& plan, std::string_view arm) {
  const auto lines = judgement.find<CycleLine>(files, arm);
  for (std::int64_t cycle = 0; cycle < soak::kCycles; ++cycle)
    if (cycle >= std::ssize(lines) || lines[cycle]->cycle != cycle ||
        lines[cycle]->step != plan.last_step(cycle)) {
      judgement.absent<CycleLine>(files, concat("of arm ", arm, " and cycle ", cycle),
                                  plan.last_step(cycle));
      return {};
    }
  return lines;
}

/// Whether the job did in this cycle what its plan asks. A job that did not train, evaluate, load
/// and replay would agree with the eager one for nothing.
void judge_cycle(Judgement& judgement, const RankFiles& files, const CycleLine& line,
                 const CycleLine* before, const Launches& want, std::int64_t evaluations) {
  const std::int64_t done = line.cycle + 1,
                     launches = line.launches - (before ? before->launches : 0);
  const bool replayed = want.exact ? launches == want.count : launches >= want.count;
  const auto report = [&](std::string what, std::string got, std::string wanted, std::string why) {
    judgement.defect({.rank = files.rank,
                      .step = line.step,
                      .what = concat(what, " in cycle ", line.cycle, " of arm ", line.arm),
                      .got = std::move(got),
                      .want = std::move(wanted),
                      .why = std::move(why)});
  };
  if (!replayed)
    return report("the long job did not replay its steps", concat(launches, " graph launches"),
                  concat(want.count, want.exact ? "" : " at least"),
                  "steps that ran eagerly show nothing about graphs that live long");
  if (line.evaluations != done * evaluations || line.loads != done)
    return report("the long job did not evaluate and load a checkpoint",
                  concat(line.evaluations, " evaluations and ", line.loads, " loads so far"),
                  concat(done * evaluations, " and ", done),
                  "what was not done has no effect that could show");
  if (line.losses.empty() ||
      !std::ranges::all_of(line.losses, [](double loss) { return std::isfinite(loss); }))
    return report("the losses of the long job are not finite",
                  concat(line.losses.size(), " losses, not all finite"), "finite losses",
                  "both jobs then agree whatever a replay computes");
  if (before && before->params == line.params)
    return report("the long job trains nothing", concat("parameters ", line.params),
                  "others than at the end of the cycle before",
                  "parameters that stay the same agree whatever a replay computes");
  judgement.confirm(files.rank);
}

/// Whether both jobs had the same parameters when they loaded the checkpoint.
void judge_load(Judgement& judgement, const RankFiles& files, const CycleLine& eager,
                const CycleLine& graph, const soak::Plan& plan) {
  if (eager.params_before_load == graph.params_before_load) return judgement.confirm(files.rank);
  judgement.defect({.rank = files.rank,
                    .step = graph.cycle * plan.cycle_steps() + plan.loaded() - 1,
                    .what = concat("arm ", kPair.right, " has other parameters than ", kPair.left,
                                   " where cycle ", graph.cycle, " loads its checkpoint"),
                    .got = concat("parameters ", graph.params_before_load.value_or("of no digest")),
                    .want = eager.params_before_load.value_or("no digest"),
                    .why = "a replay since the checkpoint was saved computed something else, and "
                           "the load hides it from the comparison at the end of the cycle"});
}

}  // namespace

/// At the end of every cycle both jobs have the same losses, gradients, parameters and masks, byte
/// for byte, after as many replays, evaluations and loads as the plan has. From evidence revision
/// 17 on they also had the same parameters when the checkpoint replaced them, so that a wrong
/// replay shows wherever it was.
record::CheckResult checkpoints(Judgement& judgement, const Attempt& attempt) {
  const soak::Plan plan = plan_of(attempt);
  Launches launches{0, true};  // of a rank
  const std::int64_t evaluations = judgement.expected().warmup_steps + 2;
  for (const RankFiles& files : attempt.ranks) {
    std::map<std::string_view, std::vector<const CycleLine*>> jobs;
    launches = launches_of_cycle(attempt, judgement.expected_of(files));
    for (const std::string_view arm : {kPair.left, kPair.right}) {
      const auto& lines = jobs[arm] = cycles(judgement, files, plan, arm);
      for (std::size_t i = 0; i < lines.size(); ++i)
        judge_cycle(judgement, files, *lines[i], i > 0 ? lines[i - 1] : nullptr,
                    arm == kPair.right ? launches : Launches{0, true}, evaluations);
    }
    if (!jobs[kPair.left].empty() && !jobs[kPair.right].empty())
      for (std::size_t cycle = 0; cycle < soak::kCycles; ++cycle)
        judge_load(judgement, files, *jobs[kPair.left][cycle], *jobs[kPair.right][cycle], plan);
    const auto compared = comparisons(judgement, files, kPair.compared);
    for (std::int64_t cycle = 0; cycle < soak::kCycles; ++cycle) {
      const std::int64_t step = plan.last_step(cycle);
      const auto found = std::ranges::find(compared, step, &CompareLine::step);
      if (found == compared.end())
        judgement.absent(files, concat("comparison `", kPair.compared, "`"), step);
      else
        judge_comparison(judgement, files, **found, kPair);
    }
  }
  return judgement.result(
      concat(soak::kCycles, " cycles of ", plan.cycle_steps(), " steps equal on ",
             attempt.ranks.size(), " ranks, with ", launches.exact ? "" : "at least ",
             soak::kCycles * launches.count, " graph launches"),
      "the same bytes in both jobs at the end of every cycle");
}

/// In every cycle the job captures as many graphs as in the first one, and after they were
/// destroyed the allocator has the same bytes, none of them in a pool of the job.
record::CheckResult recaptures(Judgement& judgement, const Attempt& attempt) {
  const soak::Plan plan = plan_of(attempt);
  for (const RankFiles& files : attempt.ranks) {
    const auto lines = cycles(judgement, files, plan, kPair.right);
    const MemoryLine *before = nullptr, *settled = nullptr;
    for (const MemoryLine* line : judgement.find<MemoryLine>(files, kPair.right)) {
      if (line->when == "before") before = line;
      if (line->when == "returned" && line->step == plan.last_step(soak::kSettlingCycles))
        settled = line;
    }
    if (!before || !settled) {
      judgement.absent<MemoryLine>(
          files, concat("of arm ", kPair.right, " before it was built and after its graphs"));
      continue;
    }
    for (const CycleLine* line : lines) {
      const std::int64_t want = (line->cycle + 1) * lines.front()->captures;
      if (line->captures != want || want == 0)
        judgement.defect({.rank = files.rank,
                          .step = line->step,
                          .what = concat("cycle ", line->cycle, " of the long job did not capture",
                                         " its graphs again"),
                          .got = concat(line->captures, " captures so far"),
                          .want = concat(want == 0 ? 1 : want, ", as many in each cycle"),
                          .why = "a graph that is not captured again gives nothing back"});
      const auto all = judgement.find<MemoryLine>(files, kPair.right, line->step);
      const auto found =
          std::ranges::find_if(all, [](const MemoryLine* one) { return one->when == "returned"; });
      if (found == all.end()) {
        judgement.absent<MemoryLine>(files, concat("of arm ", kPair.right, " after its graphs"),
                                     line->step);
        continue;
      }
      const MemoryLine& left = **found;
      const bool kept = line->cycle > soak::kSettlingCycles && left.allocated > settled->allocated;
      if (left.pool <= before->pool && !kept) {
        judgement.confirm(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = line->step,
           .what = concat("the graphs of cycle ", line->cycle,
                          " of the long job kept memory when they were destroyed"),
           .got = concat(left.pool, " bytes in graph pools, ", left.allocated, " bytes allocated"),
           .want = concat(before->pool, " and ", settled->allocated, " at most"),
           .why = "a job that captures again now and then ends without memory"});
    }
  }
  return judgement.result(
      concat("all of it in ", soak::kCycles, " cycles on ", attempt.ranks.size(), " ranks"),
      "no pool, and no more bytes than after the first recapture");
}

}  // namespace graphproof::checks::d54
