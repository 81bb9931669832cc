// D30, D31, D32: what memory does in the solo arms, where nobody else allocates. Allocators are
// deterministic, so their series must not move by a byte. What the operating system and the driver
// count moves in jumps that have nothing to do with the arm; there the trend is judged, and the
// eager arm says what is usual.
#include <algorithm>
#include <array>
#include <cassert>
#include <limits>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/detectors.h"
#include "suites/checks/attempt/judgement.h"
#include "suites/checks/memory/theil_sen.h"

namespace graphproof::checks {
namespace {

// The driver maps memory in pages of 2 MiB; less cannot be told apart by cudaMemGetInfo.
constexpr double kDevicePageBytes = 2.0 * 1024 * 1024;
// Linux updates a process's resident size in batches of up to 64 pages a thread (256 KiB), and
// glibc grows and trims its heap by 128 KiB at a time; a rank has four threads.
constexpr double kResidentJumpBytes = 1024.0 * 1024;
// A single jump of J in the middle of n points lifts the upper end of the interval to less than 3 J
// / n: theil_sen_test.
constexpr double kJumpWidth = 3;

constexpr std::array kSoloArms = {"solo_eager", "solo_graph"};

using record::CaptureLine;
using record::MemoryLine;

/// A count of bytes in a `memory` line; nothing where old evidence lacks it.
struct Quantity {
  std::string_view name;
  std::optional<std::int64_t> (*of)(const MemoryLine& line);
};
using Bytes = std::optional<std::int64_t>;
constexpr Quantity kAllocated{"allocated",
                              [](const MemoryLine& line) -> Bytes { return line.allocated; }};
constexpr Quantity kReserved{"reserved",
                             [](const MemoryLine& line) -> Bytes { return line.reserved; }};
constexpr Quantity kPool{"pool", [](const MemoryLine& line) -> Bytes { return line.pool; }};
constexpr Quantity kDevice{"device", [](const MemoryLine& line) { return line.device; }};
constexpr Quantity kResident{"resident",
                             [](const MemoryLine& line) -> Bytes { return line.resident; }};

const MemoryLine* look(Judgement& judgement, const RankFiles& files, std::string_view arm,
                       std::string_view when) {
  for (const MemoryLine* line : judgement.find<MemoryLine>(files, arm))
    if (line->when == when) return line;
  return nullptr;
}

// The second step after the capture is the first one in which nothing is made for the first time.
constexpr std::int64_t kSettlingSteps = 2;

std::vector<const MemoryLine*> steady(Judgement& judgement, const RankFiles& files,
                                      std::string_view arm) {
  std::vector<const MemoryLine*> lines;
  for (const MemoryLine* line : judgement.find<MemoryLine>(files, arm))
    if (line->when == "step" && line->step >= judgement.expected().first_replay + kSettlingSteps)
      lines.push_back(line);
  return lines;
}

/// Whether there is a look after each of the steady steps that the arm runs: growth may hide in a
/// gap, and after the last look.
bool whole(Judgement& judgement, const Attempt& attempt, const RankFiles& files,
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

// Dropless experts have as many tokens as are sent to them. A step with more than ever before takes
// a block for good, which a later one uses, so this count may rise now and then; what is kept shows
// in the bytes allocated.
bool may_rise(const Attempt& attempt, const Quantity& what) {
  return what.name == kReserved.name && attempt.axes.text("dispatch") == "dropless";
}

/// Of how many looks the count is higher than at the one before; every one of them must have it.
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

/// Of a count that every line must have, less a second one where that is given; nothing, and a
/// defect, where a line has none.
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
           .want = "bytes, of one step after the other",
           .why = "growth may hide in a gap"});
      return std::nullopt;
    }
    points.push_back({step, static_cast<double>(*value) - static_cast<double>(*explained)});
  }
  return theil_sen(points);
}

/// `without`: a count that another check judges and that is part of this one, or null.
record::CheckResult judge_trend(const Attempt& attempt, std::string_view check,
                                const Quantity& what, const Quantity* without, double jump_bytes) {
  Judgement judgement(check, attempt);
  if (!judgement.for_training_cases() || !judgement.for_graph_cases())
    return judgement.result("", "");
  if (what.name == kDevice.name && shared_gpus(attempt)) {
    judgement.not_applicable("ranks of this case shared GPUs, and the driver counts them all");
    return judgement.result("", "");
  }
  double highest = -std::numeric_limits<double>::infinity();
  for (const RankFiles& files : attempt.ranks) {
    const auto eager = steady(judgement, files, "solo_eager");
    const auto graph = steady(judgement, files, "solo_graph");
    if (!whole(judgement, attempt, files, "solo_eager", eager) ||
        !whole(judgement, attempt, files, "solo_graph", graph))
      continue;
    const auto usual = trend(judgement, files, eager, what, without),
               seen = trend(judgement, files, graph, what, without);
    if (!usual || !seen) continue;
    const double bound =
        std::max(0.0, usual->upper) + kJumpWidth * jump_bytes / static_cast<double>(graph.size());
    highest = std::max(highest, seen->upper);
    if (seen->upper <= bound) {
      judgement.saw(files.rank);
      continue;
    }
    judgement.defect({.rank = files.rank,
                      .step = graph.back()->step,
                      .what = concat("`", what.name, "` memory of arm solo_graph grows"),
                      .got = concat(seen->slope, " bytes a step, at most ", seen->upper,
                                    " (95 %), over ", graph.size(), " steps"),
                      .want = concat(bound, " at most: eager's ", usual->upper, " and one jump of ",
                                     jump_bytes, " bytes"),
                      .why = "a run of many steps ends out of memory"});
  }
  return judgement.result(
      concat("at most ", highest, " bytes a step on ", attempt.ranks.size(), " ranks"),
      "no trend beyond eager's");
}

}  // namespace

record::CheckResult allocator_series(const Attempt& attempt) {
  Judgement judgement("D31.allocator_series", attempt);
  if (!judgement.for_training_cases()) return judgement.result("", "");
  std::size_t steps = 0;
  for (const RankFiles& files : attempt.ranks) {
    for (const char* arm : kSoloArms) {
      if (!judgement.expected().graph && std::string_view(arm) == "solo_graph") continue;
      const auto lines = steady(judgement, files, arm);
      if (!whole(judgement, attempt, files, arm, lines)) continue;
      steps = lines.size();
      for (const Quantity& what : {kAllocated, kReserved, kPool}) {
        const Bytes first = what.of(*lines.front()), last = what.of(*lines.back());
        const auto rose = rises(lines, what);
        const std::size_t most = (lines.size() - 1) / 2;
        if (may_rise(attempt, what) ? rose && *rose <= most : first && first == last) {
          judgement.saw(files.rank);
          continue;
        }
        judgement.defect(
            {.rank = files.rank,
             .step = lines.back()->step,
             .what = concat("the allocator's `", what.name, "` bytes of arm ", arm,
                            " are not what they were"),
             .got = concat(shown(last), " bytes after the last step"),
             .want = concat(shown(first), ", as ", lines.size() - 1, " steps before",
                            may_rise(attempt, what)
                                ? concat("; or more, risen in ", most, " of them at most")
                                : ""),
             .why = "a step that keeps what it allocates ends a long run out of memory"});
      }
    }
  }
  return judgement.result(
      concat("the same bytes after ", steps, " steady steps on ", attempt.ranks.size(), " ranks"),
      "not a byte more");
}

record::CheckResult device_trend(const Attempt& attempt) {
  return judge_trend(attempt, "D31.device_trend", kDevice, &kReserved, kDevicePageBytes);
}

record::CheckResult resident_trend(const Attempt& attempt) {
  return judge_trend(attempt, "D31.resident_trend", kResident, nullptr, kResidentJumpBytes);
}

record::CheckResult pool_sharing(const Attempt& attempt) {
  Judgement judgement("D31.pool_sharing", attempt);
  if (!judgement.for_training_cases() || !judgement.for_graph_cases())
    return judgement.result("", "");
  const std::string asked = attempt.axes.text("pool");
  if (asked == "per_graph")
    judgement.not_applicable("every graph has a pool of its own (axis pool)");
  if (judgement.settled()) return judgement.result("", "");
  const std::int64_t for_training = asked == "single" ? 1 : judgement.expected().microbatches;
  for (const RankFiles& files : attempt.ranks) {
    for (const CaptureLine& capture : judgement.lines<CaptureLine>(files)) {
      const std::int64_t pools = capture.pools.value_or(0);
      // Validation has a pool of its own: its graph is launched between steps, in no order with
      // theirs.
      const std::int64_t allowed = for_training + (capture.graph == "validation" ? 1 : 0);
      if (pools >= 1 && pools <= allowed) {
        judgement.saw(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = std::nullopt,
           .what = concat("the graphs of arm ", capture.arm, " do not share their memory"),
           .got = concat(shown(capture.pools), " pools at the capture of ", capture.graph, ", ",
                         capture.pool_bytes, " bytes in this one"),
           .want = concat(allowed, " at most, as axis pool says: ", asked),
           .why = "every pool holds the largest step's temporaries again, so memory is a multiple "
                  "of one's"});
    }
  }
  return judgement.result(
      concat(for_training, " pool at most in every arm on ", attempt.ranks.size(), " ranks"),
      concat("pool ", asked));
}

record::CheckResult returned_after_flush(const Attempt& attempt) {
  Judgement judgement("D30.returned_after_flush", attempt);
  if (!judgement.for_training_cases() || !judgement.for_graph_cases())
    return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    const MemoryLine* before = look(judgement, files, "solo_graph", "before");
    const MemoryLine* after = look(judgement, files, "solo_graph", "returned");
    const MemoryLine* eager_before = look(judgement, files, "solo_eager", "before");
    const MemoryLine* eager_after = look(judgement, files, "solo_eager", "returned");
    if (!before || !after || !eager_before || !eager_after) {
      judgement.absent<MemoryLine>(files,
                                   "of a solo arm before it was built and after it was gone");
      continue;
    }
    if (!eager_before->device || !eager_after->device) {
      judgement.absent(
          files,
          "count of the device's bytes before arm solo_eager was built and after it was gone");
      continue;
    }
    // Repeating eager says how far the device's own count moves without any graph.
    const double spread = std::max(
        kDevicePageBytes, static_cast<double>(*eager_after->device - *eager_before->device));
    for (const Quantity& what : {kAllocated, kReserved, kDevice}) {
      const bool of_device = what.name == kDevice.name;
      if (of_device && shared_gpus(attempt)) continue;  // the peers' comes and goes too
      const Bytes was = what.of(*before), is_now = what.of(*after);
      const double slack = of_device ? spread : 0;
      if (was && is_now && static_cast<double>(*is_now - *was) <= slack) {
        judgement.saw(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = std::nullopt,
           .what =
               concat("`", what.name, "` memory did not come back when arm solo_graph was gone"),
           .got = concat(shown(is_now), " bytes after a flush collective and empty_cache"),
           .want = concat(shown(was), " at most, as before it was built",
                          slack > 0 ? concat(", within ", slack) : std::string()),
           .why =
               "a graph or what it holds is still alive; the next model starts with less memory"});
    }
  }
  return judgement.result(concat("all of it on ", attempt.ranks.size(), " ranks"),
                          "as before the arm was built");
}

record::CheckResult pools_released(const Attempt& attempt) {
  Judgement judgement("D32.pools_released", attempt);
  if (!judgement.for_training_cases() || !judgement.for_graph_cases())
    return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    const MemoryLine* before = look(judgement, files, "solo_graph", "before");
    const MemoryLine* after = look(judgement, files, "solo_graph", "returned");
    if (!before || !after) {
      judgement.absent<MemoryLine>(files,
                                   "of arm solo_graph before it was built and after it was gone");
      continue;
    }
    if (after->pool <= before->pool) {
      judgement.saw(files.rank);
      continue;
    }
    judgement.defect({.rank = files.rank,
                      .step = std::nullopt,
                      .what = "a graph pool of arm solo_graph outlives its graphs",
                      .got = concat(after->pool, " bytes in graph pools"),
                      .want = concat(before->pool, " at most, as before the arm was built"),
                      .why = "a pool that is never released is lost to everybody else"});
  }
  return judgement.result(concat("none left on ", attempt.ranks.size(), " ranks"),
                          "no segment of the arm's pools");
}

}  // namespace graphproof::checks
