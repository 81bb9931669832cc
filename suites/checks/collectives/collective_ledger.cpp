// D25: the ranks of a group issued the same collectives in the same order, in every arm.
#include <algorithm>
#include <map>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"
#include "workloads/pipeline/pipeline_schedule.h"

namespace graphproof::checks::d25 {
namespace {

using record::CollectivesLine;
using record::ReferenceLine;

/// The digest of the collectives in the rank's group `name`; "" if the line has none.
std::string digest_of(const CollectivesLine& line, std::string_view name) {
  const auto found = line.digest.find(std::string(name));
  return found == line.digest.end() ? "" : found->second;
}

/// The last ledger line of each arm.
std::map<std::string, const CollectivesLine*> ledgers(Judgement& judgement,
                                                      const RankFiles& files) {
  std::map<std::string, const CollectivesLine*> result;
  for (const CollectivesLine& line : judgement.lines<CollectivesLine>(files))
    result[line.arm] = &line;
  return result;
}

/// Whether arm `reference` computes in single precision, as it does for 16-bit experts in some
/// layouts. Its gradients then cannot overflow, so it needs no reduction over the stages, by which
/// fp16 learns whether one is infinite.
bool compares_in_fp32(Judgement& judgement, const RankFiles& files) {
  const auto lines = judgement.lines<ReferenceLine>(files);
  return !lines.empty() && std::ranges::all_of(lines, [](const ReferenceLine& line) {
    return line.precision == "fp32";
  });
}

std::string last_text(const CollectivesLine& line) {
  return line.last ? shown(*line.last) : "none";
}

/// Judges the digests of one group in every arm but `except_arm`. `same_count`: the ranks do the
/// same work, so the number of all their collectives must be equal, too.
void judge_group(Judgement& judgement, const Attempt& attempt, std::string_view kind,
                 const std::vector<int>& group, bool same_count, std::string_view except_arm = "") {
  // By arm: the first rank that has a ledger of it.
  std::map<std::string, std::pair<int, const CollectivesLine*>> first;
  for (const int rank : group)
    for (const auto& [arm, line] : ledgers(judgement, attempt.ranks[rank]))
      if (arm != except_arm) first.try_emplace(arm, rank, line);
  for (const int rank : group) {
    const RankFiles& files = attempt.ranks[rank];
    const auto own = ledgers(judgement, files);
    for (const auto& [arm, owner] : first) {
      const auto& [first_rank, other] = owner;
      const auto found = own.find(arm);
      if (found == own.end()) {
        judgement.absent<CollectivesLine>(
            files, concat("of arm ", arm, ", which rank ", first_rank, " has"));
        continue;
      }
      const CollectivesLine& line = *found->second;
      const std::string digest = digest_of(line, kind), want = digest_of(*other, kind);
      if (digest.empty() || line.count <= 0) {
        judgement.defect({.rank = rank,
                          .step = std::nullopt,
                          .what = concat("rank ", rank, " issued no collective in its ", kind,
                                         " group in arm ", arm),
                          .got = concat(line.count, " collectives, digest `", digest, "`"),
                          .want = "at least one, and a digest of them",
                          .why = "a parallel group that never communicates does not share its "
                                 "work"});
      } else if (digest != want || (same_count && line.count != other->count)) {
        judgement.defect(
            {.rank = rank,
             .step = std::nullopt,
             .what = concat("ranks ", first_rank, " and ", rank, " of one ", kind,
                            " group issued different collectives in arm ", arm),
             .got = concat("rank ", rank, ": ", line.count, " collectives, digest ", digest,
                           ", last ", last_text(line)),
             .want = concat("rank ", first_rank, ": ", other->count, " collectives, digest ", want),
             .why = "collectives in another order or size hang, or reduce the wrong data"});
      } else {
        judgement.confirm(rank);
      }
    }
  }
}

/// The arms whose collectives a rank with peers records. Older evidence of training, which has
/// other arms, names none.
std::vector<std::string_view> ledger_arms(const Attempt& attempt, const Expected& expected) {
  std::vector<std::string_view> arms;
  if (!expected.trains) {
    arms = {"eager"};
    if (expected.graph) arms.insert(arms.end(), {"lockstep", "graph_b", "free_run"});
  } else if (control_arms(attempt).solo) {
    arms = {"eager_a", "solo_eager", "reference"};
    if (expected.graph) arms.insert(arms.end(), {"lockstep", "free_run", "solo_graph"});
    if (expected.graph && attempt.axes.text("schedule") == "resume") arms.push_back("resumed");
    if (expected.graph && attempt.axes.integer("shape_buckets") > 0) arms.push_back("buckets");
    if (expected.graph && attempt.axes.text("dispatch") == "paged_stash") arms.push_back("stash");
    if (expected.graph && attempt.axes.text("perf_limit") != "none") arms.push_back("paired");
    if (attempt.axes.integer("soak_steps") > 0) arms.push_back("soak");
  }
  return arms;
}

}  // namespace

/// Every arm has a ledger of its collectives, with equal digests and counts on the ranks of every
/// group that issue the same ones.
record::CheckResult collective_ledger(Judgement& judgement, const Attempt& attempt) {
  const bool infers = !judgement.expected().trains && attempt.axes.text("model") != "collective";
  for (const std::string& kind : symmetric_groups(attempt.axes)) {
    // Data parallel ranks of an inference job have requests of their own and nothing to reduce.
    if (infers && kind == "dp") continue;
    for (const std::vector<int>& group : groups(attempt.axes, attempt.context.world_size, kind))
      judge_group(judgement, attempt, kind, group, /*same_count=*/true);
  }
  const std::int64_t stages = attempt.axes.integer("pp");
  // Arm reference does not compute in fp8.
  for (std::int64_t stage = 0; stage < stages; ++stage)
    if (reduces_amax(attempt.axes, stage))
      judge_group(judgement, attempt, "amax",
                  ranks_by_stage(attempt.axes, attempt.context.world_size)[stage],
                  /*same_count=*/true, /*except_arm=*/"reference");
  const auto judge_stages = [&](const std::string& name, std::int64_t from, std::int64_t to) {
    for (const std::vector<int>& pair : pairs(attempt.axes, attempt.context.world_size, from, to))
      judge_group(judgement, attempt, name, pair, /*same_count=*/false);
  };
  for (const order::Edge& edge : order::edges(stages, attempt.axes.integer("vpp")))
    judge_stages(concat("pp.", edge.from, ">", edge.to), edge.from, edge.to);
  if (shares_embedding(attempt.axes)) judge_stages("embd", 0, stages - 1);
  if (reduces_over_stages(attempt.axes))
    for (const std::vector<int>& group : stage_groups(attempt.axes, attempt.context.world_size)) {
      const bool fp32 = std::ranges::all_of(
          group, [&](int rank) { return compares_in_fp32(judgement, attempt.ranks[rank]); });
      judge_group(judgement, attempt, "pp", group, /*same_count=*/false,
                  fp32 && !attempt.axes.flag("clip_grad") ? "reference" : "");
    }
  // Ledgers that all ranks lack are equal, so each rank must have one.
  for (const RankFiles& files : attempt.ranks)
    for (const std::string_view arm : ledger_arms(attempt, judgement.expected()))
      if (!judgement.first<CollectivesLine>(files, arm))
        judgement.absent<CollectivesLine>(files, concat("of arm ", arm));
  return judgement.result(concat("equal in every group of ", attempt.ranks.size(), " ranks"),
                          "equal counts and digests in each group");
}

}  // namespace graphproof::checks::d25
