// One training step of the reference GPT on one rank: model, gradients, optimizer, random numbers. An engine decides
// what of it is captured; this file knows no graphs.
//
// Letters: L layers, S sequence length (tokens), B microbatch size (sequences), H hidden, V vocabulary, M microbatches,
// T tensor parallel size, D data parallel size.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fixtures/capture/device.h"
#include "fixtures/fault.h"

namespace graphproof::workloads {

struct ModelConfig {
  std::int64_t layers = 2, hidden = 64, heads = 4, kv_groups = 4, ffn = 256, vocab = 128;
  std::int64_t seq_length = 16, microbatch_size = 2, microbatches = 1;
  bool qkv_bias = false, linear_bias = false;
  double dropout = 0.0;  // probability
};

/// Where this rank stands. A group of one rank issues no collective; names are those of comm::ProcessGroups.
struct Layout {
  int tp = 1, dp = 1, tp_rank = 0, dp_rank = 0;
  std::string tp_group, dp_group;
};

/// One step's samples of this data parallel rank, on the device.
///   tokens[m]  [B, S]  int64  in
///   labels[m]  [B, S]  int64  in
struct Batch {
  std::vector<at::Tensor> tokens, labels;
};

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// The samples of (seed, step) for data parallel rank `dp_rank`: drawn per sample name, never from layout or impl.
/// `dp` ranks share the global batch of M * B * D sequences; rank r holds sequences [r*B*M, (r+1)*B*M).
Batch make_batch(const ModelConfig& config, const Layout& layout, std::uint64_t seed, std::int64_t step, at::Device device);

class RngTracker;

class TrainStep {
 public:
  /// Builds parameters from (seed, tensor name) as the shard of the full tensor that `layout` holds. Create it with the
  /// stream current on which it will run or be captured: gradient accumulators keep their creation stream.
  TrainStep(const ModelConfig& config, const Layout& layout, capture::Device& device, std::uint64_t seed,
            fixtures::Fault fault);
  ~TrainStep();

  /// Enqueues on the current stream: zero gradients, forward and backward of the M microbatches, then the data
  /// parallel mean of the gradients. No host synchronisation; capturable.
  void forward_backward(const Batch& batch);
  /// Enqueues p -= learning_rate * g for every parameter. The rate is read from learning_rate() on the device.
  void optimizer_step();

  at::Tensor learning_rate();               // [] fp32 in, static
  std::vector<NamedTensor> parameters();    // "param:NAME"
  std::vector<NamedTensor> gradients();     // "grad:NAME", static buffers, same order as parameters()
  at::Tensor losses();                      // [M] fp32 out, static buffer
  std::vector<NamedTensor> masks();         // "mask:m.LAYER", uint8; of the last step; empty without dropout
  at::Tensor layer_counter();               // [L] int64: forwards run by each layer, in device memory outside pools
  RngTracker& rng();
  const ModelConfig& config() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace graphproof::workloads
