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
