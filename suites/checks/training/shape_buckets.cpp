// D43: steps of changing length replay graphs of a bounded cache. What the cache should do follows
// from the case and the recorded lengths, so wrong decisions are noticed even if the numbers agree.
#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "suites/checks/attempt/comparison.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/training/bucket_lengths.h"
#include "workloads/engine_traits/engine_traits.h"

namespace graphproof::checks::d43 {
namespace {

using record::BucketLine;
using record::EvictionsLine;

/// A cache that evicts the least recently used length. Its input is the longest microbatch of each
/// step.
class Cache {
 public:
  Cache(const Axes& axes, const Expected& expected)
      : buckets_(buckets_of(axes)),
        bound_(axes.integer("shape_buckets")),
        warmup_steps_(expected.warmup_steps),
        launches_(expected.launches_per_step),
        // Graphs of modules serve all microbatches in turn; a graph of the whole step holds all of
        // them.
        captures_(engines::traits_of(axes.text("impl")).captures_modules()
                      ? launches_ / expected.microbatches
                      : launches_) {}

  struct Step {
    std::int64_t length = 0;
    bool replayed = false;
    std::int64_t captures = 0, replays = 0;  // so far
    Lengths resident, evicted;               // resident: the most recently used one first
    bool operator==(const Step&) const = default;
  };
  Step step(std::int64_t longest) {
    Lengths evicted;
    const auto bucket = std::ranges::lower_bound(buckets_, longest);
    bool replayed = false;
    if (bucket == buckets_.end()) {
      beyond_ = true;
    } else if (const auto found = std::ranges::find(resident_, *bucket); found != resident_.end()) {
      std::rotate(resident_.begin(), found, found + 1);
      replayed = true;
      replayed_behind_ |= evictions_ > 0;
    } else if (eager_[*bucket] < warmup_steps_) {
      ++eager_[*bucket];
    } else {
      if (static_cast<std::int64_t>(resident_.size()) == bound_) {
        evicted.push_back(resident_.back());
        resident_.pop_back();
        ++evictions_;
      }
      resident_.insert(resident_.begin(), *bucket);
      captured_so_far_ += captures_;
      back_ |= ++captured_[*bucket] > 1;
      replayed = true;
    }
    if (replayed) replayed_so_far_ += launches_;
    return {bucket == buckets_.end() ? longest : *bucket,
            replayed,
            captured_so_far_,
            replayed_so_far_,
            resident_,
            evicted};
  }
  /// What the steps so far did not exercise; empty if they exercised everything.
  std::string missing() const {
    if (evictions_ == 0) return "no graph was evicted";
    if (!back_) return "no evicted length was used again";
    if (!replayed_behind_) return "no graph was replayed after another one had been destroyed";
    return beyond_ ? "" : "no step was longer than the largest bucket";
  }

 private:
  const Lengths buckets_;
  const std::int64_t bound_, warmup_steps_, launches_, captures_;
  Lengths resident_;
  std::map<std::int64_t, std::int64_t> eager_, captured_;  // by length
  std::int64_t captured_so_far_ = 0, replayed_so_far_ = 0, evictions_ = 0;
  bool beyond_ = false, back_ = false, replayed_behind_ = false;
};

std::string step_text(const Cache::Step& step) {
  return concat(step.replayed ? "replayed at length " : "eager at length ", step.length, ", ",
                step.captures, " captures and ", step.replays, " replays so far, graphs of ",
                text_of(step.resident), ", evicted ", text_of(step.evicted));
}

}  // namespace

/// In every step the padding, captures, replays and evictions are those of a cache that evicts the
/// least recently used length. Unexercised if no length was evicted, none was used again after its
/// eviction, or none was longer than the largest bucket.
record::CheckResult shape_buckets(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  std::size_t steps = 0;
  for (const RankFiles& files : attempt.ranks) {
    const auto lines = judgement.lines<BucketLine>(files);
    if (lines.empty()) judgement.absent<BucketLine>(files, "");
    Cache cache(attempt.axes, judgement.expected());
    std::int64_t next = 0;
    for (const BucketLine& line : lines) {
      if (line.step != next++ || line.longest < 1 ||
          line.longest > attempt.axes.integer("seq_length")) {
        judgement.defect({.rank = files.rank,
                          .step = line.step,
                          .what = "a step of changing lengths is missing or has no length",
                          .got = concat("step ", line.step, " of length ", line.longest),
                          .want = concat("step ", next - 1, " of a length up to ",
                                         attempt.axes.integer("seq_length")),
                          .why = "what the cache should hold depends on all earlier steps"});
        break;
      }
      const Cache::Step want = cache.step(line.longest);
      const Cache::Step got{line.length,  line.replayed, line.captures,
                            line.replays, line.resident, line.evicted};
      if (got == want) {
        judgement.confirm(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = line.step,
           .what = concat("the step of length ", line.longest, " did not use the expected graph"),
           .got = step_text(got),
           .want = step_text(want),
           .why =
               "a graph of another length reads another shape, and unnecessary captures cost the "
               "time that replays save"});
      break;
    }
    // Comparisons and `evictions` lines have step numbers too, so they show whether steps are
    // missing at the end.
    std::int64_t end = 0;
    for (const CompareLine* line : comparisons(judgement, files, kInLockstep.compared))
      end = std::max(end, line->step + 1);
    for (const EvictionsLine& line : judgement.lines<EvictionsLine>(files))
      end = std::max(end, line.step + 1);
    if (std::ssize(lines) < end) judgement.absent<BucketLine>(files, "", std::ssize(lines));
    if (const std::string missing = cache.missing(); !lines.empty() && !missing.empty())
      judgement.unexercised(missing);
    steps = std::max(steps, lines.size());
  }
  return judgement.result(
      concat(steps, " steps from the graphs of their lengths on ", attempt.ranks.size(), " ranks"),
      "the least recently used length is evicted, and every step replays its own");
}

}  // namespace graphproof::checks::d43
