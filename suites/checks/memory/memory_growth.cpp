// D31: what memory does in the solo arms, where nothing else allocates. Allocators are
// deterministic, so their series must not move by a byte. The counts of the operating system and
// the driver move in jumps that have nothing to do with the arm; there the trend is judged, and
// the eager arm shows what is usual.
#include <algorithm>
#include <array>
#include <cassert>
#include <limits>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/memory/quantity.h"
#include "suites/checks/memory/theil_sen.h"

namespace graphproof::checks::d31 {
namespace {

using record::MemoryLine;

// Linux updates a process's resident size in batches of up to 64 pages a thread (256 KiB), and
// glibc grows and trims its heap by 128 KiB at a time; a rank has four threads.
constexpr double kResidentJumpBytes = 1024.0 * 1024;
// A single jump of J in the middle of n points lifts the upper end of the interval to less than 3 J
// / n: theil_sen_test.
constexpr double kJumpWidth = 3;

constexpr std::array kSoloArms = {"solo_eager", "solo_graph"};

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
record::CheckResult judge_trend(Judgement& judgement, const Attempt& attempt, const Quantity& what,
                                const Quantity* without, double jump_bytes) {
  if (!judgement.has_replays()) return judgement.result("", "");
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
      judgement.confirm(files.rank);
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

/// The allocator's bytes after the last steady step of each solo arm are those after the first
/// one. With dropless experts, whose shapes vary, the reserved bytes may rise in half of the steps
/// at most.
record::CheckResult allocator_series(Judgement& judgement, const Attempt& attempt) {
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
          judgement.confirm(files.rank);
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

/// The upper end of the Theil-Sen interval of solo_graph is at most eager's and what one jump
/// explains; for the bytes used on the device, less those that the allocator reserved.
record::CheckResult device_trend(Judgement& judgement, const Attempt& attempt) {
  return judge_trend(judgement, attempt, kDevice, &kReserved, kDevicePageBytes);
}

/// The same for the resident bytes of the process.
record::CheckResult resident_trend(Judgement& judgement, const Attempt& attempt) {
  return judge_trend(judgement, attempt, kResident, nullptr, kResidentJumpBytes);
}

}  // namespace graphproof::checks::d31
