// D34, D38, D43, D48: steps of changing lengths from a bounded cache of graphs. What the cache
// should have done follows from the lengths that the evidence tells and from the case alone, so a
// cache that decides otherwise shows even where numbers agree.
#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "suites/checks/attempt/comparison.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/detectors.h"
#include "suites/checks/attempt/distance.h"
#include "workloads/engine_traits/engine_traits.h"

namespace graphproof::checks {
namespace {

using record::BucketLine;
using record::EvictionsLine;
using record::PaddingLine;

using Lengths = std::vector<std::int64_t>;

constexpr ArmPair kInLockstep{"buckets", "buckets_eager", "buckets_graph"};
constexpr ArmPair kInFreeRun{"buckets_free_run", "buckets_eager", "buckets_graph"};

bool for_buckets(Judgement& judgement, const Attempt& attempt) {
  if (judgement.for_training_cases() && judgement.for_graph_cases() &&
      attempt.axes.integer("shape_buckets") == 0)
    judgement.not_applicable("all steps of the case have one length");
  return !judgement.settled();
}

std::string text_of(const Lengths& lengths) {
  std::string all;
  for (const std::int64_t length : lengths)
    all += (all.empty() ? "" : " ") + std::to_string(length);
  return all.empty() ? "none" : all;
}

/// The ends of `bound` + 2 equal pieces of a sequence, all but the last.
Lengths buckets_of(const Axes& axes) {
  const std::int64_t bound = axes.integer("shape_buckets"), length = axes.integer("seq_length");
  Lengths buckets;
  for (std::int64_t piece = 1; piece <= bound + 1; ++piece)
    buckets.push_back(length * piece / (bound + 2));
  return buckets;
}

/// A cache that evicts the least recently used, fed with the longest microbatch of each step.
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
    Lengths resident, evicted;               // resident: the latest used first
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
  /// What the steps so far did not show; empty where they showed all.
  std::string missing() const {
    if (evictions_ == 0) return "no graph was evicted";
    if (!back_) return "no evicted length came back";
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

record::CheckResult shape_buckets(const Attempt& attempt) {
  Judgement judgement("D43.shape_buckets", attempt);
  if (!for_buckets(judgement, attempt)) return judgement.result("", "");
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
                          .why = "what the cache should hold follows from all steps before"});
        break;
      }
      const Cache::Step want = cache.step(line.longest);
      const Cache::Step got{line.length,  line.replayed, line.captures,
                            line.replays, line.resident, line.evicted};
      if (got == want) {
        judgement.saw(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = line.step,
           .what = concat("the step of length ", line.longest,
                          " did not take the graph that it should"),
           .got = step_text(got),
           .want = step_text(want),
           .why = "another length's graph reads a shape of its own; one too many captures costs "
                  "what replays save"});
      break;
    }
    // The comparisons and the last evictions name steps too.
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
      "the least recently used length goes, and every step replays its own");
}

record::CheckResult bucketed_replay(const Attempt& attempt) {
  Judgement judgement("D48.shape_buckets", attempt);
  if (!for_buckets(judgement, attempt)) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    const auto lines = judgement.lines<BucketLine>(files);
    const std::int64_t last = lines.empty() ? 0 : lines.back().step;
    judge_final_comparison(judgement, files, kInLockstep, last);
    judge_final_comparison(judgement, files, kInFreeRun, last);
    const auto compared = comparisons(judgement, files, kInLockstep.compared);
    for (const BucketLine& line : lines)
      if (std::ranges::none_of(compared,
                               [&](const CompareLine* one) { return one->step == line.step; }))
        judgement.absent(files, "comparison `buckets`", line.step);
  }
  return judgement.result(
      concat("equal in lockstep and in a free run on ", attempt.ranks.size(), " ranks"),
      "eager's bytes, whatever lies in the padding and was destroyed before");
}

record::CheckResult graph_cache(const Attempt& attempt) {
  Judgement judgement("D34.graph_cache", attempt);
  if (!for_buckets(judgement, attempt)) return judgement.result("", "");
  const auto bound = static_cast<std::size_t>(attempt.axes.integer("shape_buckets"));
  std::int64_t most = 0;
  for (const RankFiles& files : attempt.ranks) {
    std::map<std::int64_t, std::int64_t> bytes;  // by length, of its latest capture
    const auto lines = judgement.lines<BucketLine>(files);
    if (lines.empty()) judgement.absent<BucketLine>(files, "");
    for (const BucketLine& line : lines) {
      if (line.captured_bytes > 0) bytes[line.length] = line.captured_bytes;
      std::int64_t explained = 0;
      for (const std::int64_t one : line.resident) explained += bytes[one];
      most = std::max(most, line.pool_bytes);
      const bool many = line.resident.size() > bound;
      if (!many && line.pool_bytes <= explained && (line.resident.empty() || explained > 0)) {
        judgement.saw(files.rank);
        continue;
      }
      judgement.defect({.rank = files.rank,
                        .step = line.step,
                        .what = many ? "the cache of graphs holds more lengths than its bound"
                                     : "the memory of evicted graphs did not come back",
                        .got = concat(text_of(line.resident), " resident, ", line.pool_bytes,
                                      " bytes in graph pools"),
                        .want = concat(bound, " lengths at most, and ", explained,
                                       " bytes, what the captures of these took"),
                        .why = "a job whose lengths change ends out of memory"});
      break;
    }
  }
  return judgement.result(
      concat("at most ", most, " bytes in graph pools on ", attempt.ranks.size(), " ranks"),
      concat(bound, " lengths at most, and nothing left of evicted ones"));
}

record::CheckResult padding(const Attempt& attempt) {
  Judgement judgement("D38.padding", attempt);
  if (!for_buckets(judgement, attempt)) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    bool any = false;
    const auto lines = judgement.lines<PaddingLine>(files);
    for (const std::int64_t bucket : buckets_of(attempt.axes)) {
      const auto line = std::ranges::find(lines, bucket, &PaddingLine::length);
      if (line == lines.end()) {
        judgement.absent<PaddingLine>(files, concat("of length ", bucket));
        continue;
      }
      any |=
          std::ranges::any_of(line->lengths, [&](std::int64_t length) { return length < bucket; });
      judge_distance(judgement, files, line->distance,
                     {.who = "losses and gradients of a padded step",
                      .what = "those without padding",
                      .bound_on = "a padded step",
                      .why = "what the job learns depends on how its batches were padded"},
                     widest_bound(attempt.axes), line->step);
    }
    if (!any && !lines.empty()) judgement.unexercised("every microbatch filled its bucket");
  }
  return judgement.result(
      concat("within the bound of reordered sums on ", attempt.ranks.size(), " ranks"),
      "no part in losses and gradients");
}

}  // namespace graphproof::checks
