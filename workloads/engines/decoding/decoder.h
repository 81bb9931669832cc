// An inference job: the requests of requests::plan(), a static key-value cache, and batches that
// are padded to the sizes of captured graphs. It follows the dynamic inference engine of
// Megatron-LM (inference graphs of impl local with scope layer or block).
//
// Captures. Before the first step, for every size from the largest to the smallest, into one pool,
// so that the smaller graphs reuse the memory of the largest one. A graph of scope block holds the
// model from the lookup of the tokens to the logits, one of scope layer a single layer
// (layer_graphs.h). Prompts have graphs only if they are computed in chunks of one size. A batch
// for which there is no size runs eagerly, with no padding but that which other ranks need.
// Copies. Before each step the rows of the batch go into static tensors on the device. All steps
// are on the device from the beginning, so the host neither waits nor copies between two steps.
// Padding. A padded row belongs to no request: it has no blocks, its slot is one that no request
// gets, what the cache keeps of it goes to entries that no request reads, it chooses no
// experts, and no state of a mamba layer moves on by it. A rank without rows computes with padding
// alone while another rank has work, so that ranks that share experts issue the same exchanges.
// States. Every slot has a state in each mamba layer, which stays where it is over all replays. A
// request that begins takes it for zero, whatever the request before it has left there.
// After the graph, eagerly: the next tokens of the real rows, greedy or drawn at random.
//
// Letters: B slots, M rows of the largest batch, K blocks of a request, S tokens of a request at
// most, V vocabulary, L layers, C entries of the cache, E experts.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "workloads/engines/capture/graph_capture.h"
#include "workloads/engines/decoding/layer_graphs.h"
#include "workloads/forward/cached_tokens.h"
#include "workloads/forward/expert_choices.h"
#include "workloads/requests/batch_plan.h"

namespace graphproof::engines {

/// The values of axis inference_scope.
enum class InferenceScope { none, layer, block };

/// What an inference job is made of.
struct DecoderConfig {
  requests::Settings requests;
  InferenceScope scope = InferenceScope::none;
  bool sampled = false;  // next tokens are drawn at random; otherwise the most probable ones
  /// What padded rows hold as their token and position. No result may depend on it.
  std::int64_t padding = 0;
};

/// How a step puts its batch together, for the hook of planted faults.
struct PaddedBatch {
  bool graph;  // whether a graph computes it
  requests::Work work;
  std::int64_t rows, size;  // without padding, and with it: which graph is launched
  std::int64_t copied;      // rows whose slots, positions and blocks are written: all
  std::int64_t described;   // rows whose entries of the cache and masks are computed: all
  std::int64_t first_read;  // the first row of the graph's result that is read: 0
  std::int64_t drawn;       // rows for which random numbers are drawn: those that are sampled
  bool entries_from_end;    // the entry of a row without a block counts from the end of the cache
  bool blocks_of_padding;   // padded rows have the first blocks of the cache
  bool length_kept;         // positions count from 1, as if the slot had kept a token
  std::int64_t routed;      // rows that choose experts: those of requests
  bool padding_continues;   // padded rows have the slot of the last row, or slot 0
  bool states_reset;        // requests that begin have no state: so it is
  bool reset_described;     // which requests begin is computed: so it is
};

/// The job of one rank. Used by one thread. All work is enqueued on the stream that is current.
class Decoder {
 public:
  /// Copies the plan to the device. `stream` is current; `step` provides the model and outlives it.
  /// `observer` may be null. Throws std::invalid_argument as requests::plan() does.
  Decoder(DecoderConfig config, const EngineConfig& engine, capture::Device& device,
          workloads::TrainStep& step, Observer* observer);
  ~Decoder();

  /// Warms up and captures all sizes. Nothing with scope none. Waits for the device.
  void capture();
  /// Runs step `index`. Every index once, in order. Does not wait for the device.
  void run(std::int64_t index);
  const requests::Step& planned(std::int64_t index) const {
    return steps_.at(static_cast<std::size_t>(index));
  }
  /// What the last step computed: its work, and the rows with padding.
  requests::Work work() const { return work_; }
  std::int64_t size() const { return size_; }
  /// Static: "logits" [B, V] fp32, of the slots that got a token in the last step, otherwise 0;
  /// "tokens" [B] int64, the latest token of each slot; "experts.L" [M, E] bool, the choices of the
  /// rows of the last step, otherwise 0; "keys.L" and "values.L", or "latents.L" with latent
  /// attention, the entries of the cache that requests can have; "states.L" and "windows.L" of
  /// mamba layers, those of all slots.
  std::vector<NamedTensor> results() const;
  /// Waits for the device and destroys the graphs. Idempotent.
  void drop_graphs();

 private:
  /// The batches of one size: their inputs are the first rows of the static tensors.
  struct Batch {
    std::string name;  // "decode.4"
    workloads::CachedTokens cached;
    workloads::ExpertChoices choices;
    at::Tensor slots, tokens, tables, logits;
    std::unique_ptr<capture::Graph> graph;  // of scope block
    bool captured = false;
  };
  Batch& batch(requests::Work work, std::int64_t size);
  void copy_rows(std::int64_t index, std::int64_t rows);
  void describe(const Batch& batch, std::int64_t rows, bool entries_from_end);
  void describe_states(std::int64_t rows, bool reset, bool reset_described);
  void forward(Batch& batch, requests::Work work, workloads::ModuleRunner* runner);
  void launch(Batch& batch, requests::Work work);
  void take_tokens(const requests::Step& planned, const at::Tensor& logits, std::int64_t drawn);
  void capture(Batch& batch, requests::Work work);
  std::vector<NamedTensor> statics(const Batch& batch) const;

  DecoderConfig config_;
  EngineConfig engine_;
  capture::Device& device_;
  workloads::TrainStep& step_;
  Observer silent_;
  Observer& observer_;
  CaptureParts parts_;
  std::vector<requests::Step> steps_;  // of this rank
  std::int64_t most_rows_ = 0, entries_ = 0;
  requests::Work work_ = requests::Work::idle;
  std::int64_t size_ = 0;
  capture::Pool pool_;
  std::unique_ptr<LayerGraphs> layers_;
  std::map<std::string, Batch> batches_;
  at::Generator generator_;
  // The plan on the device, [steps + 1, M] and [steps + 1, M, K] int64; the last entry is padding
  // alone.
  at::Tensor all_slots_, all_positions_, all_tokens_, all_tables_;
  // The static inputs of the graphs, [M], [M, K], [M, S] and [M, 1, S].
  at::Tensor slots_, positions_, tokens_, tables_, written_, read_, mask_;
  at::Tensor requested_;             // [M] bool
  at::Tensor upto_, begins_, last_;  // CachedStates, of the largest batch; only in a hybrid model
  at::Tensor row_numbers_, places_, block_offsets_, slot_numbers_;  // constants [M], [S], [S], [B]
  // L as in CachedTokens.
  std::vector<at::Tensor> keys_, values_, latents_;
  std::vector<at::Tensor> states_, windows_;  // L as in CachedStates; undefined for other layers
  std::vector<at::Tensor> experts_;           // L of [M, E] bool; undefined without experts
  at::Tensor logits_;                         // [M, V] fp32
  at::Tensor latest_;                         // [B + 1] int64
  at::Tensor slot_logits_;                    // [B, V] fp32
};

}  // namespace graphproof::engines
