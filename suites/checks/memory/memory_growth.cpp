// D31: memory does not grow in the solo arms, during which nothing else allocates. The allocator is
// deterministic, so its counts must be equal to the byte. The counts of the operating system and
// the driver change in jumps that other things cause; for them the trend is judged, relative to
// that of the eager arm.
#include <algorithm>
#include <array>
#include <cassert>
#include <limits>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/foreign_memory.h"
#include "suites/checks/memory/quantity.h"
#include "suites/checks/memory/theil_sen.h"

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

constexpr std::array kSoloArms = {"solo_eager", "solo_graph"};

// The second step after the capture is the first one in which nothing is set up.
constexpr std::int64_t kSettlingSteps = 2;

std::vector<const MemoryLine*> steady(Judgement& judgement, const RankFiles& files,
                                      std::string_view arm) {
  std::vector<const MemoryLine*> lines;
  for (const MemoryLine* line : judgement.find<MemoryLine>(files, arm))
    if (line->when == "step" && line->step >= judgement.expected().first_replay + kSettlingSteps)
      lines.push_back(line);
  return lines;
}

/// Whether `lines` has one for each steady step that the arm runs. Growth may hide in a gap, and
/// after the last line.
bool complete(Judgement& judgement, const Attempt& attempt, const RankFiles& files,
              std::string_view arm, const std::vector<const MemoryLine*>& lines) {
  const std::int64_t first = judgement.expected().first_replay + kSettlingSteps,
                     end = solo_steps(attempt, judgement.expected());
  assert(end - first >= kFewestTrendPoints);
  for (std::int64_t step = first; step < end; ++step) {
    if (std::ranges::any_of(lines, [&](const MemoryLine* line) { return line->step == step; }))
      continue;
    judgement.absent<MemoryLine>(files, concat("of arm ", arm), step);
    return false;
  }
  return true;
}

/// Whether a count may rise sometimes. Dropless experts compute as many tokens as are sent to them,
/// and a step with more tokens than any step before makes the allocator reserve another block,
/// which later steps reuse. Memory that a step does not free shows in the allocated bytes.
bool may_rise(const Attempt& attempt, const Quantity& what) {
  return what.name == kReserved.name && attempt.axes.text("dispatch") == "dropless";
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

/// The trend of a count, less the count `without` if that is not null. Nothing, and a defect, if a
/// line lacks one of them.
std::optional<Trend> trend(Judgement& judgement, const RankFiles& files,
                           const std::vector<const MemoryLine*>& lines, const Quantity& what,
                           const Quantity* without) {
  std::vector<SeriesPoint> points;
  for (const MemoryLine* line : lines) {
    const Bytes value = what.of(*line), explained = without ? without->of(*line) : 0;
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
  return theil_sen(points);
}

/// `without`: a part of this count that another check judges, or null. `end`: the end of the
/// interval of solo_graph that is judged.
record::CheckResult judge_trend(Judgement& judgement, const Attempt& attempt, const Quantity& what,
                                const Quantity* without, double jump_bytes,
                                double Trend::* end = &Trend::upper) {
  if (!judgement.has_replays()) return judgement.result("", "");
  if (what.name == kDevice.name) {
    if (const std::string foreign = foreign_memory(attempt); !foreign.empty()) {
      judgement.not_applicable(foreign);
      return judgement.result("", "");
    }
  }
  double highest = -std::numeric_limits<double>::infinity();
  for (const RankFiles& files : attempt.ranks) {
    const auto eager = steady(judgement, files, "solo_eager");
    const auto graph = steady(judgement, files, "solo_graph");
    if (!complete(judgement, attempt, files, "solo_eager", eager) ||
        !complete(judgement, attempt, files, "solo_graph", graph))
      continue;
    const auto usual = trend(judgement, files, eager, what, without),
               seen = trend(judgement, files, graph, what, without);
    if (!usual || !seen) continue;
    const double bound =
        std::max(0.0, usual->upper) + kJumpWidth * jump_bytes / static_cast<double>(graph.size());
    highest = std::max(highest, *seen.*end);
    if (*seen.*end <= bound) {
      judgement.confirm(files.rank);
      continue;
    }
    judgement.defect({.rank = files.rank,
                      .step = graph.back()->step,
                      .what = concat("`", what.name, "` memory of arm solo_graph grows"),
                      .got = concat(seen->slope, " bytes a step, ", seen->lower, " to ",
                                    seen->upper, " (95 %), over ", graph.size(), " steps"),
                      .want = concat(bound, " at most: eager's ", usual->upper, " and one jump of ",
                                     jump_bytes, " bytes"),
                      .why = "a long run ends without memory"});
  }
  return judgement.result(
      concat("at most ", highest, " bytes a step on ", attempt.ranks.size(), " ranks"),
      "no trend beyond eager's");
}

}  // namespace

/// The allocator has the same bytes after the last steady step of each solo arm as after the first.
/// With dropless experts, whose shapes vary, the reserved bytes may rise in at most half of the
/// steps.
record::CheckResult allocator_series(Judgement& judgement, const Attempt& attempt) {
  std::size_t steps = 0;
  for (const RankFiles& files : attempt.ranks) {
    for (const char* arm : kSoloArms) {
      if (!judgement.expected().graph && std::string_view(arm) == "solo_graph") continue;
      const auto lines = steady(judgement, files, arm);
      if (!complete(judgement, attempt, files, arm, lines)) continue;
      steps = lines.size();
      for (const Quantity& what : {kAllocated, kReserved, kPool}) {
        const Bytes first = what.of(*lines.front()), last = what.of(*lines.back());
        const auto rose = rises(lines, what);
        const std::size_t most = (lines.size() - 1) / 2;
        if (may_rise(attempt, what) ? rose && *rose <= most : first && first == last) {
          judgement.confirm(files.rank);
          continue;
        }
        judgement.defect(
            {.rank = files.rank,
             .step = lines.back()->step,
             .what = concat("the allocator's `", what.name, "` bytes of arm ", arm, " changed"),
             .got = concat(shown(last), " bytes after the last step"),
             .want = concat(shown(first), ", as ", lines.size() - 1, " steps before",
                            may_rise(attempt, what)
                                ? concat("; or more, risen in ", most, " of them at most")
                                : ""),
             .why = "if each step keeps memory, a long run ends without memory"});
      }
    }
  }
  return judgement.result(
      concat("the same bytes after ", steps, " steady steps on ", attempt.ranks.size(), " ranks"),
      "no difference of a byte");
}

/// The upper end of the Theil-Sen interval of solo_graph is at most solo_eager's plus what one jump
/// explains. The series is the bytes used on the device, less those that the allocator reserved.
record::CheckResult device_trend(Judgement& judgement, const Attempt& attempt) {
  return judge_trend(judgement, attempt, kDevice, &kReserved, kDevicePageBytes);
}

/// The same as device_trend for the resident bytes of the process.
record::CheckResult resident_trend(Judgement& judgement, const Attempt& attempt) {
  return judge_trend(judgement, attempt, kResident, nullptr, kResidentJumpBytes);
}

/// The lower end of the interval of the bytes that malloc has given out is at most solo_eager's
/// upper end and a little more. It shows a loss of a few pages in every replay; the resident bytes
/// show only larger ones. The upper end would rise with a table that grows by megabytes in one
/// step, as tables of dropless experts do.
record::CheckResult heap_trend(Judgement& judgement, const Attempt& attempt) {
  if (attempt.context.device == "cuda") {
    judgement.not_applicable(
        "on GPUs the driver and NCCL keep host memory in the same heap, as much as they like");
    return judgement.result("", "");
  }
  return judge_trend(judgement, attempt, kHeap, nullptr, kHeapJumpBytes, &Trend::lower);
}

}  // namespace graphproof::checks::d31
