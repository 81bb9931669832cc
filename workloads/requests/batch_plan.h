// The batches of an inference job: which requests arrive, which of their tokens each step computes,
// where their keys and values are kept, and to which size a batch is padded. Follows the dynamic
// batching of Megatron-LM (megatron/core/inference/contexts/dynamic_context.py) without its limits
// of time: what a step does depends on the number of the step alone, so a plan can be made before
// the job, on every rank for every rank, and by the judge.
//
// Requests come in waves with pauses, so that batches grow, shrink and vanish. A request holds one
// slot and the blocks of its whole length from its admission to its end. In a step either one
// request computes a chunk of its prompt (prefill), or every running request computes one token
// (decode). A prompt goes first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace graphproof::requests {

/// Tokens in a block of the key-value cache.
inline constexpr std::int64_t kBlockTokens = 4;
/// In a table of blocks: no block.
inline constexpr std::int64_t kNoBlock = -1;

/// One request. It arrives before step `arrival`.
struct Request {
  std::int64_t prompt = 1;  // tokens, at least one
  std::int64_t output = 1;  // tokens that are sampled, at least one
  std::int64_t arrival = 0;
  /// The tokens whose keys and values are kept. The last sampled token is never an input.
  std::int64_t kept() const { return prompt + output - 1; }
};

/// What a plan depends on.
struct Settings {
  std::int64_t slots = 2;    // the most requests that run at once
  std::int64_t length = 16;  // the most tokens of a request
  std::int64_t steps = 5;
  std::int64_t chunk = 0;   // tokens of a prompt in one step; 0: the whole prompt
  std::int64_t blocks = 0;  // of the cache of a rank; 0: enough for every slot
  std::int64_t ranks = 1;   // data parallel ranks, each with requests of its own
  /// The batch sizes of the graphs that decode, ascending.
  std::vector<std::int64_t> sizes;

  std::int64_t blocks_of_request() const { return (length + kBlockTokens - 1) / kBlockTokens; }
  std::int64_t all_blocks() const { return blocks > 0 ? blocks : slots * blocks_of_request(); }
};

/// One token of a batch.
struct Row {
  std::int64_t request = 0, slot = 0, position = 0;
  bool operator==(const Row&) const = default;
};

enum class Work { idle, prefill, decode };

/// What one rank does in one step.
struct Step {
  Work work = Work::idle;    // of all ranks: idle only if every rank is
  std::vector<Row> rows;     // none: this rank computes with padding alone
  std::int64_t size = 0;     // the rows with padding, the same on all ranks
  bool graph = false;        // whether a graph has this size
  std::int64_t sampled = 0;  // the last rows, as many as get a next token
  /// By slot: the blocks of the request in it, kNoBlock where there is none.
  std::vector<std::vector<std::int64_t>> tables;
};

/// The sizes 1, 2, 4 and so on below `largest`, and `largest`.
std::vector<std::int64_t> powers_of_two(std::int64_t largest);

/// The value of axis batch_sizes as numbers, ascending; powers_of_two(largest) if it is empty.
std::vector<std::int64_t> batch_sizes(const std::vector<std::string>& listed, std::int64_t largest);

/// The steps of one rollout of schedule train-rollout-train, for requests of `length` tokens at
/// most: one wave of requests on every rank.
std::int64_t rollout_steps(std::int64_t length);

/// The smallest of `sizes` (ascending) that holds `rows`; nothing if none does.
std::optional<std::int64_t> padded_size(const std::vector<std::int64_t>& sizes, std::int64_t rows);

/// Request `index` of rank `rank`, from 0.
Request request(const Settings& settings, std::int64_t rank, std::int64_t index);

/// Token `position` of the prompt of a request, in 0 .. vocab - 1.
std::int64_t prompt_token(std::int64_t rank, std::int64_t request, std::int64_t position,
                          std::int64_t vocab);

/// The requests of rank `rank` that get all their tokens in its steps, and how many they are.
struct Ended {
  std::int64_t requests = 0, tokens = 0;
};
Ended ended(const Settings& settings, std::int64_t rank, const std::vector<Step>& steps);

/// The steps of every rank: plan[rank][step]. Throws std::invalid_argument if a request of
/// settings.length tokens does not fit into the blocks, or if sizes are not ascending.
std::vector<std::vector<Step>> plan(const Settings& settings);

}  // namespace graphproof::requests
