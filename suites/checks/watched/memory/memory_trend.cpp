// D31 in a watched run: what a process holds does not grow from replay to replay. There is no eager
// arm to compare with, so only a trend that goes on until the end of the run and that is larger
// than what sound programs keep about themselves counts. Warm-up, captures and caches that fill and
// then stop are no trend.
#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/memory/theil_sen.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d31 {
namespace {

constexpr double kMiB = 1024.0 * 1024;
// A round has one replay of the graph that is replayed most often, and what comes with it: a
// training step, where that graph is replayed once in it.
// Only the second half of the run is judged, after the last graph was made, and it has to have this
// many rounds: the first ones fill caches, start threads and touch pages for the first time.
constexpr double kFewestRounds = 32;
// Fewer points make an interval that is nearly as wide as the range of all slopes, and its second
// half is judged on its own.
constexpr std::size_t kFewestPoints = 12;
static_assert(kFewestPoints / 2 >= kFewestTrendPoints);

/// What is judged, and what of it is sound.
struct Held {
  std::string_view what, series, unit;
  /// Growth over the judged rounds, by the lower end of the interval, from which on it is a leak.
  double least_growth = 0;
  double least_a_round = 0;
  std::string_view next;
};

// Losses, log lines and timings that a program keeps of each step are below a page a step, and
// allocators of the host grow by their arenas and by batches of pages of each thread: a few MiB.
constexpr Held kResident = {
    .what = "memory of the host",
    .series = "resident",
    .unit = "bytes",
    .least_growth = 16 * kMiB,
    .least_a_round = 4096,
    .next =
        "look for what each replay keeps on the host: batches, results copied with cpu(), "
        "pinned buffers that are made anew; a cache that is meant to fill needs a longer run"};
constexpr Held kHost = {.what = "host memory that the driver gave out",
                        .series = "host",
                        .unit = "bytes",
                        .least_growth = 16 * kMiB,
                        .least_a_round = 4096,
                        .next = "make pinned buffers once and use them again"};
// PyTorch takes memory from the driver in segments of 20 MiB and more, and three of them in the
// judged half may be those of a few unusual shapes.
constexpr Held kDevice = {
    .what = "memory of the device",
    .series = "device",
    .unit = "bytes",
    .least_growth = 64 * kMiB,
    .least_a_round = 4096,
    .next =
        "look for what each replay keeps on the device: outputs in a list, buffers that are "
        "allocated and not freed"};
constexpr Held kAllocated = {
    .what = "memory that PyTorch's allocator gave out",
    .series = "allocated",
    .unit = "bytes",
    .least_growth = 16 * kMiB,
    .least_a_round = 4096,
    .next =
        "look for tensors that each replay keeps: losses or outputs that are appended to a "
        "list without item() or cpu(), and clones of static buffers"};
// Logs and checkpoints open a few files now and then.
constexpr Held kDescriptors = {.what = "the number of open files",
                               .series = "descriptors",
                               .unit = "files",
                               .least_growth = 16,
                               .least_a_round = 0,
                               .next = "close what each replay opens: files, sockets, pipes"};

/// Where every judged process ended, for the pass.
struct Seen {
  double most = 0;
  std::string_view unit;
};

const record::MemorySeriesLine* series_of(const JobProcess& process, std::string_view what) {
  for (const auto& line : process.of<record::MemorySeriesLine>())
    if (line.what == what) return &line;
  return nullptr;
}

double rounds_a_launch(const JobProcess& process) {
  std::int64_t most = 0, all = 0;
  for (const auto& replays : process.of<record::ReplaysLine>()) {
    most = std::max(most, replays.launches);
    all += replays.launches;
  }
  return all == 0 ? 0 : static_cast<double>(most) / static_cast<double>(all);
}

/// The points of the second half, after the last graph was made, by rounds.
std::vector<SeriesPoint> judged_points(const JobProcess& process,
                                       const record::MemorySeriesLine& line) {
  double last_made = 0;
  for (const auto& made : process.of<record::ExecutableGraphLine>())
    last_made = std::max(last_made, made.seconds.value_or(0));
  const double rounds = rounds_a_launch(process);
  std::vector<SeriesPoint> points;
  for (std::size_t i = 0; i < line.launches.size(); ++i)
    if (2 * line.launches[i] >= line.launches.back() && line.seconds[i] > last_made)
      points.push_back(
          {static_cast<double>(line.launches[i]) * rounds, static_cast<double>(line.values[i])});
  return points;
}

void judge(WatchedJudgement& judgement, const JobProcess& process, const Held& held, Seen& seen) {
  const record::MemorySeriesLine* line = series_of(process, held.series);
  if (line == nullptr)
    return judgement.unexercised(concat(process.title(), ": ", held.what,
                                        " was not looked at again and again, or not by the probe "
                                        "that recorded this"));
  const std::vector<SeriesPoint> points = judged_points(process, *line);
  const double rounds = points.size() < 2 ? 0 : points.back().at - points.front().at;
  if (points.size() < kFewestPoints || rounds < kFewestRounds)
    return judgement.unexercised(
        concat(process.title(), ": ", static_cast<std::int64_t>(rounds),
               " rounds of replays in the second half of the run, after the last graph was made; a "
               "trend takes ",
               kFewestRounds));
  judgement.confirm(process);
  const Trend trend = theil_sen(points);
  const Trend tail = theil_sen(std::span(points).subspan(points.size() / 2));
  seen.most = std::max(seen.most, trend.lower);
  seen.unit = held.unit;
  if (trend.lower * rounds < held.least_growth || trend.lower < held.least_a_round ||
      tail.lower <= 0)
    return;
  judgement.defect(
      process, {.what = concat(held.what, " grows with the replays"),
                .got = concat(trend.slope, " ", held.unit, " a round of replays (", trend.lower,
                              " to ", trend.upper, ", 95 %), from ", points.front().value, " to ",
                              points.back().value, " over ", rounds, " rounds"),
                .want = "no trend in the second half of the run",
                .why = "a long run ends without it",
                .next = std::string(held.next)});
}

record::CheckResult judge_all(WatchedJudgement& judgement, const WatchedJob& job,
                              std::initializer_list<const Held*> all) {
  Seen seen;
  for (const JobProcess& process : job.processes) {
    if (!process.has_graphs()) continue;
    if (process.graph_launches() == 0) {
      judgement.excuse(process, "no graph was launched");
      continue;
    }
    for (const Held* held : all) judge(judgement, process, *held, seen);
  }
  return judgement.result(concat("at most ", seen.most, " ", seen.unit, " a round of replays"),
                          "no trend that goes on until the end");
}

}  // namespace

record::CheckResult resident_trend(WatchedJudgement& judgement, const WatchedJob& job) {
  return judge_all(judgement, job, {&kResident, &kHost});
}

record::CheckResult device_trend(WatchedJudgement& judgement, const WatchedJob& job) {
  return judge_all(judgement, job, {&kDevice});
}

record::CheckResult allocator_series(WatchedJudgement& judgement, const WatchedJob& job) {
  return judge_all(judgement, job, {&kAllocated});
}

record::CheckResult open_files(WatchedJudgement& judgement, const WatchedJob& job) {
  return judge_all(judgement, job, {&kDescriptors});
}

}  // namespace graphproof::checks::watched::d31
