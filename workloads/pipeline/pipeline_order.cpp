#include "workloads/pipeline/pipeline_order.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>
#include <utility>

namespace graphproof::order {
namespace {

void require_positive(const char* name, std::int64_t value) {
  if (value < 1)
    throw Refused(std::string("a pipeline's ") + name, std::to_string(value), "1 or more",
                  "without one there is nothing to order", std::string("give a positive ") + name);
}

Stage checked(Stage stage) {
  require_positive("size", stage.pp);
  require_positive("chunks", stage.chunks);
  require_positive("microbatches", stage.microbatches);
  if (stage.group == 0) stage.group = stage.pp;
  require_positive("group", stage.group);
  if (stage.rank < 0 || stage.rank >= stage.pp)
    throw Refused("a pipeline's rank", std::to_string(stage.rank),
                  "0 to " + std::to_string(stage.pp - 1), "stages are numbered from 0",
                  "give a rank below the size");
  return stage;
}

bool is_forward(double entry) { return entry > 0; }
bool is_weight_gradient(double entry) { return entry != std::floor(entry); }
std::size_t chunk_of(double entry) {
  return static_cast<std::size_t>(std::abs(std::ceil(entry))) - 1;
}

/// Builds an order by layers from the entries of a chunk order, one layer at a time.
class Expansion {
 public:
  Expansion(const std::vector<std::int64_t>& layers_of_chunk, bool weight_gradients)
      : layers_(layers_of_chunk), weight_gradients_(weight_gradients) {
    before_.resize(layers_.size());
    std::exclusive_scan(layers_.begin(), layers_.end(), before_.begin(), std::int64_t{0});
  }

  std::int64_t layers(double entry) const { return layers_.at(chunk_of(entry)); }
  void forward(double entry, std::int64_t layer) {
    const std::size_t chunk = chunk_of(entry);
    add(static_cast<double>(before_[chunk] + layer + 1),
        Layer{static_cast<std::int64_t>(chunk), layer});
  }
  /// `step` counts from the chunk's last layer.
  void backward(double entry, std::int64_t step) { add(-number(entry, step), std::nullopt); }
  void weight_gradient(double entry, std::int64_t step) {
    if (weight_gradients_) add(-number(entry, step) - 0.5, std::nullopt);
  }
  LayerOrder take() { return std::move(order_); }

 private:
  double number(double entry, std::int64_t step) const {
    return static_cast<double>(before_[chunk_of(entry)] + layers(entry) - step);
  }
  void add(double entry, std::optional<Layer> layer) {
    order_.entries.push_back(entry);
    order_.layers.push_back(layer);
  }

  const std::vector<std::int64_t>& layers_;
  const bool weight_gradients_;
  std::vector<std::int64_t> before_;  // number of layers in the chunks before each chunk
  LayerOrder order_;
};

}  // namespace

Refused::Refused(std::string subject_, std::string got_, std::string want_, std::string why_,
                 std::string next_)
    : std::invalid_argument(subject_ + "; got " + got_ + "; want " + want_ + "; why: " + why_ +
                            "; next: " + next_),
      subject(std::move(subject_)),
      got(std::move(got_)),
      want(std::move(want_)),
      why(std::move(why_)),
      next(std::move(next_)) {}

std::int64_t warmup_forwards(const Stage& given, bool forward_only, bool overlap_ep) {
  const Stage stage = checked(given);
  const std::int64_t total = stage.microbatches * stage.chunks;
  if (forward_only) return total;
  if (stage.pp == 1) return 0;
  const std::int64_t later_stages = stage.pp - stage.rank - 1;
  const std::int64_t warmup =
      stage.chunks == 1
          ? later_stages
          : 2 * later_stages + (stage.chunks - 1) * stage.group + (overlap_ep ? 1 : 0);
  return std::min(warmup, total);
}

std::vector<Forward> forwards(const Stage& given) {
  const Stage stage = checked(given);
  std::vector<Forward> table;
  for (std::int64_t begin = 0; begin < stage.microbatches; begin += stage.group)
    for (std::int64_t chunk = 0; chunk < stage.chunks; ++chunk)
      for (std::int64_t m = begin; m < std::min(begin + stage.group, stage.microbatches); ++m)
        table.push_back({m, chunk});
  return table;
}

std::vector<double> chunk_order(std::int64_t warmup, std::int64_t chunks,
                                const std::vector<Forward>& forwards) {
  if (forwards.empty())
    throw Refused("the order of a pipeline stage", "no forwards", "one or more",
                  "an empty step has no order", "give at least one microbatch");
  const std::size_t first = static_cast<std::size_t>(std::max<std::int64_t>(0, warmup));
  std::vector<double> order;
  const auto backward = [&](std::size_t i) {
    order.push_back(static_cast<double>(forwards[i].chunk - chunks));
  };
  for (std::size_t i = 0; i < forwards.size(); ++i) {
    order.push_back(static_cast<double>(forwards[i].chunk + 1));
    if (i >= first) backward(i - first);
  }
  for (std::size_t i = forwards.size() - std::min(first, forwards.size()); i < forwards.size(); ++i)
    backward(i);
  return order;
}

std::vector<double> chunk_order(const Stage& stage) {
  return chunk_order(warmup_forwards(stage), stage.chunks, forwards(stage));
}

LayerOrder layer_order(const std::vector<double>& chunk_order,
                       const std::vector<std::int64_t>& layers_of_chunk, bool weight_gradients) {
  const auto first_backward = std::find_if_not(chunk_order.begin(), chunk_order.end(), is_forward);
  if (first_backward == chunk_order.end())
    throw Refused("the layers of an order", "no backward",
                  "a forward and a backward of every chunk",
                  "forwards alone have nothing to overlap", "give the order of a training step");
  for (const double entry : chunk_order)
    if (entry == 0 || chunk_of(entry) >= layers_of_chunk.size())
      throw Refused("the layers of an order",
                    "chunk " + std::to_string(std::llround(std::abs(entry))) + " of " +
                        std::to_string(layers_of_chunk.size()),
                    "a number of layers for every chunk", "its layers would be unknown",
                    "give one number a chunk");

  Expansion expansion(layers_of_chunk, weight_gradients);
  const auto after_last_forward =
      std::find_if(chunk_order.rbegin(), chunk_order.rend(), is_forward).base();
  for (auto entry = chunk_order.begin(); entry != first_backward; ++entry)
    for (std::int64_t layer = 0; layer < expansion.layers(*entry); ++layer)
      expansion.forward(*entry, layer);
  auto entry = first_backward;
  for (; entry < after_last_forward; entry += 2) {
    const double backward = *entry, forward = *std::next(entry);
    if (is_forward(backward) || !is_forward(forward))
      throw Refused("the layers of an order",
                    "two forwards or two backwards in a row after the first backward",
                    "a backward and a forward in turn up to the last forward",
                    "only such pairs overlap", "give the order of a 1F1B or interleaved schedule");
    const std::int64_t backwards = expansion.layers(backward), forwards = expansion.layers(forward);
    for (std::int64_t i = 0; i < std::max(backwards, forwards); ++i) {
      if (i < forwards) expansion.forward(forward, i);
      if (i < backwards) expansion.backward(backward, i);
      if (i + 1 < backwards) expansion.weight_gradient(backward, i);
    }
    if (backwards > 0) expansion.weight_gradient(backward, backwards - 1);
  }
  for (; entry != chunk_order.end(); ++entry)
    for (std::int64_t step = 0; step < expansion.layers(*entry); ++step) {
      expansion.backward(*entry, step);
      expansion.weight_gradient(*entry, step);
    }
  return expansion.take();
}

std::vector<std::int64_t> input_buffers(const std::vector<double>& order,
                                        const std::vector<std::int64_t>& layers_of_chunk,
                                        std::int64_t microbatches,
                                        const std::vector<std::string>& signatures) {
  struct Use {
    std::string signature;
    std::int64_t buffer;
  };
  std::vector<std::int64_t> before(layers_of_chunk.size());
  std::exclusive_scan(layers_of_chunk.begin(), layers_of_chunk.end(), before.begin(),
                      std::int64_t{0});
  const std::int64_t layers =
      std::accumulate(layers_of_chunk.begin(), layers_of_chunk.end(), std::int64_t{0});
  std::vector<std::int64_t> buffers(static_cast<std::size_t>(layers * microbatches), -1);
  std::vector<std::int64_t> forwards(layers_of_chunk.size(), 0);
  std::vector<std::deque<Use>> in_use(layers_of_chunk.size());
  std::map<std::string, std::deque<std::int64_t>> unused;
  std::int64_t made = 0;
  for (const double entry : order) {
    const std::size_t chunk = chunk_of(entry);
    if (is_weight_gradient(entry)) continue;
    for (std::int64_t j = 0; j < layers_of_chunk.at(chunk); ++j) {
      if (!is_forward(entry)) {
        if (in_use[chunk].empty())
          throw Refused("the input buffers of an order",
                        "a backward of chunk " + std::to_string(chunk + 1) + " before its forward",
                        "the forward first", "no buffer would be assigned to it",
                        "give an order that can run");
        const Use done = in_use[chunk].front();
        in_use[chunk].pop_front();
        unused[done.signature].push_back(done.buffer);
        continue;
      }
      const std::string signature =
          signatures.empty() ? "" : signatures.at(static_cast<std::size_t>(before[chunk] + j));
      std::deque<std::int64_t>& ready = unused[signature];
      const std::int64_t buffer = ready.empty() ? made++ : ready.front();
      if (!ready.empty()) ready.pop_front();
      in_use[chunk].push_back({signature, buffer});
      const std::int64_t slot =
          before[chunk] * microbatches + forwards[chunk] * layers_of_chunk[chunk] + j;
      buffers.at(static_cast<std::size_t>(slot)) = buffer;
    }
    forwards[chunk] += is_forward(entry) ? 1 : 0;
  }
  return buffers;
}

std::vector<std::int64_t> input_buffers(const LayerOrder& order) {
  const double layers =
      order.entries.empty() ? 0 : *std::max_element(order.entries.begin(), order.entries.end());
  const auto chunks = static_cast<std::size_t>(layers);
  if (chunks == 0) return {};
  const auto whole = static_cast<std::size_t>(
      std::count_if(order.entries.begin(), order.entries.end(),
                    [](double entry) { return !is_weight_gradient(entry); }));
  return input_buffers(order.entries, std::vector<std::int64_t>(chunks, 1),
                       static_cast<std::int64_t>(whole / chunks / 2));
}

}  // namespace graphproof::order
