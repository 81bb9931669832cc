// D31: memory and handles do not grow in the solo arms and in the long job, during which nothing
// else allocates. The allocator is deterministic, so its counts must be equal to the byte. The
// counts of the operating system and the driver change in jumps that other things cause; for them
// the trend is judged, relative to that of the eager arm. The more steps an arm has, the less one
// jump explains, so the long job shows losses that are far smaller.
#include <algorithm>
#include <cassert>
#include <limits>
#include <map>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/foreign_memory.h"
#include "suites/checks/memory/quantity.h"
#include "suites/checks/memory/theil_sen.h"
#include "workloads/soak/soak_plan.h"

namespace graphproof::checks::d31 {
namespace {

using record::MemoryLine;

// Linux updates the resident size of a process in batches of up to 64 pages (256 KiB) for each
// thread, and glibc grows and trims its heap by 128 KiB at a time. A rank has four threads.
constexpr double kResidentJumpBytes = 1024.0 * 1024;
// malloc counts to the byte, and what a step writes down about itself stays below a page.
constexpr double kHeapJumpBytes = 4096;
// A single jump of J in the middle of n points raises the upper end of the interval to less than
// 3 J / n (theil_sen_test.cpp).
constexpr double kJumpWidth = 3;

// The second step after the capture is the first one in which nothing is set up.
constexpr std::int64_t kSettlingSteps = 2;

/// Two arms of which memory is read after the same steps, when nothing is set up any more. `same`:
/// after this one of them the allocator has the same bytes as after the last.
struct MeasuredArms {
  const char *eager, *graph;
  std::vector<std::int64_t> steps;
  std::size_t same;
};

MeasuredArms solo_arms(Judgement& judgement, const Attempt& attempt) {
  MeasuredArms arms{"solo_eager", "solo_graph", {}, 0};
  for (std::int64_t step = judgement.expected().first_replay + kSettlingSteps;
       step < solo_steps(attempt, judgement.expected()); ++step)
    arms.steps.push_back(step);
  assert(arms.steps.size() >= kFewestTrendPoints);
  return arms;
}

/// The long job. With changing lengths, memory depends on the place in the cycle.
MeasuredArms soak_arms(const Attempt& attempt) {
  return {"soak_eager", "soak_graph", soak::Plan(attempt.axes.integer("soak_steps")).judged_steps(),
          soak::kSamples - 1};
}

std::vector<MeasuredArms> measured_arms(Judgement& judgement, const Attempt& attempt) {
  std::vector<MeasuredArms> all{solo_arms(judgement, attempt)};
  if (attempt.axes.integer("soak_steps") > 0) all.push_back(soak_arms(attempt));
  return all;
}

/// The lines of an arm after these steps and any later one. Nothing, and a defect, if one is
/// absent: growth may hide in a gap, and after the last line.
std::optional<std::vector<const MemoryLine*>> steady(Judgement& judgement, const RankFiles& files,
                                                     std::string_view arm,
                                                     const std::vector<std::int64_t>& steps) {
  std::vector<const MemoryLine*> lines;
  for (const MemoryLine* line : judgement.find<MemoryLine>(files, arm))
    if (line->when == "step" && line->step >= steps.front()) lines.push_back(line);
  for (const std::int64_t step : steps) {
    if (std::ranges::any_of(lines, [&](const MemoryLine* line) { return line->step == step; }))
      continue;
    judgement.absent<MemoryLine>(files, concat("of arm ", arm), step);
    return std::nullopt;
  }
  return lines;
}

/// Whether a count may rise sometimes. Dropless experts compute as many tokens as are sent to them,
/// and a step with more tokens than any step before makes the allocator reserve another block,
/// which later steps reuse. PyTorch's process groups keep what they send until their stream has
/// passed it, and so does the allocator with what the stream of overlapped shared experts reads, so
/// that a step may find a block still in use that the step before had back. Memory that a step does
/// not free shows in the allocated bytes.
bool may_rise(const Attempt& attempt, const Quantity& what) {
  return what.name == kReserved.name &&
         (attempt.axes.text("dispatch") == "dropless" ||
          attempt.axes.flag("shared_expert_overlap") ||
          (attempt.axes.text("comm") == "c10d" && attempt.context.world_size > 1));
}

/// Whether a count is another one after each step. The modules of a real program keep tensors of
/// the last microbatch, and those of dropless experts are as long as its tokens are many.
bool varies(const Attempt& attempt, const Quantity& what) {
  return what.name == kAllocated.name && attempt.axes.text("dispatch") == "dropless" &&
         attempt.axes.subject() != "reference";
}

/// The largest count ahead of the last line; nothing if a line lacks it.
Bytes most_before_last(const std::vector<const MemoryLine*>& lines, const Quantity& what) {
  std::int64_t most = 0;
  for (const MemoryLine* line : lines) {
    const Bytes bytes = what.of(*line);
    if (!bytes) return std::nullopt;
    if (line != lines.back()) most = std::max(most, *bytes);
  }
  return most;
}

/// The number of lines in which the count is higher than in the line before; nothing if one lacks
/// the count.
std::optional<std::size_t> rises(const std::vector<const MemoryLine*>& lines,
                                 const Quantity& what) {
  std::size_t count = 0;
  Bytes before;
  for (const MemoryLine* line : lines) {
    const Bytes bytes = what.of(*line);
    if (!bytes) return std::nullopt;
    count += before && *bytes > *before;
    before = bytes;
  }
  return count;
}

/// What is judged of a count. `without`: a part of it that another check judges, or null. `jump`:
/// by how much it may rise once for reasons that are no trend. `end`: the end of the interval of
/// the graph arm that is judged. `one_rise`: whether the largest rise is left out of the series.
/// `cycle_steps`: if not 0, what is gained from one cycle of this many steps to the next is left
/// out, and only what the replays within each cycle gain is judged.
struct Judged {
  Quantity what;
  const Quantity* without;
  double jump;
  double Trend::* end = &Trend::upper;
  std::string_view unit = "bytes";
  bool one_rise = false;
  std::int64_t cycle_steps = 0;
};

/// Takes the largest rise from a point to the next one away from all points behind it.
void leave_out_largest_rise(std::vector<SeriesPoint>& points) {
  double largest = 0;
  std::size_t behind = points.size();
  for (std::size_t i = 1; i < points.size(); ++i) {
    const double rise = points[i].value - points[i - 1].value;
    if (rise <= largest) continue;
    largest = rise;
    behind = i;
  }
  for (std::size_t i = behind; i < points.size(); ++i) points[i].value -= largest;
}

/// Joins the cycles of a series, each without its largest rise: it begins one step behind the one
/// before, at its value. A table that grows once in every cycle is no trend of its replays.
std::vector<SeriesPoint> joined(const std::vector<SeriesPoint>& points, std::int64_t cycle_steps) {
  std::map<std::int64_t, std::vector<SeriesPoint>> cycles;
  for (const SeriesPoint& point : points)
    cycles[static_cast<std::int64_t>(point.at) / cycle_steps].push_back(point);
  std::vector<SeriesPoint> all;
  for (auto& [number, cycle] : cycles) {
    leave_out_largest_rise(cycle);
    const SeriesPoint from = all.empty() ? SeriesPoint{-1, 0} : all.back(), first = cycle.front();
    for (const SeriesPoint& point : cycle)
      all.push_back({from.at + 1 + point.at - first.at, from.value + point.value - first.value});
  }
  return all;
}

/// The trend of a count, and over how many steps. Nothing, and a defect, if a line lacks it.
struct TrendOfSteps {
  Trend trend;
  std::int64_t steps = 0;
};
std::optional<TrendOfSteps> trend(Judgement& judgement, const RankFiles& files,
                                  const std::vector<const MemoryLine*>& lines,
                                  const Judged& judged) {
  const Quantity& what = judged.what;
  std::vector<SeriesPoint> points;
  for (const MemoryLine* line : lines) {
    const Bytes value = what.of(*line), explained = judged.without ? judged.without->of(*line) : 0;
    const auto step = static_cast<double>(line->step);
    if (!value || !explained || !(points.empty() || step > points.back().at)) {
      judgement.defect(
          {.rank = files.rank,
           .step = line->step,
           .what = concat("the memory series `", what.name, "` of arm ", line->arm, " has a gap"),
           .got = shown(value),
           .want = "a number of bytes for each step, in the order of steps",
           .why = "growth may hide in a gap"});
      return std::nullopt;
    }
    points.push_back({step, static_cast<double>(*value) - static_cast<double>(*explained)});
  }
  if (judged.one_rise) leave_out_largest_rise(points);
  if (judged.cycle_steps > 0) points = joined(points, judged.cycle_steps);
  return TrendOfSteps{theil_sen(points),
                      static_cast<std::int64_t>(points.back().at - points.front().at) + 1};
}

/// Judges `arms` on one rank. Returns the end of the interval, unless evidence is missing.
std::optional<double> judge_arms(Judgement& judgement, const RankFiles& files,
                                 const MeasuredArms& arms, const Judged& judged) {
  const auto eager = steady(judgement, files, arms.eager, arms.steps),
             graph = steady(judgement, files, arms.graph, arms.steps);
  if (!eager || !graph) return std::nullopt;
  const auto usual = trend(judgement, files, *eager, judged),
             seen = trend(judgement, files, *graph, judged);
  if (!usual || !seen) return std::nullopt;
  const auto& [growth, steps] = *seen;
  const double bound =
      std::max(0.0, usual->trend.upper) + kJumpWidth * judged.jump / static_cast<double>(steps);
  if (growth.*judged.end <= bound) {
    judgement.confirm(files.rank);
  } else {
    judgement.defect(
        {.rank = files.rank,
         .step = graph->back()->step,
         .what = concat("`", judged.what.name, judged.unit == "bytes" ? "` memory" : "`",
                        " of arm ", arms.graph, " grows"),
         .got = concat(growth.slope, " ", judged.unit, " a step, ", growth.lower, " to ",
                       growth.upper, " (95 %), over ", steps, " steps"),
         .want = concat(bound, " at most: eager's ", usual->trend.upper, " and one jump of ",
                        judged.jump, " ", judged.unit),
         .why = "a long run ends without them"});
  }
  return growth.*judged.end;
}

record::CheckResult judge_trend(Judgement& judgement, const Attempt& attempt,
                                const std::vector<MeasuredArms>& all, const Judged& judged) {
  if (!judgement.has_replays()) return judgement.result("", "");
  if (judged.what.name == kDevice.name) {
    if (const std::string foreign = foreign_memory(attempt); !foreign.empty()) {
      judgement.not_applicable(foreign);
      return judgement.result("", "");
    }
  }
  std::string highest;
  for (const MeasuredArms& arms : all) {
    double most = -std::numeric_limits<double>::infinity();
    for (const RankFiles& files : attempt.ranks)
      most = std::max(most, judge_arms(judgement, files, arms, judged).value_or(most));
    highest += concat(highest.empty() ? "" : ", ", most, " in arm ", arms.graph);
  }
  return judgement.result(concat("at most ", highest, " (", judged.unit, " a step, on ",
                                 attempt.ranks.size(), " ranks)"),
                          "no trend beyond eager's");
}

}  // namespace

/// The allocator has the same bytes after the last steady step of each arm as after the first, or
/// in the long job as after the same place of its first judged cycle. Where may_rise() says so, the
/// reserved bytes may rise in at most half of the steps; where varies() says so, the allocated
/// bytes after the last step are no more than after some step before.
record::CheckResult allocator_series(Judgement& judgement, const Attempt& attempt) {
  std::size_t steps = 0;
  for (const MeasuredArms& arms : measured_arms(judgement, attempt)) {
    for (const RankFiles& files : attempt.ranks) {
      for (const char* arm : {arms.eager, arms.graph}) {
        if (!judgement.expected().graph && arm == arms.graph) continue;
        const auto lines = steady(judgement, files, arm, arms.steps);
        if (!lines) continue;
        steps = lines->size();
        for (const Quantity& what : {kAllocated, kReserved, kPool}) {
          const Bytes first = what.of(*lines->at(arms.same)), last = what.of(*lines->back());
          const auto rose = rises(*lines, what);
          const std::size_t most_rises = (lines->size() - 1) / 2;
          const bool steady_count = may_rise(attempt, what) ? rose && *rose <= most_rises
                                    : varies(attempt, what)
                                        ? last && last <= most_before_last(*lines, what)
                                        : first && first == last;
          if (steady_count) {
            judgement.confirm(files.rank);
            continue;
          }
          judgement.defect(
              {.rank = files.rank,
               .step = lines->back()->step,
               .what = concat("the allocator's `", what.name, "` bytes of arm ", arm, " changed"),
               .got = concat(shown(last), " bytes after the last step"),
               .want = varies(attempt, what)
                           ? concat(shown(most_before_last(*lines, what)),
                                    " at most, as after a step before")
                           : concat(shown(first), ", as ", lines->size() - 1 - arms.same,
                                    " steps before",
                                    may_rise(attempt, what) ? concat("; or more, risen in ",
                                                                     most_rises, " of them at most")
                                                            : ""),
               .why = "if each step keeps memory, a long run ends without memory"});
        }
      }
    }
  }
  return judgement.result(
      concat("the same bytes after ", steps, " steady steps on ", attempt.ranks.size(), " ranks"),
      "no difference of a byte");
}

/// The upper end of the Theil-Sen interval of a graph arm is at most the eager arm's plus what one
/// jump explains. The series is the bytes used on the device, less those that the allocator
/// reserved.
record::CheckResult device_trend(Judgement& judgement, const Attempt& attempt) {
  return judge_trend(judgement, attempt, measured_arms(judgement, attempt),
                     {.what = kDevice, .without = &kReserved, .jump = kDevicePageBytes});
}

/// The same as device_trend for the resident bytes of the process, without their largest rise: a
/// block that a step needs for a while, and for which the heap has no hole, makes it larger once by
/// its size. What grows in every step rises as much without one of its rises.
record::CheckResult resident_trend(Judgement& judgement, const Attempt& attempt) {
  return judge_trend(
      judgement, attempt, measured_arms(judgement, attempt),
      {.what = kResident, .without = nullptr, .jump = kResidentJumpBytes, .one_rise = true});
}

/// The lower end of the interval of the bytes that malloc has given out is at most the eager arm's
/// upper end and a little more. It shows a loss of a few pages in every replay; the resident bytes
/// show only larger ones. The upper end would rise with a table that grows by megabytes in one
/// step, as tables of dropless experts do.
record::CheckResult heap_trend(Judgement& judgement, const Attempt& attempt) {
  if (attempt.context.device == "cuda") {
    judgement.not_applicable(
        "on GPUs the driver and NCCL keep host memory in the same heap, as much as they like");
    return judgement.result("", "");
  }
  return judge_trend(
      judgement, attempt, measured_arms(judgement, attempt),
      {.what = kHeap, .without = nullptr, .jump = kHeapJumpBytes, .end = &Trend::lower});
}

/// The same of the replays of the long job alone, also on GPUs: what a cycle gains before its first
/// sample is left out, because a driver keeps memory of this heap for every capture
/// (docs/benchmarks/soak.md), and so is the largest rise between two samples of a cycle.
record::CheckResult heap_of_replays(Judgement& judgement, const Attempt& attempt) {
  return judge_trend(judgement, attempt, {soak_arms(attempt)},
                     {.what = kHeap,
                      .without = nullptr,
                      .jump = kHeapJumpBytes,
                      .end = &Trend::lower,
                      .cycle_steps = soak::Plan(attempt.axes.integer("soak_steps")).cycle_steps()});
}

/// The upper end of the interval of the threads of the process is at most the eager job's, plus one
/// thread that a library may start when it is used.
record::CheckResult threads(Judgement& judgement, const Attempt& attempt) {
  return judge_trend(judgement, attempt, {soak_arms(attempt)},
                     {.what = kThreads, .without = nullptr, .jump = 1, .unit = "threads"});
}

/// The same of the open descriptors of the process.
record::CheckResult open_files(Judgement& judgement, const Attempt& attempt) {
  return judge_trend(judgement, attempt, {soak_arms(attempt)},
                     {.what = kFiles, .without = nullptr, .jump = 1, .unit = "descriptors"});
}

}  // namespace graphproof::checks::d31
