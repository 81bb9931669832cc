// D26: all ranks agreed at every phase boundary. An error outside the capture, and a refusal by
// some ranks only, also fail this check, so that nothing that a rank reports is overlooked.
#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <span>
#include <string>

#include "suites/checks/attempt/capture.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"
#include "workloads/engine_traits/engine_traits.h"

namespace graphproof::checks::d26 {
namespace {

using record::CaptureLine;
using record::ErrorLine;
using record::Phase;
using record::SecondCaptureLine;
using record::VoteLine;

/// A phase that every case, or every case with graphs, ends with a vote. Before phase init has
/// ended the ranks cannot communicate.
struct Boundary {
  Phase phase;
  bool graphs_only;
};
constexpr std::array kBoundaries = {Boundary{Phase::init, false},
                                    Boundary{Phase::build, false},
                                    Boundary{Phase::eager, false},
                                    Boundary{Phase::capture, true},
                                    Boundary{Phase::replay, true},
                                    Boundary{Phase::compare, true},
                                    Boundary{Phase::teardown_graph, false},
                                    Boundary{Phase::teardown_comm, false},
                                    Boundary{Phase::teardown_process, false}};

bool equal(const VoteLine& left, const VoteLine& right) {
  return left.phase == right.phase && left.codes == right.codes;
}

std::string describe(const VoteLine& vote) {
  std::string codes;
  for (const std::int64_t code : vote.codes) codes += concat(codes.empty() ? "" : " ", code);
  return concat("codes ", codes.empty() ? "none" : codes, " after phase ",
                record::name(vote.phase));
}

/// Whether the rank's evidence has a failed capture, which D19 reports.
bool capture_failed(Judgement& judgement, const RankFiles& files) {
  return std::ranges::any_of(judgement.lines<CaptureLine>(files),
                             [](const CaptureLine& line) { return line.status != "ok"; }) ||
         std::ranges::any_of(judgement.lines<ErrorLine>(files),
                             [](const ErrorLine& line) { return line.phase == Phase::capture; });
}

bool any_capture_failed(Judgement& judgement, const Attempt& attempt) {
  return std::ranges::any_of(
      attempt.ranks, [&](const RankFiles& files) { return capture_failed(judgement, files); });
}

void judge_errors(Judgement& judgement, const RankFiles& files) {
  for (const ErrorLine& error : judgement.lines<ErrorLine>(files)) {
    if (error.phase == Phase::capture) continue;
    judgement.defect(
        {.rank = files.rank,
         .step = error.step,
         .what = concat("rank ", files.rank, " met an error in phase ", record::name(error.phase),
                        ", arm ", error.arm),
         .got = concat(error.type, " error ", error.code, " at ", error.call, ": ", error.message),
         .want = "no error",
         .why = "the case could not run to its end"});
  }
}

void judge_codes(Judgement& judgement, const Attempt& attempt, const RankFiles& files,
                 const VoteLine& vote) {
  if (vote.codes.size() != attempt.ranks.size()) {
    judgement.defect({.rank = files.rank,
                      .step = std::nullopt,
                      .what = concat("a vote of rank ", files.rank, " lacks codes of ranks"),
                      .got = describe(vote),
                      .want = concat(attempt.ranks.size(), " codes, one for each rank"),
                      .why = "a rank that did not vote did not agree"});
    return;
  }
  const auto [lowest, highest] = std::ranges::minmax(vote.codes);
  if (lowest == 0 && highest == 0) {
    judgement.confirm(files.rank);
    return;
  }
  if (lowest == highest && vote.phase == Phase::capture && any_capture_failed(judgement, attempt)) {
    // The ranks agreed: all of them abandoned the same capture. D19 reports it.
    judgement.confirm(files.rank);
    return;
  }
  const auto first = std::ranges::find_if(vote.codes, [](std::int64_t code) { return code != 0; }) -
                     vote.codes.begin();
  judgement.defect(
      {.rank = static_cast<int>(first),
       .step = std::nullopt,
       .what = concat("rank ", first, " voted that phase ", record::name(vote.phase), " failed"),
       .got = describe(vote),
       .want = "code 0 of every rank",
       .why = "ranks that continue without it wait in a collective for ever"});
}

/// Whether the stages of a pipeline capture different numbers of graphs, so that their ranks vote
/// once for all captures of an arm: where Megatron-Core records its first step, it makes as many
/// graphs of a layer as microbatches are between their forward and backward pass.
bool votes_once_an_arm(const Attempt& attempt) {
  return attempt.axes.text("subject") == "megatron_core" && attempt.axes.integer("pp") > 1 &&
         engines::traits_of(attempt.axes.text("impl")).records_first_step;
}

/// How many votes a rank holds after a phase. Every capture, and every second one of a graph, ends
/// with a vote of its own, but those
/// of a vision encoder and of multi-token prediction, which other stages do not have. So do the
/// replays of lockstep_graph with its second run, of free_graph, of the steps of changing lengths,
/// from evidence revision 2 on of solo_graph, and, with a limit on times, of paired_graph.
std::ptrdiff_t votes_wanted(Judgement& judgement, const Attempt& attempt, const RankFiles& files,
                            Phase phase) {
  if (phase == Phase::capture && votes_once_an_arm(attempt)) {
    std::set<std::string> arms;
    for (const CaptureLine& line : judgement.lines<CaptureLine>(files)) arms.insert(line.arm);
    return std::max<std::ptrdiff_t>(1, std::ssize(arms));
  }
  if (phase == Phase::capture) {
    const auto all_ranks_capture = [](const auto& line) {
      return !engines::of_one_stage(line.graph);
    };
    return std::max<std::ptrdiff_t>(
        1, std::ranges::count_if(judgement.lines<CaptureLine>(files), all_ranks_capture) +
               std::ranges::count_if(judgement.lines<SecondCaptureLine>(files), all_ranks_capture));
  }
  if (phase != Phase::replay) return 1;
  return 2 + (judgement.expected().trains && evidence_revision(attempt) >= 2 ? 1 : 0) +
         (attempt.axes.integer("shape_buckets") > 0 ? 1 : 0) +
         (attempt.axes.text("perf_limit") != "none" ? 1 : 0);
}

void judge_required(Judgement& judgement, const Attempt& attempt, const RankFiles& files,
                    std::span<const VoteLine> votes) {
  for (const Boundary& boundary : kBoundaries) {
    if (boundary.graphs_only && !judgement.expected().graph) continue;
    const std::ptrdiff_t wanted = votes_wanted(judgement, attempt, files, boundary.phase);
    const auto held = std::ranges::count(votes, boundary.phase, &VoteLine::phase);
    if (held < wanted)
      judgement.absent(files, concat(wanted == 1 ? std::string("vote")
                                                 : concat(wanted - held, " of ", wanted, " votes"),
                                     " after phase ", record::name(boundary.phase)));
  }
}

/// Reports a rank that continued although another one refused the case. Ranks decide this before
/// they can vote.
void judge_refusals(Judgement& judgement, const Attempt& attempt, const record::Refusal& refusal) {
  for (const RankFiles& files : attempt.ranks) {
    const record::RankEvidence progress = rank_progress(files);
    if (progress.refused && progress.refused->rule == refusal.rule) {
      judgement.confirm(files.rank);
    } else if (progress.refused || progress.complete ||
               (progress.last_phase && *progress.last_phase > record::Phase::validate)) {
      judgement.defect(
          {.rank = files.rank,
           .step = std::nullopt,
           .what = concat("rank ", files.rank, " did not refuse the case as others did"),
           .got =
               progress.refused ? concat("refused by rule ", progress.refused->rule) : "continued",
           .want = concat("refused by rule ", refusal.rule),
           .why = "all ranks must decide the same, because they have the same case"});
    } else {
      judgement.absent(files, "refusal");
    }
  }
}

}  // namespace

/// The ranks voted after init, build, eager and each phase of the teardown and, with graphs, after
/// every capture, after the replays of every arm, and after compare. All ranks have the same votes,
/// and all codes are zero. An error of a rank outside phase capture also fails the check, and so
/// does a case that only some ranks refused. D19 reports a capture that failed on all ranks.
record::CheckResult votes(Judgement& judgement, const Attempt& attempt) {
  if (const auto refusal = refusal_of(attempt)) {
    judge_refusals(judgement, attempt, *refusal);
    return judgement.result(concat("rule ", refusal->rule, " on ", attempt.ranks.size(), " ranks"),
                            "one decision of all ranks");
  }
  const RankFiles* first = nullptr;
  std::span<const VoteLine> common;
  for (const RankFiles& files : attempt.ranks) {
    judge_errors(judgement, files);
    const std::span<const VoteLine> own = judgement.lines<VoteLine>(files);
    for (const VoteLine& vote : own) judge_codes(judgement, attempt, files, vote);
    judge_required(judgement, attempt, files, own);
    if (!first) {
      first = &files;
      common = own;
    }
    // A rank that died has fewer votes; those that both ranks have must be equal.
    for (std::size_t index = 0; index < std::max(own.size(), common.size()); ++index) {
      if (index < own.size() && index < common.size() && equal(own[index], common[index])) continue;
      if (index >= own.size() || index >= common.size()) {
        judgement.absent(index >= own.size() ? files : *first,
                         concat("vote number ", index + 1, ", which another rank has"));
      } else {
        judgement.defect(
            {.rank = files.rank,
             .step = std::nullopt,
             .what =
                 concat("ranks ", first->rank, " and ", files.rank, " recorded different votes"),
             .got = concat("vote ", index + 1, " of rank ", files.rank, ": ", describe(own[index])),
             .want = describe(common[index]),
             .why = "ranks that disagree about a vote run different work afterwards"});
      }
      break;
    }
  }
  return judgement.result(concat(common.size(), " votes, all ranks with code 0"),
                          "code 0 of every rank after every phase");
}

}  // namespace graphproof::checks::d26
