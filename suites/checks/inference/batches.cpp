// D71: an inference job computes the batches that its requests ask for, from graphs wherever there
// is one of their size.
#include <vector>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"
#include "suites/checks/inference/job_plan.h"

namespace graphproof::checks::d71 {
namespace {

using record::AddressLine;
using record::BatchLine;
using record::PoisonLine;
using requests::Step;

/// The steps of every data parallel rank, those of all rollouts one after the other.
std::vector<std::vector<Step>> whole_plan(const Expected& expected, const Axes& axes) {
  const auto once = job_plan(axes);
  auto plan = once;
  for (std::int64_t round = 1; round < expected.rollouts; ++round)
    for (std::size_t rank = 0; rank < once.size(); ++rank)
      plan[rank].insert(plan[rank].end(), once[rank].begin(), once[rank].end());
  return plan;
}

std::string described(const std::string& work, std::int64_t rows, std::int64_t size) {
  return concat(work, " of ", rows, " tokens in a batch of ", size);
}

void judge_arm(Judgement& judgement, const RankFiles& files, const Axes& axes,
               const std::vector<Step>& plan, const InferenceArm& arm) {
  const std::int64_t captures = arm.graph ? graphs_of_job(axes) : 0;
  std::int64_t launches = 0;
  for (std::int64_t index = 0; index < std::ssize(plan); ++index) {
    const Step& step = plan[static_cast<std::size_t>(index)];
    if (arm.graph) launches += launches_of(axes, step);
    if (!arm.every_step && index + 1 < std::ssize(plan)) continue;
    const BatchLine* line = judgement.first<BatchLine>(files, arm.name, index);
    if (!line) {
      judgement.absent<BatchLine>(files, concat("of arm ", arm.name), index);
      continue;
    }
    const std::int64_t rows = std::ssize(step.rows);
    const auto defect = [&](std::string what, std::string got, std::string want, std::string why) {
      judgement.defect({.rank = files.rank,
                        .step = index,
                        .what = std::move(what),
                        .got = std::move(got),
                        .want = std::move(want),
                        .why = std::move(why)});
    };
    if (line->work != work_word(step.work) || line->rows != rows || line->size != step.size)
      defect(concat("arm ", arm.name, " computed another batch than its requests ask for"),
             described(line->work, line->rows, line->size),
             described(work_word(step.work), rows, step.size),
             "ranks that choose other sizes wait for each other or compute with another's shapes, "
             "and a prompt is not a token that decodes");
    else if (line->launches != launches)
      defect(concat("arm ", arm.name, " launched another number of graphs up to step ", index),
             concat(line->launches, " launches"), concat(launches, " launches"),
             "a batch that ran eagerly proves nothing about its graph, and one that a graph of "
             "another step computed is wrong");
    else if (line->captures != captures)
      defect(concat("arm ", arm.name, " began another number of captures up to step ", index),
             concat(line->captures, " captures"),
             concat(captures, " captures, all of them before the first step"),
             "a capture in the middle of a job stops every request");
    else
      judgement.confirm(files.rank);
  }
}

}  // namespace

/// Every arm has a `batch` line of every step, a free arm of its last one. Work, tokens and size
/// are those of the plan that follows from the axes, for all ranks alike and in every rollout;
/// graph arms launched the graphs of every batch that has one, and captured each size once, before
/// the first step.
record::CheckResult batches(Judgement& judgement, const Attempt& attempt) {
  const auto plan = whole_plan(judgement.expected(), attempt.axes);
  for (const RankFiles& files : attempt.ranks) {
    const auto& of_rank = plan.at(replica_of(attempt.axes, files.rank));
    if (judgement.expected().rollouts == 0)
      for (const InferenceArm& arm : inference_arms(attempt.axes, /*graphs=*/false))
        judge_arm(judgement, files, attempt.axes, of_rank, arm);
    if (!judgement.expected().graph) continue;
    for (const InferenceArm& arm : inference_arms(attempt.axes, /*graphs=*/true))
      judge_arm(judgement, files, attempt.axes, of_rank, arm);
  }
  return judgement.result(
      concat("as planned in ", plan.front().size(), " steps on ", attempt.ranks.size(), " ranks"),
      "the batches of the requests, from the graphs of their sizes");
}

/// Every replayed step of the graph arms that do not run free has an `address` line without a moved
/// tensor, and a `poison` line: at least one output was poisoned, nothing of the poison is left,
/// and every launch was announced. Halfway, free memory was overwritten; of a job that trains too
/// that is judged by D06.
record::CheckResult results_written(Judgement& judgement, const Attempt& attempt) {
  const auto plan = whole_plan(judgement.expected(), attempt.axes);
  const std::int64_t halfway = judgement.expected().steps / 2;
  for (const RankFiles& files : attempt.ranks) {
    const auto& of_rank = plan.at(replica_of(attempt.axes, files.rank));
    const auto* scribbled =
        judgement.first<record::ScribbledLine>(files, "lockstep_graph", halfway);
    if (judgement.expected().rollouts == 0 && (!scribbled || scribbled->bytes <= 0))
      judgement.absent<record::ScribbledLine>(files, "of more than 0 bytes", halfway);
    for (const auto& [arm, graph, every_step] : inference_arms(attempt.axes, /*graphs=*/true))
      for (std::int64_t index = 0; index < std::ssize(of_rank); ++index) {
        const std::int64_t launches =
            launches_of(attempt.axes, of_rank[static_cast<std::size_t>(index)]);
        if (!graph || !every_step || launches == 0) continue;
        const auto* address = judgement.first<AddressLine>(files, arm, index);
        const auto* poison = judgement.first<PoisonLine>(files, arm, index);
        if (!address) judgement.absent<AddressLine>(files, concat("of arm ", arm), index);
        if (!poison) judgement.absent<PoisonLine>(files, concat("of arm ", arm), index);
        if (!address || !poison) continue;
        if (address->registered <= 0 || !address->moved.empty())
          judgement.defect({.rank = files.rank,
                            .step = index,
                            .what = concat("inputs of a graph of arm ", arm, " moved"),
                            .got = address->moved.empty()
                                       ? "no registered tensor"
                                       : concat("`", address->moved.front().tensor, "` at ",
                                                address->moved.front().now),
                            .want = "every address as captured",
                            .why = "a replay reads the captured address, so it computes with old "
                                   "requests"});
        else if (poison->outputs <= 0 || poison->bytes <= 0 || poison->canary_words != 0)
          judgement.defect({.rank = files.rank,
                            .step = index,
                            .what = concat("a replay of arm ", arm, " left results unwritten"),
                            .got = concat(poison->canary_words, " canary words in ",
                                          poison->outputs, " outputs of ", poison->bytes, " bytes"),
                            .want = "at least one output poisoned, and 0 canary words",
                            .why = "what was not written belongs to an earlier batch"});
        else if (poison->launches.value_or(0) != launches ||
                 poison->announced.value_or(0) != launches)
          judgement.defect({.rank = files.rank,
                            .step = index,
                            .what = concat("launches of arm ", arm, " that nothing announced"),
                            .got = concat(shown(poison->launches), " launches, ",
                                          shown(poison->announced), " announced"),
                            .want = concat(launches, " of both"),
                            .why = "nothing inspected the outputs of such a launch"});
        else
          judgement.confirm(files.rank);
      }
  }
  return judgement.result(concat("written by every replay on ", attempt.ranks.size(), " ranks"),
                          "0 canary words");
}

}  // namespace graphproof::checks::d71
