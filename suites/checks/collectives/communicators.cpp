// D29: communicators are made once for each group, before the arms run, and end with the case or
// stay for the next one. Each holds memory of the device, threads and descriptors.
#include <algorithm>
#include <string_view>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d29 {
namespace {

using record::CommunicatorsLine;
using record::GroupCommunicators;

constexpr std::string_view kWhy =
    "each holds memory of the device, threads and descriptors, which a long job runs out of";

/// One count of a group, and what it has to be.
struct Counted {
  const char* what;
  std::int64_t got, want;
  const char* want_why;
};

void judge(Judgement& judgement, int rank, const GroupCommunicators& group, bool kept) {
  const Counted counts[] = {
      {"communicators when the arms began", group.before, 1, "one for each group"},
      {"communicators made while the arms ran", group.made, 0, "that of the group existed already"},
      {"communicators ended while the arms ran", group.ended, 0, "graphs hold its collectives"},
      {"communicators after the teardown", group.left, kept ? 1 : 0,
       kept ? "the next case of the batch uses it" : "the teardown destroys it"}};
  for (const Counted& count : counts) {
    if (count.got == count.want) continue;
    judgement.defect({.rank = rank,
                      .step = std::nullopt,
                      .what = concat("group ", group.group, " of rank ", rank,
                                     " has a wrong number of ", count.what),
                      .got = concat(count.got, " over ", group.transport),
                      .want = concat(count.want, ": ", count.want_why),
                      .why = std::string(kWhy)});
    return;
  }
  judgement.confirm(rank);
}

/// Whether one of the counted groups has the name `group`.
bool counts(const CommunicatorsLine& line, std::string_view group) {
  return std::ranges::any_of(line.groups, [&](const GroupCommunicators& counted) {
    return counted.group.starts_with(concat(group, "="));
  });
}

}  // namespace

/// Each group of a rank has one communicator over each transport when the arms begin, none is made
/// or ended while they run, and none is left by the teardown, or one for the next case of the
/// batch. Every group in which the device executed collectives is counted.
record::CheckResult communicators(Judgement& judgement, const Attempt& attempt) {
  for (const RankFiles& files : attempt.ranks) {
    const auto* line = judgement.first<CommunicatorsLine>(files);
    if (line == nullptr) {
      judgement.absent<CommunicatorsLine>(files, "");
      continue;
    }
    for (const GroupCommunicators& group : line->groups)
      judge(judgement, files.rank, group, line->kept);
    for (const auto& executed : judgement.lines<record::ExecutedLine>(files))
      for (const record::ExecutedGroup& group : executed.groups)
        if (!counts(*line, group.group))
          judgement.defect(
              {.rank = files.rank,
               .step = std::nullopt,
               .what = concat("the communicators of group ", group.group, " of rank ", files.rank,
                              " are not counted"),
               .got = concat("counts of ", line->groups.size(), " groups"),
               .want = "counts of every group in which the device executed collectives",
               .why = "a communicator that is not counted may be lost unseen"});
  }
  return judgement.result(
      concat("one for each group, and none made or lost, on ", attempt.ranks.size(), " ranks"),
      "counts of communicators made and ended");
}

}  // namespace graphproof::checks::d29
