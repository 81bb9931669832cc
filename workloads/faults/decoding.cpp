// Faults in how an inference job pads its batches and treats what its graphs return.
#include "workloads/engines/decoding/decoder.h"
#include "workloads/faults/planted.h"

namespace graphproof::faults {
namespace {

using engines::PaddedBatch;
using requests::Work;

/// Changes how batches are put together: those of graphs, or all.
class BatchFault final : public Planted {
 public:
  using Change = std::function<void(PaddedBatch&, const workloads::Layout&)>;
  BatchFault(bool graphs_only, Change change)
      : graphs_only_(graphs_only), change_(std::move(change)) {}
  void padded_batch(PaddedBatch& batch) override {
    if (batch.graph || !graphs_only_) change_(batch, layout());
  }

 private:
  const bool graphs_only_;
  const Change change_;
};

/// Experts take no more than an even share of a batch, as in training, and later rows first. In
/// graphs alone, whose padded rows are routed too, or in the rows of requests in every arm.
class EvenShares final : public Planted {
 public:
  explicit EvenShares(bool with_padding) : with_padding_(with_padding) {}
  void plan_step(const StepPlan& plan) override {
    Planted::plan_step(plan);
    topk_ = plan.config.topk;
  }
  void padded_batch(PaddedBatch& batch) override {
    if (with_padding_ && batch.graph) batch.routed = batch.size;
    rows_ = batch.size;
  }
  at::Tensor dispatched(const at::Tensor& fitting, std::int64_t capacity) override {
    // A pass over whole sequences has more rows than a batch.
    if (!recording() && (with_padding_ || capacity != rows_)) return fitting;
    const std::int64_t experts = fitting.size(1),
                       share = (capacity * topk_ + experts - 1) / experts;
    const at::Tensor place = fitting.to(at::kLong).flip(0).cumsum(0).flip(0);
    return fitting.logical_and(place.le(share));
  }

 private:
  const bool with_padding_;
  std::int64_t topk_ = 0, rows_ = 0;
};

/// A graph dispatches by the assignments that its layer's warm-up has made.
class RoutingFrozen final : public Planted {
 public:
  at::Tensor dispatched(const at::Tensor& fitting, std::int64_t) override {
    if (!recording()) {
      latest_ = fitting.clone();
      return fitting;
    }
    kept_.push_back(latest_);  // the graph refers to it
    return latest_;
  }

 private:
  at::Tensor latest_;
  std::vector<at::Tensor> kept_;
};

/// Every graph goes into a pool of its own.
class PoolForEverySize final : public FaultHooks {
 public:
  void before_capture(const engines::CaptureParts& parts,
                      engines::CaptureRequest& request) override {
    request.pool = parts.device.make_pool();
  }
};

std::shared_ptr<FaultHooks> fault(BatchFault::Change change) {
  return std::make_shared<BatchFault>(/*graphs_only=*/true, std::move(change));
}
std::shared_ptr<FaultHooks> fault_of_all_arms(BatchFault::Change change) {
  return std::make_shared<BatchFault>(/*graphs_only=*/false, std::move(change));
}

}  // namespace

/// The rows after the last real one keep the slots, positions and blocks that requests of an
/// earlier batch had there.
std::shared_ptr<FaultHooks> padded_length_not_reset() {
  return fault([](PaddedBatch& batch, const workloads::Layout&) { batch.copied = batch.rows; });
}
/// What attention needs is computed from the real rows alone, before the batch is padded.
std::shared_ptr<FaultHooks> metadata_made_before_padding() {
  return fault([](PaddedBatch& batch, const workloads::Layout&) { batch.described = batch.rows; });
}
/// A block number of -1 is taken for the last block of the cache.
std::shared_ptr<FaultHooks> missing_block_read_as_last() {
  return fault([](PaddedBatch& batch, const workloads::Layout&) { batch.entries_from_end = true; });
}
/// The results of the last rows of the graph are read, as if the padding came first.
std::shared_ptr<FaultHooks> padded_row_read_as_real() {
  return fault([](PaddedBatch& batch, const workloads::Layout&) {
    batch.first_read = batch.size - batch.rows;
  });
}
/// The sampler draws for every row of the graph, and the real rows get the numbers of others.
std::shared_ptr<FaultHooks> sampler_sees_padding() {
  return fault([](PaddedBatch& batch, const workloads::Layout&) {
    if (batch.drawn > 0) batch.drawn = batch.size;
  });
}
/// The second data parallel rank pads to the largest size, without asking the others.
std::shared_ptr<FaultHooks> rank_chooses_other_size() {
  return fault([](PaddedBatch& batch, const workloads::Layout& layout) {
    if (layout.dp_rank != 1 || batch.work != Work::decode || batch.size >= 4) return;
    batch.size = batch.copied = batch.described = 4;
  });
}
/// A prompt of which one token is left looks like a request that decodes.
std::shared_ptr<FaultHooks> single_token_prompt_decoded() {
  return fault([](PaddedBatch& batch, const workloads::Layout&) {
    if (batch.work != Work::prefill || batch.rows != 1) return;
    batch.work = Work::decode;
    batch.size = batch.copied = batch.described = 1;
  });
}
/// The rows of a rank without work have blocks that requests may own.
std::shared_ptr<FaultHooks> dummy_request_writes_state() {
  return fault([](PaddedBatch& batch, const workloads::Layout&) {
    batch.blocks_of_padding = batch.rows == 0;
  });
}

/// A padded row counts as a token of the request of the last row.
std::shared_ptr<FaultHooks> padded_row_moves_state() {
  return fault([](PaddedBatch& batch, const workloads::Layout&) {
    batch.padding_continues = batch.work == Work::decode && batch.rows > 0;
  });
}
/// The rows of a rank without work count as tokens of the request in slot 0.
std::shared_ptr<FaultHooks> dummy_request_moves_state() {
  return fault([](PaddedBatch& batch, const workloads::Layout&) {
    batch.padding_continues = batch.work == Work::decode && batch.rows == 0;
  });
}
/// The padding of a chunk counts as a part of its prompt.
std::shared_ptr<FaultHooks> chunk_padding_moves_state() {
  return fault([](PaddedBatch& batch, const workloads::Layout&) {
    batch.padding_continues = batch.work == Work::prefill;
  });
}
/// Which requests begin stays as it was in the capture, whose padding begins in every step.
std::shared_ptr<FaultHooks> state_reset_frozen() {
  return fault([](PaddedBatch& batch, const workloads::Layout&) { batch.reset_described = false; });
}
/// The rows of a rank without work choose experts.
std::shared_ptr<FaultHooks> dummy_request_is_routed() {
  return fault([](PaddedBatch& batch, const workloads::Layout&) {
    if (batch.rows == 0) batch.routed = batch.size;
  });
}
std::shared_ptr<FaultHooks> padded_rows_take_capacity() {
  return std::make_shared<EvenShares>(/*with_padding=*/true);
}
std::shared_ptr<FaultHooks> routing_frozen() { return std::make_shared<RoutingFrozen>(); }

/// Padded rows choose experts, in eager batches and in graphs alike.
std::shared_ptr<FaultHooks> padded_rows_are_routed() {
  return fault_of_all_arms(
      [](PaddedBatch& batch, const workloads::Layout&) { batch.routed = batch.size; });
}
/// Experts drop what exceeds their capacity of training, in every arm.
std::shared_ptr<FaultHooks> capacity_of_training() {
  return std::make_shared<EvenShares>(/*with_padding=*/false);
}
/// A request goes on with the state that the one before it in its slot has left, in every arm.
std::shared_ptr<FaultHooks> state_not_reset() {
  return fault_of_all_arms(
      [](PaddedBatch& batch, const workloads::Layout&) { batch.states_reset = false; });
}
/// The rows of padding have the first blocks of the cache, in eager batches and in graphs alike.
std::shared_ptr<FaultHooks> padding_has_blocks() {
  return fault_of_all_arms(
      [](PaddedBatch& batch, const workloads::Layout&) { batch.blocks_of_padding = true; });
}
std::shared_ptr<FaultHooks> pool_for_every_size() { return std::make_shared<PoolForEverySize>(); }
/// A request goes on counting where the one before it in its slot ended.
std::shared_ptr<FaultHooks> request_length_not_reset() {
  return fault_of_all_arms(
      [](PaddedBatch& batch, const workloads::Layout&) { batch.length_kept = true; });
}

}  // namespace graphproof::faults
