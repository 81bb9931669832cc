// A graph for each sequence length, for training steps whose lengths change: around callables or
// full_iteration, a bounded cache of their engines, one for each bucket.
//
// Contract:
// - A step's bucket is the smallest length that holds its longest microbatch on any rank; all its
// microbatches are padded to it
//   (lengths.h). A step that no bucket holds runs eagerly at its own length, padded to its longest,
//   as serving engines do with batches beyond their largest graph.
// - The first `warmup_steps` steps of a bucket are eager; the next one makes its engine, which
// captures at once, and replays.
//   Graphs are made at first use, not ahead, as PyTorch's cudagraph trees do. A bucket that was
//   evicted is captured again without eager steps: its kernels are loaded.
// - At most `bound` buckets have graphs. Before another one is captured the least recently used
// goes: the host waits for the
//   device, its graphs and static inputs are destroyed, and the allocator gives their pool back to
//   the device. The order is our own: PyTorch keeps every graph that it made.
// - Each bucket's graphs have a pool of their own, because they are destroyed alone. They share
// parameters, gradients, optimizer
//   state and random numbers with each other and with eager steps.
// - evaluate() is eager, at the lengths of its batch.
// - Refuses other engines, an optimizer graph, a bound below one, buckets that are not ascending,
// an evaluation or step after
//   drop_graphs(), and, as its engines do, the plain RNG tracker.
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

class ShapeBuckets final : public Engine {
 public:
  struct Buckets {
    std::vector<std::int64_t> lengths;  // ascending
    std::int64_t bound = 1;             // of how many there are graphs at once
  };
  /// What the latest step did. length: that it was padded to.
  struct Step {
    std::int64_t length = 0;
    bool replayed = false, captured = false;
    std::vector<std::int64_t> evicted;
  };

  ShapeBuckets(const EngineConfig& config, capture::Device& device, c10::Stream stream,
               workloads::TrainStep& step, Observer* observer, Buckets buckets);
  ~ShapeBuckets() override;

  void step(const workloads::Batch& batch, double learning_rate) override {
    this->step(batch, learning_rate, longest(batch));
  }
  /// The same where ranks have microbatches of other lengths: `longest` of any of them.
  void step(const workloads::Batch& batch, double learning_rate, std::int64_t longest);
  void evaluate(const workloads::Batch& batch) override;
  std::vector<NamedTensor> outputs() override;
  at::Tensor losses() override;
  /// Of all buckets so far; graphs are those alive, and drops_in_flight buckets that went before
  /// their latest replay had ended.
  Counters counters() const override;
  void drop_graphs() override;

  const Step& latest() const { return latest_; }
  /// Lengths that have graphs, the latest used first.
  std::vector<std::int64_t> resident() const;

 private:
  struct Resident {
    std::int64_t length;
    std::unique_ptr<Engine> engine;
    std::unique_ptr<c10::Event> replayed;  // recorded behind its latest replay
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
  std::list<Resident> residents_;              // the latest used first
  std::map<std::int64_t, std::int64_t> uses_;  // eager ones of a bucket
  Counters earlier_;                           // of buckets that went, and eager steps
  Step latest_;
  bool dropped_ = false;
};

}  // namespace graphproof::engines
