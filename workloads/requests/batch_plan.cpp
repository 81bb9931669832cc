#include "workloads/requests/batch_plan.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

namespace graphproof::requests {
namespace {

/// The slots, blocks and requests of one rank over the steps.
class RankQueue {
 public:
  RankQueue(const Settings& settings, std::int64_t rank)
      : settings_(settings), rank_(rank), running_(static_cast<std::size_t>(settings.slots)) {
    for (std::int64_t block = settings.all_blocks(); block > 0; --block) free_.push_back(block - 1);
  }

  /// Ends finished requests and admits those that have arrived and fit, in their order.
  void begin(std::int64_t step) {
    for (auto& slot : running_)
      if (slot && slot->done == slot->request.kept()) {
        free_.insert(free_.end(), slot->blocks.begin(), slot->blocks.end());
        slot.reset();
      }
    for (;;) {
      const Request next = request(settings_, rank_, next_);
      const auto slot = std::ranges::find_if(running_, [](const auto& one) { return !one; });
      const std::int64_t wanted = (next.kept() + kBlockTokens - 1) / kBlockTokens;
      if (next.arrival > step || slot == running_.end() || wanted > std::ssize(free_)) return;
      Running admitted{.index = next_++, .request = next, .done = 0, .blocks = {}};
      for (std::int64_t k = 0; k < wanted; ++k) {
        admitted.blocks.push_back(free_.back());
        free_.pop_back();
      }
      *slot = std::move(admitted);
    }
  }

  bool prefills() const {
    return std::ranges::any_of(running_, [](const auto& slot) { return slot && slot->prompts(); });
  }
  bool runs() const {
    return std::ranges::any_of(running_, [](const auto& slot) { return slot.has_value(); });
  }

  /// The rows of a step in which all ranks do `work`.
  Step take(Work work) {
    Step step{.work = work, .rows = {}, .size = 0, .graph = false, .sampled = 0, .tables = {}};
    for (std::size_t slot = 0; slot < running_.size(); ++slot) {
      auto& one = running_[slot];
      if (!one || one->prompts() != (work == Work::prefill)) continue;
      const std::int64_t left = one->request.prompt - one->done;
      const std::int64_t tokens = work == Work::decode   ? 1
                                  : settings_.chunk == 0 ? left
                                                         : std::min(settings_.chunk, left);
      for (std::int64_t k = 0; k < tokens; ++k)
        step.rows.push_back({one->index, static_cast<std::int64_t>(slot), one->done++});
      if (!one->prompts()) ++step.sampled;
      if (work == Work::prefill) break;
    }
    for (const auto& one : running_) {
      std::vector<std::int64_t> table = one ? one->blocks : std::vector<std::int64_t>{};
      table.resize(static_cast<std::size_t>(settings_.blocks_of_request()), kNoBlock);
      step.tables.push_back(std::move(table));
    }
    return step;
  }

 private:
  struct Running {
    std::int64_t index = 0;
    Request request;
    std::int64_t done = 0;  // tokens whose keys and values are kept
    std::vector<std::int64_t> blocks;
    bool prompts() const { return done < request.prompt; }
  };

  const Settings& settings_;
  const std::int64_t rank_;
  std::vector<std::optional<Running>> running_;  // by slot
  std::vector<std::int64_t> free_;               // the last one is given out first
  std::int64_t next_ = 0;
};

void check(const Settings& settings) {
  if (settings.all_blocks() < settings.blocks_of_request())
    throw std::invalid_argument(
        "a key-value cache of " + std::to_string(settings.all_blocks()) + " blocks of " +
        std::to_string(kBlockTokens) + " tokens; want at least " +
        std::to_string(settings.blocks_of_request()) + " for a request of " +
        std::to_string(settings.length) + " tokens, which would otherwise wait for ever");
  if (!std::ranges::is_sorted(settings.sizes, std::less_equal<>()))
    throw std::invalid_argument("batch sizes that do not ascend");
}

}  // namespace

std::vector<std::int64_t> powers_of_two(std::int64_t largest) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 1; size < largest; size *= 2) sizes.push_back(size);
  sizes.push_back(largest);
  return sizes;
}

std::vector<std::int64_t> batch_sizes(const std::vector<std::string>& listed,
                                      std::int64_t largest) {
  if (listed.empty()) return powers_of_two(largest);
  std::vector<std::int64_t> sizes;
  for (const std::string& size : listed) sizes.push_back(std::stoll(size));
  std::ranges::sort(sizes);
  return sizes;
}

std::int64_t rollout_steps(std::int64_t length) { return 3 * length; }

std::optional<std::int64_t> padded_size(const std::vector<std::int64_t>& sizes, std::int64_t rows) {
  const auto found = std::ranges::lower_bound(sizes, rows);
  return found == sizes.end() ? std::nullopt : std::optional(*found);
}

/// A wave has one request more than there are slots, so that one has to wait. Prompts and outputs
/// take every length up to half of the most; the first request has a prompt of a single token. The
/// waves of every other rank are shifted by half a wave, so that it is idle while its neighbours
/// work.
Request request(const Settings& settings, std::int64_t rank, std::int64_t index) {
  const std::int64_t half = std::max<std::int64_t>(1, settings.length / 2);
  const std::int64_t in_wave = settings.slots + 1;
  const std::int64_t number = index + 3 * rank;
  const std::int64_t wave = rollout_steps(settings.length);
  return {.prompt = 1 + number * 5 % half,
          .output = 1 + (number * 7 + 3) % half,
          .arrival = index / in_wave * wave + index % in_wave * 2 + rank % 2 * wave / 2 + rank / 2};
}

std::int64_t prompt_token(std::int64_t rank, std::int64_t request, std::int64_t position,
                          std::int64_t vocab) {
  return (rank * 37 + request * 11 + position * 29 + 5) % vocab;
}

Ended ended(const Settings& settings, std::int64_t rank, const std::vector<Step>& steps) {
  std::map<std::int64_t, std::int64_t> sampled;  // by request
  for (const Step& step : steps)
    for (auto row = step.rows.end() - step.sampled; row != step.rows.end(); ++row)
      ++sampled[row->request];
  Ended all;
  for (const auto& [index, tokens] : sampled)
    if (tokens == request(settings, rank, index).output) {
      ++all.requests;
      all.tokens += tokens;
    }
  return all;
}

std::vector<std::vector<Step>> plan(const Settings& settings) {
  check(settings);
  std::vector<RankQueue> queues;
  for (std::int64_t rank = 0; rank < settings.ranks; ++rank) queues.emplace_back(settings, rank);
  std::vector<std::vector<Step>> steps(queues.size());
  for (std::int64_t index = 0; index < settings.steps; ++index) {
    for (RankQueue& queue : queues) queue.begin(index);
    const Work work = std::ranges::any_of(queues, &RankQueue::prefills) ? Work::prefill
                      : std::ranges::any_of(queues, &RankQueue::runs)   ? Work::decode
                                                                        : Work::idle;
    std::int64_t rows = 0;
    for (std::size_t rank = 0; rank < queues.size(); ++rank) {
      steps[rank].push_back(queues[rank].take(work));
      rows = std::max(rows, std::ssize(steps[rank].back().rows));
    }
    std::int64_t size = rows;
    bool graph = work == Work::prefill && settings.chunk > 0;
    if (graph) size = settings.chunk;
    if (const auto padded = padded_size(settings.sizes, rows); work == Work::decode && padded) {
      size = *padded;
      graph = true;
    }
    for (auto& of_rank : steps) {
      of_rank.back().size = size;
      of_rank.back().graph = graph;
    }
  }
  return steps;
}

}  // namespace graphproof::requests
