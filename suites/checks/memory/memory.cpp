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

const Line* look(const RankFiles& files, std::string_view arm, std::string_view when) {
  for (const Line* line : files.find("memory", arm))
    if (is(*line, "when", when)) return line;
  return nullptr;
}

// The second step after the capture is the first one in which nothing is made for the first time.
constexpr std::int64_t kSettlingSteps = 2;

std::vector<const Line*> steady(const RankFiles& files, std::string_view arm,
                                std::int64_t first_replay) {
  std::vector<const Line*> lines;
  for (const Line* line : files.find("memory", arm))
    if (is(*line, "when", "step") &&
        integer(*line, "step").value_or(-1) >= first_replay + kSettlingSteps)
      lines.push_back(line);
  return lines;
}

/// Whether there is a look after each of the steady steps that the arm runs: growth may hide in a
/// gap, and behind the last look.
bool whole(Judgement& judgement, const Attempt& attempt, const RankFiles& files,
           std::string_view arm, const std::vector<const Line*>& lines) {
  const std::int64_t first = judgement.expected().first_replay + kSettlingSteps,
                     end = solo_steps(attempt, judgement.expected());
  assert(end - first >= kFewestTrendPoints);
  for (std::int64_t step = first; step < end; ++step) {
    if (std::ranges::any_of(lines,
                            [&](const Line* line) { return integer(*line, "step") == step; }))
      continue;
    judgement.absent(files, concat("`memory` line of arm ", arm), step);
    return false;
  }
  return true;
}

// Dropless experts have as many tokens as are sent to them. A step with more than ever before takes
// a block for good, which a later one uses, so this count may rise now and then; what is kept shows
// in the bytes allocated.
bool may_rise(const Attempt& attempt, std::string_view what) {
  return what == "reserved" && attempt.axes.text("dispatch") == "dropless";
}

/// Of how many looks the count is higher than at the one before; every one of them must have it.
std::optional<std::size_t> rises(const std::vector<const Line*>& lines, std::string_view what) {
  std::size_t count = 0;
  std::optional<std::int64_t> before;
  for (const Line* line : lines) {
    const auto bytes = integer(*line, what);
    if (!bytes) return std::nullopt;
    count += before && *bytes > *before;
    before = bytes;
  }
  return count;
}

/// Of a field that every line must have, without the bytes of a second one where that is named;
/// nothing, and a defect, where a line has none.
std::optional<Trend> trend(Judgement& judgement, const RankFiles& files,
                           const std::vector<const Line*>& lines, std::string_view field_name,
                           std::string_view without) {
  std::vector<SeriesPoint> points;
  for (const Line* line : lines) {
    const auto step = integer(*line, "step");
    const auto value = number(*line, field_name),
               explained = without.empty() ? 0 : number(*line, without);
    const bool later = points.empty() || (step && static_cast<double>(*step) > points.back().at);
    if (!step || !value || !explained || !later) {
      judgement.defect({.rank = files.rank,
                        .step = step,
                        .what = concat("the memory series `", field_name, "` of arm ",
                                       text(*line, "arm"), " has a gap"),
                        .got = field(*line, field_name).dump(),
                        .want = "bytes, of one step after the other",
                        .why = "growth may hide in a gap"});
      return std::nullopt;
    }
    points.push_back({static_cast<double>(*step), *value - *explained});
  }
  return theil_sen(points);
}

/// `without`: a field that is judged by another check and is part of this one; "" for none.
record::CheckResult judge_trend(const Attempt& attempt, std::string_view check,
                                std::string_view field_name, std::string_view without,
                                double jump_bytes) {
  Judgement judgement(check, attempt);
  if (!judgement.for_training_cases() || !judgement.for_graph_cases())
    return judgement.result("", "");
  if (field_name == "device" && shared_gpus(attempt)) {
    judgement.not_applicable("ranks of this case shared GPUs, and the driver counts them all");
    return judgement.result("", "");
  }
  double highest = -std::numeric_limits<double>::infinity();
  for (const RankFiles& files : attempt.ranks) {
    const auto eager = steady(files, "solo_eager", judgement.expected().first_replay);
    const auto graph = steady(files, "solo_graph", judgement.expected().first_replay);
    if (!whole(judgement, attempt, files, "solo_eager", eager) ||
        !whole(judgement, attempt, files, "solo_graph", graph))
      continue;
    const auto usual = trend(judgement, files, eager, field_name, without),
               seen = trend(judgement, files, graph, field_name, without);
    if (!usual || !seen) continue;
    const double bound =
        std::max(0.0, usual->upper) + kJumpWidth * jump_bytes / static_cast<double>(graph.size());
    highest = std::max(highest, seen->upper);
    if (seen->upper <= bound) {
      judgement.saw(files.rank);
      continue;
    }
    judgement.defect({.rank = files.rank,
                      .step = integer(*graph.back(), "step"),
                      .what = concat("`", field_name, "` memory of arm solo_graph grows"),
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
      const auto lines = steady(files, arm, judgement.expected().first_replay);
      if (!whole(judgement, attempt, files, arm, lines)) continue;
      steps = lines.size();
      for (const char* what : {"allocated", "reserved", "pool"}) {
        const auto first = integer(*lines.front(), what), last = integer(*lines.back(), what);
        const auto rose = rises(lines, what);
        const std::size_t most = (lines.size() - 1) / 2;
        if (may_rise(attempt, what) ? rose && *rose <= most : first && first == last) {
          judgement.saw(files.rank);
          continue;
        }
        judgement.defect(
            {.rank = files.rank,
             .step = integer(*lines.back(), "step"),
             .what = concat("the allocator's `", what, "` bytes of arm ", arm,
                            " are not what they were"),
             .got = concat(field(*lines.back(), what).dump(), " bytes after the last step"),
             .want = concat(
                 field(*lines.front(), what).dump(), ", as ", lines.size() - 1, " steps before",
                 may_rise(attempt, what) ? concat("; or more, risen in ", most, " of them at most")
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
  return judge_trend(attempt, "D31.device_trend", "device", "reserved", kDevicePageBytes);
}

record::CheckResult resident_trend(const Attempt& attempt) {
  return judge_trend(attempt, "D31.resident_trend", "resident", "", kResidentJumpBytes);
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
    for (const Line* capture : files.find("capture")) {
      const std::int64_t pools = integer(*capture, "pools").value_or(0);
      // Validation has a pool of its own: its graph is launched between steps, in no order with
      // theirs.
      const std::int64_t allowed = for_training + (is(*capture, "graph", "validation") ? 1 : 0);
      if (pools >= 1 && pools <= allowed) {
        judgement.saw(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = integer(*capture, "step"),
           .what =
               concat("the graphs of arm ", text(*capture, "arm"), " do not share their memory"),
           .got = concat(field(*capture, "pools").dump(), " pools at the capture of ",
                         text(*capture, "graph"), ", ", field(*capture, "pool_bytes").dump(),
                         " bytes in this one"),
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
    const Line* before = look(files, "solo_graph", "before");
    const Line* after = look(files, "solo_graph", "returned");
    const Line* eager_before = look(files, "solo_eager", "before");
    const Line* eager_after = look(files, "solo_eager", "returned");
    if (!before || !after || !eager_before || !eager_after) {
      judgement.absent(files,
                       "`memory` line of a solo arm before it was built and after it was gone");
      continue;
    }
    const auto eager_was = number(*eager_before, "device"),
               eager_is_now = number(*eager_after, "device");
    if (!eager_was || !eager_is_now) {
      judgement.absent(
          files,
          "count of the device's bytes before arm solo_eager was built and after it was gone");
      continue;
    }
    // Repeating eager says how far the device's own count moves without any graph.
    const double spread = std::max(kDevicePageBytes, *eager_is_now - *eager_was);
    for (const char* what : {"allocated", "reserved", "device"}) {
      if (std::string_view(what) == "device" && shared_gpus(attempt))
        continue;  // the peers' comes and goes too
      const auto was = number(*before, what), is_now = number(*after, what);
      const double slack = std::string_view(what) == "device" ? spread : 0;
      if (was && is_now && *is_now <= *was + slack) {
        judgement.saw(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = std::nullopt,
           .what = concat("`", what, "` memory did not come back when arm solo_graph was gone"),
           .got = concat(field(*after, what).dump(),
                         " bytes after a flush collective and empty_cache"),
           .want = concat(field(*before, what).dump(), " at most, as before it was built",
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
    const Line* before = look(files, "solo_graph", "before");
    const Line* after = look(files, "solo_graph", "returned");
    if (!before || !after) {
      judgement.absent(files,
                       "`memory` line of arm solo_graph before it was built and after it was gone");
      continue;
    }
    const auto was = integer(*before, "pool"), is_now = integer(*after, "pool");
    if (was && is_now && *is_now <= *was) {
      judgement.saw(files.rank);
      continue;
    }
    judgement.defect(
        {.rank = files.rank,
         .step = std::nullopt,
         .what = "a graph pool of arm solo_graph outlives its graphs",
         .got = concat(field(*after, "pool").dump(), " bytes in graph pools"),
         .want = concat(field(*before, "pool").dump(), " at most, as before the arm was built"),
         .why = "a pool that is never released is lost to everybody else"});
  }
  return judgement.result(concat("none left on ", attempt.ranks.size(), " ranks"),
                          "no segment of the arm's pools");
}

}  // namespace graphproof::checks
