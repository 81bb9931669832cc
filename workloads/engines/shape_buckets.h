// Graphs for training steps whose sequence lengths change: a bounded cache of engines (callables or
// full_iteration), one for each length bucket.
//
// Contract:
// - The bucket of a step is the smallest length that holds its longest microbatch on any rank. All
//   its microbatches are padded to that length (lengths.h). A step that is longer than the largest
//   bucket runs eagerly, padded to its longest microbatch, as serving engines do with batches
//   beyond their largest graph.
// - The first `warmup_steps` steps of a bucket are eager. The next one makes the bucket's engine,
//   which captures at once, and replays. Graphs are made at first use and not in advance, as in
//   PyTorch's cudagraph trees. An evicted bucket is captured again without eager steps, because its
//   kernels are loaded.
// - At most `bound` buckets have graphs. Before another bucket is captured, the least recently used
//   one is evicted: the host waits for the device, the graphs and static inputs are destroyed, and
//   the allocator returns their pool to the device. The eviction is this project's own: PyTorch
//   keeps every graph.
// - The graphs of each bucket have their own pool, because they are destroyed separately. They
//   share parameters, gradients, optimizer state and random numbers with each other and with eager
//   steps.
// - evaluate() is eager, at the lengths of its batch.
// - Refuses other engines, an optimizer graph, a bound below one, buckets that are not ascending,
//   an evaluation or step after drop_graphs(), and, as its engines do, the plain RNG tracker.
#pragma once

#include <c10/core/Event.h>

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "workloads/engines/capture/engine.h"

namespace graphproof::engines {

/// The contract is above. Used by one thread.
class ShapeBuckets final : public Engine {
 public:
  /// The buckets, and how many of them may have graphs at the same time.
  struct Buckets {
    std::vector<std::int64_t> lengths;  // tokens, ascending
    std::int64_t bound = 1;
  };
  /// What the latest step did.
  struct Step {
    std::int64_t length = 0;  // the length in tokens that it was padded to
    bool replayed = false, captured = false;
    std::vector<std::int64_t> evicted;
  };

  ShapeBuckets(const EngineConfig& config, capture::Device& device, c10::Stream stream,
               workloads::TrainStep& step, Observer* observer, Buckets buckets);
  ~ShapeBuckets() override;

  void step(const workloads::Batch& batch, double learning_rate) override {
    this->step(batch, learning_rate, longest(batch));
  }
  /// The same if microbatches differ between ranks; `longest` is the longest of all ranks, in
  /// tokens.
  void step(const workloads::Batch& batch, double learning_rate, std::int64_t longest);
  void evaluate(const workloads::Batch& batch) override;
  std::vector<NamedTensor> outputs() override;
  at::Tensor losses() override;
  /// The sums over all buckets so far, evicted ones included. graphs counts those that exist,
  /// drops_in_flight the buckets that were dropped before their latest replay had ended.
  Counters counters() const override;
  void drop_graphs() override;

  const Step& latest() const { return latest_; }
  /// The lengths that have graphs, the most recently used first.
  std::vector<std::int64_t> resident() const;

 private:
  struct Resident {
    std::int64_t length;
    std::unique_ptr<Engine> engine;
    std::unique_ptr<c10::Event> replayed;  // recorded after its latest replay
  };
  static std::int64_t longest(const workloads::Batch& batch);
  std::optional<std::int64_t> bucket_of(std::int64_t longest);
  void step_eagerly(const workloads::Batch& batch, double learning_rate);
  Resident* find(std::int64_t length);
  void evict();
  void drop(Resident& resident);

  EngineConfig config_;
  capture::Device& device_;
  c10::Stream stream_;
  workloads::TrainStep& step_;
  Observer* observer_;
  Buckets buckets_;
  std::list<Resident> residents_;              // the most recently used first
  std::map<std::int64_t, std::int64_t> uses_;  // by bucket: its eager steps
  Counters earlier_;                           // of evicted buckets, and of eager steps
  Step latest_;
  bool dropped_ = false;
};

}  // namespace graphproof::engines
