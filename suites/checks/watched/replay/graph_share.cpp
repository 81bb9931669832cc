// D63: how much of a program's work is in graphs, whether its steps stop replaying them, and
// whether it is less than in an earlier run.
#include <algorithm>
#include <array>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/kernel_counts.h"
#include "suites/checks/watched/job/steady_share.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d63 {
namespace {

// A graph counts as part of the steps if this many had a launch. A step is one step of one
// optimizer, so with several optimizers only some of the steps between the first launch and the
// last have one: at least this part of them.
constexpr std::int64_t kStepsWithLaunch = 5;
constexpr double kPartOfSteps = 0.2;
// The last steps of a run may be without a launch: an evaluation, an incomplete batch, a
// checkpoint. More than this many and this part of all steps are not the last ones.
constexpr std::int64_t kLastSteps = 5;
constexpr double kLastPart = 0.1;
// Evaluations, checkpoints and a last incomplete step run outside graphs and weigh more in a
// shorter run: this part of an earlier figure is as much as before. A step that leaves its graph
// loses all of its part.
constexpr double kAsMuchAsBefore = 0.9;

/// What a figure of steady_figures() is of a run.
struct Compared {
  std::string_view figure, what;
};
constexpr std::array kCompared = {
    Compared{"steady_share", "the share of the kernels in graphs"},
    Compared{"least_steady_share", "the smallest share of the kernels in graphs of a process"},
    Compared{"replays_a_step", "the number of replays in a training step"},
    Compared{"least_replays_a_step", "the smallest number of replays in a step of a process"}};
constexpr Compared kLaunches = {"graph_launches", "the number of replays of the same command"};

void judge_steps(WatchedJudgement& judgement, const JobProcess& process) {
  const std::int64_t steps = process.line().steps;
  std::optional<Executable> last;  // the graph of the steps that was launched last
  std::int64_t last_step = -1;     // of any graph, those that came later included
  for (const Executable& one : executables(process)) {
    if (!one.replays || !one.replays->last_step) continue;
    last_step = std::max(last_step, *one.replays->last_step);
    const auto span =
        static_cast<double>(*one.replays->last_step - one.replays->first_step.value_or(0) + 1);
    const std::int64_t with = one.replays->steps.value_or(0);
    if (with < kStepsWithLaunch || static_cast<double>(with) < kPartOfSteps * span) continue;
    if (!last || *one.replays->last_step > *last->replays->last_step) last = one;
  }
  if (!last) return;
  const std::int64_t without = steps - 1 - last_step;
  if (without <= kLastSteps ||
      static_cast<double>(without) <= kLastPart * static_cast<double>(steps))
    return;
  judgement.defect(
      process, {.what = concat(last->title(), ", is no longer replayed while steps go on"),
                .got = concat("the last launch of any graph after ", last_step,
                              " steps; the process made ", steps),
                .want = "replays until the last steps",
                .why = "the program left its graphs, often after one step that did not fit, and "
                       "runs eagerly since",
                .next = "look for what makes the program run a step eagerly (a shape, a flag "
                        "that is never reset), and let only that step do so"});
}

/// A run that is seen to launch no graph any more has nothing of what the earlier one had.
std::map<std::string, double> figures_now(const WatchedJob& job) {
  std::map<std::string, double> now = steady_figures(job);
  double launches = 0;
  for (const JobProcess& process : job.processes) {
    if (process.unseen("driver_calls")) return now;
    launches += static_cast<double>(process.graph_launches());
  }
  if (job.processes.empty()) return now;
  now[std::string(kLaunches.figure)] = launches;
  if (launches == 0)
    for (const Compared& one : kCompared) now[std::string(one.figure)] = 0;
  return now;
}

void judge_against_earlier(WatchedJudgement& judgement, const WatchedJob& job) {
  if (!job.run.against) return;
  const auto earlier = job.run.earlier.value_or(std::map<std::string, double>{});
  const std::map<std::string, double> now = figures_now(job);
  const auto compare = [&](const Compared& one) {
    const std::string name(one.figure);
    const auto before = earlier.find(name), after = now.find(name);
    if (before == earlier.end()) return false;
    if (after == now.end()) {
      judgement.unexercised(concat(one.what, " is not known of this run, and is ", before->second,
                                   " of ", *job.run.against));
      return true;
    }
    if (after->second < kAsMuchAsBefore * before->second)
      judgement.defect({.what = concat(one.what, " is smaller than before"),
                        .got = concat(after->second),
                        .want = concat(before->second, ", as of ", *job.run.against, ", or ",
                                       kAsMuchAsBefore, " of it"),
                        .why = "work that was in graphs runs eagerly, or is done less often",
                        .next =
                            "compare the tables of graphs of both runs: which graph is gone, or "
                            "is replayed less often"});
    return true;
  };
  bool any = false;
  for (const Compared& one : kCompared) any |= compare(one);
  // The length of a run is its own business, unless the command says that it is the same.
  if (!earlier.contains("replays_a_step")) any |= compare(kLaunches);
  if (!any) judgement.unexercised(concat(*job.run.against, " has no figure that can be compared"));
}

}  // namespace

record::CheckResult graph_share(WatchedJudgement& judgement, const WatchedJob& job) {
  const std::optional<double> wanted = job.run.expected_graph_share;
  std::string summary;
  judge_against_earlier(judgement, job);
  for (const JobProcess& process : job.processes) {
    if (!process.has_graphs()) continue;
    const std::optional<std::string> unseen = process.unseen("training_steps");
    if (unseen && !wanted && !job.run.against) {
      judgement.excuse(process, *unseen);
      continue;
    }
    if (!unseen) judge_steps(judgement, process);
    const KernelCounts kernels = kernel_counts(process);
    if (kernels.incomplete && wanted) {
      judgement.unexercised(concat(process.title(), ": ", *kernels.incomplete));
      continue;
    }
    const double share = kernels.share();
    if (wanted && share < *wanted)
      judgement.defect(process,
                       {.what = "a smaller share of the kernels is in graphs than was asked for",
                        .got = concat(share, ": ", kernels.in_graphs, " kernels in graphs, ",
                                      kernels.outside, " outside"),
                        .want = concat("at least ", *wanted),
                        .why = "what is outside graphs has the launch costs of eager",
                        .next = "the table of graphs shows what runs between replays"});
    judgement.confirm(process);
    if (summary.empty()) summary = concat("share of kernels in graphs: ", share);
  }
  if (job.run.against) summary += concat("; as much as in ", *job.run.against);
  return judgement.result(
      summary, wanted ? concat("a share of at least ", *wanted) : "replays until the last steps");
}

}  // namespace graphproof::checks::watched::d63
