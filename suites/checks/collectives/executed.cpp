// D23: how far the devices are in their collectives. A replay issues nothing on the host, so a hang
// inside it is seen only here.
#include <map>
#include <utility>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d23 {
namespace {

using record::ExecutedGroup;
using record::ExecutedLine;
using record::Stall;

std::string listed(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += concat(text.empty() ? "" : ", ", rank);
  return text;
}

std::string counted(const record::CollectiveProgress& progress) {
  std::string text;
  for (const record::GroupProgress& group : progress)
    text += concat(text.empty() ? "" : ", ", group.group, " ", group.begun, " begun and ",
                   group.ended, " ended");
  return text;
}

/// "rank 0 in all_reduce number 17 of group tp": the ranks inside collectives that rank `stuck` has
/// not begun. Neighbours on both sides of a pipeline stage may wait in different ones.
std::string waits_for(int stuck, const std::vector<record::CollectiveProgress>& ranks) {
  std::string text;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for (const record::GroupProgress& group : ranks[rank])
      for (const record::GroupProgress& own : ranks.at(static_cast<std::size_t>(stuck)))
        if (own.group == group.group && own.first_rank == group.first_rank &&
            own.begun < group.begun && group.ended < group.begun)
          text += concat(text.empty() ? "" : ", ", "rank ", rank, " in ",
                         record::describe({group.sequence, group.op, group.group}));
  return text;
}

/// The last counts of all ranks, which the launcher kept.
void judge_hang(Judgement& judgement, const Attempt& attempt) {
  std::vector<record::CollectiveProgress> ranks(attempt.ranks.size());
  for (const record::RankContext& facts : attempt.context.ranks) {
    if (!facts.progress) {
      judgement.unexercised(
          concat("the launcher saw no count of collectives of rank ", facts.rank));
      return;
    }
    ranks.at(static_cast<std::size_t>(facts.rank)) = *facts.progress;
    judgement.confirm(facts.rank);
  }
  const auto stall = record::stall_of(ranks);
  if (!stall) {
    judgement.unexercised(
        "no rank was inside a collective, or behind another one, when the ranks hung");
    return;
  }
  const std::string collective = record::describe(stall->collective),
                    rank = concat("rank ", stall->rank);
  Defect defect{.rank = stall->rank,
                .step = std::nullopt,
                .what = {},
                .got = concat(rank, ": ", counted(ranks.at(static_cast<std::size_t>(stall->rank)))),
                .want = {},
                .why = {}};
  switch (stall->kind) {
    case Stall::Kind::not_begun:
      defect.what = concat(rank, " is stuck ahead of ", collective);
      defect.want = stall->waiting.empty()
                        ? "that its device begins the transfer, which its sender has ended alone"
                        : concat("that its device begins what others wait in (",
                                 waits_for(stall->rank, ranks),
                                 "); ranks that get no further: ", listed(stall->waiting));
      defect.why =
          "what its device runs before this collective does not end, or was never launched";
      break;
    case Stall::Kind::inside:
      defect.what = concat(rank, " is stuck in ", collective);
      defect.want = "that the collective ends: every rank of its group has begun it";
      defect.why =
          "the collective itself does not end, so the cause is in the library or between "
          "the devices";
      break;
    case Stall::Kind::in_a_circle:
      defect.what = concat(rank, " is stuck in ", collective, ", and ranks wait in a circle");
      defect.want = "the same order of collectives on all ranks of the circle";
      defect.why = "each of them is in a collective that another one would begin later";
      break;
  }
  judgement.defect(std::move(defect));
}

}  // namespace

/// Without a hang: before the teardown the devices of every group had begun equally many
/// collectives, at least one, and had ended all of them. After a hang: the rank that is stuck, by
/// record::stall_of(), and the collective that it has not begun or in which it is.
record::CheckResult executed(Judgement& judgement, const Attempt& attempt) {
  if (attempt.context.hang) {
    judge_hang(judgement, attempt);
    return judgement.result("", "");
  }
  // By group: the first rank that counted.
  std::map<std::pair<std::string, std::int64_t>, std::pair<int, ExecutedGroup>> first;
  for (const RankFiles& files : attempt.ranks) {
    const ExecutedLine* line = judgement.first<ExecutedLine>(files);
    if (line == nullptr) {
      judgement.absent<ExecutedLine>(files, "");
      continue;
    }
    std::int64_t all = 0;
    for (const ExecutedGroup& group : line->groups) {
      const auto& [rank, other] =
          first.try_emplace({group.group, group.first_rank}, files.rank, group).first->second;
      all += group.begun;
      if (group.begun == other.begun && group.ended == group.begun) continue;
      judgement.defect(
          {.rank = files.rank,
           .step = std::nullopt,
           .what = group.ended == group.begun
                       ? concat("the devices of ranks ", rank, " and ", files.rank,
                                " executed different numbers of collectives of group ", group.group)
                       : concat("the device of rank ", files.rank,
                                " did not end all collectives of group ", group.group),
           .got = concat(group.begun, " begun, ", group.ended, " ended"),
           .want = concat(other.begun, " begun, as rank ", rank, ", and all of them ended"),
           .why = "the collectives of the next step meet those of another one"});
    }
    if (all > 0) {
      judgement.confirm(files.rank);
    } else {
      judgement.absent(files, "count of an executed collective");
    }
  }
  return judgement.result(
      concat("the same collectives on the devices of ", attempt.ranks.size(), " ranks, all ended"),
      "equally many collectives on all devices of a group, and none that is still under way");
}

}  // namespace graphproof::checks::d23
