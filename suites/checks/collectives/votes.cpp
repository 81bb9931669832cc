// D26: all ranks agreed at every phase boundary. An error outside the capture and a refusal of
// some ranks only also fail here, so that nothing that a rank admitted can be overlooked.
#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d26 {
namespace {

using record::CaptureLine;
using record::ErrorLine;
using record::Phase;
using record::VoteLine;

/// Phases that every case, or every case with graphs, ends with a vote. Before init no rank can be
/// asked.
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

/// Whether D19 has this failure to report: the rank wrote down that its capture failed.
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
         .why = "the case could not go its whole way"});
  }
}

void judge_codes(Judgement& judgement, const Attempt& attempt, const RankFiles& files,
                 const VoteLine& vote) {
  if (vote.codes.size() != attempt.ranks.size()) {
    judgement.defect({.rank = files.rank,
                      .step = std::nullopt,
                      .what = concat("a vote of rank ", files.rank, " misses ranks"),
                      .got = describe(vote),
                      .want = concat(attempt.ranks.size(), " codes, one for each rank"),
                      .why = "who did not vote did not agree"});
    return;
  }
  const auto [lowest, highest] = std::ranges::minmax(vote.codes);
  if (lowest == 0 && highest == 0) {
    judgement.confirm(files.rank);
    return;
  }
  if (lowest == highest && vote.phase == Phase::capture && any_capture_failed(judgement, attempt)) {
    judgement.confirm(
        files.rank);  // agreed: every rank gave up the same capture, which is D19's to report
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
       .why = "ranks that go on alone wait in a collective for ever"});
}

/// Every capture ends with a vote of its own, and so do the replays of lockstep_graph with its
/// second run, of free_graph, of the steps of changing lengths and, since revision 2, of
/// solo_graph.
std::ptrdiff_t votes_wanted(Judgement& judgement, const Attempt& attempt, const RankFiles& files,
                            Phase phase) {
  if (phase == Phase::capture)
    return std::max<std::ptrdiff_t>(1, std::ssize(judgement.lines<CaptureLine>(files)));
  if (phase != Phase::replay) return 1;
  const bool trains = attempt.axes.text("model") != "collective";
  return 2 + (trains && evidence_revision(attempt) >= 2 ? 1 : 0) +
         (attempt.axes.integer("shape_buckets") > 0 ? 1 : 0);
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

/// A rank that refused beside one that went on: they disagree before any vote could be held.
void judge_refusals(Judgement& judgement, const Attempt& attempt, const record::Refusal& refusal) {
  for (const RankFiles& files : attempt.ranks) {
    const record::RankEvidence way = rank_progress(files);
    if (way.refused && way.refused->rule == refusal.rule) {
      judgement.confirm(files.rank);
    } else if (way.refused || way.complete ||
               (way.last_phase && *way.last_phase > record::Phase::validate)) {
      judgement.defect(
          {.rank = files.rank,
           .step = std::nullopt,
           .what = concat("rank ", files.rank, " did not refuse the case as others did"),
           .got = way.refused ? concat("refused by rule ", way.refused->rule) : "went on",
           .want = concat("refused by rule ", refusal.rule),
           .why = "ranks must come to the same decision from the same case"});
    } else {
      judgement.absent(files, "refusal");
    }
  }
}

}  // namespace

/// The ranks voted after init, build, eager and each phase of the teardown and, with graphs, after
/// every capture, after the replays of every arm, and after compare. All ranks have the same
/// votes, all zero. An error of a rank outside phase capture fails the check too, and so does a
/// case that only some ranks refused. A capture that failed on all ranks alike is reported by D19.
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
    // A rank that died votes less often; what both held must be equal.
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
                 concat("ranks ", first->rank, " and ", files.rank, " remember different votes"),
             .got = concat("vote ", index + 1, " of rank ", files.rank, ": ", describe(own[index])),
             .want = describe(common[index]),
             .why = "ranks that disagree about a vote go different ways"});
      }
      break;
    }
  }
  return judgement.result(concat(common.size(), " votes, all ranks with code 0"),
                          "code 0 of every rank after every phase");
}

}  // namespace graphproof::checks::d26
