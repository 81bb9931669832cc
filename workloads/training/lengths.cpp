#include "workloads/training/lengths.h"

#include <stdexcept>
#include <string>

#include "workloads/layers/context_parallel.h"
#include "workloads/parameters/draw.h"

namespace graphproof::workloads {
namespace {

constexpr std::int64_t kShortest = 2;  // tokens: a token and its label

/// The shortest sequence, in units.
std::int64_t shortest_of(std::int64_t unit) { return (kShortest + unit - 1) / unit; }

/// The longest microbatch of a step. The steps of a bucket cycle through all lengths that no
/// smaller bucket holds.
std::int64_t length_of(const LengthSchedule& schedule, std::int64_t seq_length, std::int64_t step) {
  const std::optional<std::int64_t> bucket = schedule.steps.at(static_cast<std::size_t>(step));
  const std::int64_t unit = schedule.unit, end = bucket.value_or(seq_length) / unit;
  std::int64_t below = shortest_of(unit) - 1;
  for (const std::int64_t length : schedule.buckets)
    if (length / unit < end) below = length / unit;
  return (end - step % (end - below)) * unit;
}

at::Tensor padded_or_cut(const at::Tensor& tensor, std::int64_t length, double value) {
  return at::constant_pad_nd(tensor, {0, length - tensor.size(1)}, value);
}

}  // namespace

std::int64_t length_unit(const Layout& layout) {
  return (layout.cp > 1 ? 2 * layout.cp : 1) * layout.sequence_parts();
}

LengthSchedule length_schedule(std::int64_t seq_length, std::int64_t bound,
                               std::int64_t warmup_steps, std::int64_t unit) {
  LengthSchedule schedule{.unit = unit, .buckets = {}, .steps = {}};
  for (std::int64_t piece = 1; piece <= bound + 1; ++piece)
    schedule.buckets.push_back(seq_length / unit * piece / (bound + 2) * unit);
  if (schedule.buckets.front() < shortest_of(unit) * unit)
    throw std::invalid_argument(
        "shape buckets: got seq_length = " + std::to_string(seq_length) + " for " +
        std::to_string(bound + 1) + " buckets; want at least " +
        std::to_string(shortest_of(unit) * unit * (bound + 2)) +
        "; why: each needs a length of its own; next: change seq_length or shape_buckets");
  const auto uses = [&](std::size_t bucket, std::int64_t count) {
    schedule.steps.insert(schedule.steps.end(), static_cast<std::size_t>(count),
                          schedule.buckets[bucket]);
  };
  const auto last = static_cast<std::size_t>(bound);
  for (std::size_t bucket = 0; bucket < last; ++bucket) uses(bucket, warmup_steps + 1);
  uses(0, 1);                    // the oldest graph is now the most recently used
  uses(last, warmup_steps + 1);  // evicts the least recently used
  schedule.steps.emplace_back();
  uses(last > 1 ? 1 : 0, 1);  // the evicted bucket is used again
  uses(last, 2);
  schedule.steps.emplace_back();
  uses(0, 1);
  return schedule;
}

std::int64_t longest_of(const ModelConfig& config, const LengthSchedule& schedule,
                        std::int64_t step) {
  return length_of(schedule, config.seq_length, step);
}

Batch make_uneven_batch(const ModelConfig& config, const Layout& layout,
                        const LengthSchedule& schedule, std::uint64_t seed, std::int64_t step,
                        at::Device device) {
  const std::int64_t longest = length_of(schedule, config.seq_length, step);
  Layout whole = layout;
  whole.cp = 1;
  whole.cp_rank = 0;
  const Batch even = make_batch(config, whole, seed, step, device);
  const std::int64_t unit = schedule.unit, shortest = shortest_of(unit);
  Batch batch;
  for (std::int64_t m = 0; m < config.microbatches; ++m) {
    const std::int64_t number = layout.dp_rank * config.microbatches + m;
    const Draw draw(seed, "length." + std::to_string(step) + "." + std::to_string(number));
    // The last one of each rank is shorter where it can be, so that every rank has padding.
    const std::int64_t others = longest / unit - shortest,
                       choices = m + 1 == config.microbatches && others > 0 ? others : others + 1,
                       length = number == 0 ? longest : (shortest + draw.below(choices, 0)) * unit;
    const auto index = static_cast<std::size_t>(m);
    batch.tokens.push_back(even.tokens[index].narrow(1, 0, length).contiguous());
    batch.labels.push_back(even.labels[index].narrow(1, 0, length).contiguous());
    batch.weights.push_back(at::full({config.microbatch_size, length},
                                     1.0 / static_cast<double>(config.microbatch_size * length),
                                     batch.tokens.back().options().dtype(at::kFloat)));
  }
  return batch;
}

Batch padded(const Batch& batch, std::int64_t length, std::int64_t filler,
             faults::FaultHooks& faults) {
  Batch result;
  for (std::size_t m = 0; m < batch.tokens.size(); ++m) {
    const at::Tensor& weights = batch.weights[m];
    result.tokens.push_back(padded_or_cut(batch.tokens[m], length, static_cast<double>(filler)));
    result.labels.push_back(padded_or_cut(batch.labels[m], length, static_cast<double>(filler)));
    result.weights.push_back(faults.padded_weights(padded_or_cut(weights, length, 0)));
  }
  return result;
}

Batch own_part(const Batch& batch, const Layout& layout) {
  if (layout.cp == 1) return batch;
  const auto own = [&](const at::Tensor& whole) {  // [B, S]
    return rows_of_rank(whole.transpose(0, 1), layout.cp, layout.cp_rank)
        .transpose(0, 1)
        .contiguous();
  };
  Batch part;
  for (std::size_t m = 0; m < batch.tokens.size(); ++m) {
    part.tokens.push_back(own(batch.tokens[m]));
    part.labels.push_back(own(batch.labels[m]));
    part.weights.push_back(own(batch.weights[m]) * layout.cp);
  }
  return part;
}

}  // namespace graphproof::workloads
