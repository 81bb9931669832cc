// D69: whether what the program copies from the host between two replays reaches anything. A static
// input that the loop never fills looks like any other constant, but the batch that was meant for
// it then lies on the device and nothing reads it.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d69 {
namespace {

// One batch may be brought to the device for nothing, such as the last one of a loader that fetches
// ahead. So many looks, at replays that are ever further apart, are the rule of the loop.
constexpr int kLooks = 3;

struct Looks {
  int clear = 0, all_unread = 0;
  std::int64_t copies = 0, unread_bytes = 0;
};

}  // namespace

record::CheckResult copies_read(WatchedJudgement& judgement, const WatchedJob& job) {
  std::int64_t read = 0;
  std::vector<std::pair<const JobProcess*, std::string>> unfollowed;
  for (const JobProcess& process : job.processes) {
    if (!process.has_graphs()) continue;
    bool confirmed = false;
    std::string unclear;  // the first look of which nothing can be said
    for (const Executable& one : executables(process)) {
      Looks looks;
      for (const auto& line : process.of<record::HostCopiesLine>()) {
        if (line.executable != one.number()) continue;
        if (line.unclear && unclear.empty())
          unclear = concat(": before launch ", line.launches, " of ", one.title(), ", ", line.why);
        if (line.unclear) continue;
        ++looks.clear;
        read += line.copies - line.unread;
        // Of several copies some may be for later, or for nothing, as parts of a batch that a model
        // does not use.
        if (line.unread < line.copies) continue;
        ++looks.all_unread;
        looks.copies += line.copies;
        looks.unread_bytes += line.unread_bytes;
      }
      if (looks.all_unread < looks.clear) confirmed = true;
      if (looks.clear == 0 || looks.all_unread < looks.clear) continue;
      if (looks.all_unread < kLooks) {
        judgement.unexercised(concat(process.title(), ": nothing read what was copied before ",
                                     looks.all_unread, " replays of ", one.title(), ", and ",
                                     kLooks, " such replays are the least that tells something"));
        continue;
      }
      judgement.defect(
          process,
          {.what = concat("before replays of ", one.title(),
                          ", the program copies data to the device that nothing reads"),
           .got = concat(looks.copies, " copies, ", looks.unread_bytes, " bytes, before ",
                         looks.all_unread, " of ", looks.clear, " replays that were looked at"),
           .want = "copies into memory that a graph, a kernel or another copy reads",
           .why = "the graph reads other memory, its static input of the capture, so each replay "
                  "computes with old data",
           .next = "copy the batch into the tensor that the capture read: "
                   "static_input.copy_(batch)"});
    }
    if (confirmed)
      judgement.confirm(process);
    else
      unfollowed.emplace_back(&process, unclear);
  }
  // The first excuse is the one that is shown, so one with a reason comes first.
  std::ranges::stable_partition(unfollowed, [](const auto& one) { return !one.second.empty(); });
  for (const auto& [process, unclear] : unfollowed)
    judgement.excuse(*process, concat("in the few intervals between replays that were looked at, "
                                      "no copy from the host could be followed",
                                      unclear));
  return judgement.result(
      concat(read, " copies from the host between replays were read by something"),
      "copies from the host that something reads");
}

}  // namespace graphproof::checks::watched::d69
