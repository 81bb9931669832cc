// D26: all ranks agreed at every phase boundary. It is also where an error outside the capture and
// a refusal of some ranks only become a failing check, so that nothing a rank admitted can be
// overlooked.
#include <algorithm>
#include <array>
#include <iterator>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/detectors.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks {
namespace {

/// Phases that every case, or every case with graphs, ends with a vote. Before init nobody can be
/// asked.
struct Boundary {
  std::string_view phase;
  bool graphs_only;
};
constexpr std::array kBoundaries = {Boundary{"init", false},
                                    Boundary{"build", false},
                                    Boundary{"eager", false},
                                    Boundary{"capture", true},
                                    Boundary{"replay", true},
                                    Boundary{"compare", true},
                                    Boundary{"teardown_graph", false},
                                    Boundary{"teardown_comm", false},
                                    Boundary{"teardown_process", false}};

struct Vote {
  std::string phase;
  std::vector<std::int64_t> codes;
  bool operator==(const Vote&) const = default;
};

std::string describe(const Vote& vote) {
  std::string codes;
  for (const std::int64_t code : vote.codes) codes += concat(codes.empty() ? "" : " ", code);
  return concat("codes ", codes.empty() ? "none" : codes, " after phase ", vote.phase);
}

std::vector<Vote> votes_of(const RankFiles& files) {
  std::vector<Vote> result;
  for (const Line* line : files.find("vote"))
    result.push_back(
        {text(*line, "phase"), integers(*line, "codes").value_or(std::vector<std::int64_t>{})});
  return result;
}

/// Whether D19 has this failure to report: the rank wrote down that its capture failed.
bool capture_failed(const RankFiles& files) {
  for (const Line* line : files.find("capture"))
    if (text(*line, "status") != "ok") return true;
  for (const Line* line : files.find("error"))
    if (text(*line, "phase") == "capture") return true;
  return false;
}

bool any_capture_failed(const Attempt& attempt) {
  return std::ranges::any_of(attempt.ranks, capture_failed);
}

void judge_errors(Judgement& judgement, const RankFiles& files) {
  for (const Line* error : files.find("error")) {
    if (text(*error, "phase") == "capture") continue;
    judgement.defect(
        {.rank = files.rank,
         .step = integer(*error, "step"),
         .what = concat("rank ", files.rank, " met an error in phase ", text(*error, "phase"),
                        ", arm ", text(*error, "arm")),
         .got = concat(text(*error, "type"), " error ", integer(*error, "code").value_or(0), " at ",
                       text(*error, "call"), ": ", text(*error, "message")),
         .want = "no error",
         .why = "the case could not go its whole way"});
  }
}

void judge_codes(Judgement& judgement, const Attempt& attempt, const RankFiles& files,
                 const Vote& vote) {
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
    judgement.saw(files.rank);
    return;
  }
  if (lowest == highest && vote.phase == "capture" && any_capture_failed(attempt)) {
    judgement.saw(
        files.rank);  // agreed: every rank gave up the same capture, which is D19's to report
    return;
  }
  const auto first = std::ranges::find_if(vote.codes, [](std::int64_t code) { return code != 0; }) -
                     vote.codes.begin();
  judgement.defect({.rank = static_cast<int>(first),
                    .step = std::nullopt,
                    .what = concat("rank ", first, " voted that phase ", vote.phase, " failed"),
                    .got = describe(vote),
                    .want = "code 0 of every rank",
                    .why = "ranks that go on alone wait in a collective for ever"});
}

/// Every capture ends with a vote of its own, and so do the replays of lockstep_graph with its
/// second run, of free_graph, of the steps of changing lengths and, since revision 2, of
/// solo_graph.
std::ptrdiff_t votes_wanted(const Attempt& attempt, const RankFiles& files,
                            std::string_view phase) {
  if (phase == "capture") return std::max<std::ptrdiff_t>(1, std::ssize(files.find("capture")));
  if (phase != "replay") return 1;
  const bool trains = attempt.axes.text("model") != "collective";
  return 2 + (trains && evidence_revision(attempt) >= 2 ? 1 : 0) +
         (attempt.axes.integer("shape_buckets") > 0 ? 1 : 0);
}

void judge_required(Judgement& judgement, const Attempt& attempt, const RankFiles& files,
                    const std::vector<Vote>& votes) {
  for (const Boundary& boundary : kBoundaries) {
    if (boundary.graphs_only && !judgement.expected().graph) continue;
    const std::ptrdiff_t wanted = votes_wanted(attempt, files, boundary.phase);
    const auto held = std::ranges::count(votes, boundary.phase, &Vote::phase);
    if (held < wanted)
      judgement.absent(files, concat(wanted == 1 ? std::string("vote")
                                                 : concat(wanted - held, " of ", wanted, " votes"),
                                     " after phase ", boundary.phase));
  }
}

/// A rank that refused beside one that went on: they disagree before any vote could be held.
void judge_refusals(Judgement& judgement, const Attempt& attempt, const record::Refusal& refusal) {
  for (const RankFiles& files : attempt.ranks) {
    const record::RankEvidence way = rank_progress(files);
    if (way.refused && way.refused->rule == refusal.rule) {
      judgement.saw(files.rank);
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

record::CheckResult votes(const Attempt& attempt) {
  Judgement judgement("D26.votes", attempt);
  if (const auto refusal = refusal_of(attempt)) {
    judge_refusals(judgement, attempt, *refusal);
    return judgement.result(concat("rule ", refusal->rule, " on ", attempt.ranks.size(), " ranks"),
                            "one decision of all ranks");
  }
  const RankFiles* first = nullptr;
  std::vector<Vote> common;
  for (const RankFiles& files : attempt.ranks) {
    judge_errors(judgement, files);
    const std::vector<Vote> own = votes_of(files);
    for (const Vote& vote : own) judge_codes(judgement, attempt, files, vote);
    judge_required(judgement, attempt, files, own);
    if (!first) {
      first = &files;
      common = own;
    }
    // A rank that died votes less often; what both held must be equal.
    for (std::size_t index = 0; index < std::max(own.size(), common.size()); ++index) {
      if (index < own.size() && index < common.size() && own[index] == common[index]) continue;
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

}  // namespace graphproof::checks
