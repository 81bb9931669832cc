// D62: updates of executable graphs. A graph whose update was left out or refused still holds the
// work of an earlier capture.
#include <string>
#include <string_view>
#include <vector>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d62 {
namespace {

using record::ExecUpdatesLine;

/// The runs of a case in which graphs are captured again.
std::vector<std::string_view> runs(const Axes& axes) {
  std::vector<std::string_view> runs;
  if (axes.integer("shape_buckets") > 0) runs.insert(runs.end(), {"buckets", "buckets_free_run"});
  if (axes.text("dispatch") == "paged_stash") runs.push_back("stash");
  if (axes.integer("soak_steps") > 0) runs.push_back("soak");
  return runs;
}

std::int64_t refusals(const ExecUpdatesLine& line) {
  std::int64_t count = 0;
  for (const auto& [reason, times] : line.refused) count += times;
  return count;
}

std::string reasons(const ExecUpdatesLine& line) {
  std::string text;
  for (const auto& [reason, times] : line.refused)
    text += concat(text.empty() ? "" : ", ", times, " with ", reason);
  return text;
}

/// Whether `line` is in order; otherwise reports a defect.
bool judge_line(Judgement& judgement, const RankFiles& files, const ExecUpdatesLine& line) {
  const std::int64_t updates = line.updates + refusals(line);
  const std::int64_t kept_clusters = line.kept_clusters.value_or(0);
  const std::string refused =
      concat(line.refused.empty() ? "none refused" : concat("refused: ", reasons(line)),
             kept_clusters > 0 ? concat(", ", kept_clusters, " left clusters as they were") : "");
  const auto report = [&](std::string what, std::string got, std::string want, std::string why) {
    judgement.defect({.rank = files.rank,
                      .step = line.step,
                      .what = concat(what, " in run ", line.run, " of arm ", line.arm),
                      .got = std::move(got),
                      .want = std::move(want),
                      .why = std::move(why)});
    return false;
  };
  if (line.stale_launches > 0)
    return report(
        "executable graphs were launched that an update had not reached",
        concat(line.stale_launches, " launches; ", line.updates, " updates, ", refused),
        "an update that succeeded ahead of the launch, or a new instantiation after one "
        "that was refused or that left thread block clusters as they were",
        "the executable graph still holds the old work and the old addresses, or launches "
        "new kernels in the clusters of the old ones");
  if (line.given_up_in_flight > 0)
    return report("executable graphs were kept for an update while the device ran them",
                  concat(line.given_up_in_flight, " of ", updates, " updates"),
                  "0: wait for the last replay first",
                  "the memory of a running replay is given to the graph that is captured next");
  if (line.captures - updates > line.most_alive)
    return report("captures did not update the executable graphs that were there",
                  concat(line.captures, " captures and ", updates, " updates, with ",
                         line.most_alive, " graphs at most at the same time"),
                  concat(line.captures - line.most_alive, " updates at least"),
                  "the case does not run what it says");
  return true;
}

}  // namespace

/// Every capture took an executable graph of an earlier one where there was one, and updated it.
/// Nothing was launched that the update had not reached: where the device refused it, or kept the
/// thread block clusters of kernels, the graph was instantiated. No executable graph still ran when
/// it was kept for the update. Unexercised if a run has no update, or if none of a long job
/// succeeded, whose graphs are the same in every cycle; other lengths and larger buffers may have
/// other nodes, which a device refuses.
record::CheckResult exec_update(Judgement& judgement, const Attempt& attempt) {
  std::int64_t updates = 0;
  std::string refused;
  for (const RankFiles& files : attempt.ranks)
    for (const std::string_view run : runs(attempt.axes)) {
      const ExecUpdatesLine* last = nullptr;
      bool sound = true;
      for (const ExecUpdatesLine& line : judgement.lines<ExecUpdatesLine>(files)) {
        if (line.run != run) continue;
        last = &line;
        sound = sound && judge_line(judgement, files, line);
      }
      if (!last) {
        judgement.absent<ExecUpdatesLine>(files, concat("of run ", run));
      } else if (sound && last->updates == 0 && (last->refused.empty() || run == "soak")) {
        judgement.unexercised(
            concat("on rank ", files.rank, " no update of run ", run, " succeeded",
                   last->refused.empty() ? "" : concat("; refused: ", reasons(*last))));
      } else if (sound) {
        judgement.confirm(files.rank);
        updates += last->updates;
        if (!last->refused.empty()) refused = concat("; refused: ", reasons(*last));
      }
    }
  return judgement.result(
      concat(updates, " updates on ", attempt.ranks.size(), " ranks", refused),
      "an update, or a new instantiation where it is refused, ahead of every launch");
}

}  // namespace graphproof::checks::d62
