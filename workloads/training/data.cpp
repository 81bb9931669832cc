#include "workloads/training/data.h"

#include <algorithm>
#include <string>

#include "workloads/layers/context_parallel.h"
#include "workloads/parameters/draw.h"

namespace graphproof::workloads {
namespace {

/// The document number of each of the `length` tokens of a sequence. The first document has at
/// least two tokens, so that at least one token has a loss, and at most a quarter of the sequence
/// is padding.
std::vector<std::int64_t> documents_of(const Draw& draw, std::int64_t length) {
  const std::int64_t padding = draw.below(length / 4 + 1, 0),
                     longest = std::max<std::int64_t>(2, length / 2);
  std::vector<std::int64_t> documents;
  const auto end = static_cast<std::size_t>(length - padding);
  for (std::int64_t document = 0; documents.size() < end; ++document) {
    const auto tokens =
        static_cast<std::size_t>((document == 0 ? 2 : 1) + draw.below(longest - 1, document + 1));
    documents.resize(std::min(end, documents.size() + tokens), document);
  }
  documents.resize(static_cast<std::size_t>(length), -1);
  return documents;
}

}  // namespace

Batch make_batch(const ModelConfig& config, const Layout& layout, std::uint64_t seed,
                 std::int64_t step, at::Device device) {
  const std::int64_t rows = config.microbatch_size, length = config.seq_length;
  const at::Tensor positions = own_positions(config, layout);
  Batch batch;
  for (std::int64_t m = 0; m < config.microbatches; ++m) {
    // One token more than the length, because labels are the tokens shifted by one.
    std::vector<std::int64_t> drawn, documents;
    for (std::int64_t b = 0; b < rows; ++b) {
      const std::int64_t sequence = (layout.dp_rank * config.microbatches + m) * rows + b;
      const Draw draw(seed, "sample." + std::to_string(step) + "." + std::to_string(sequence));
      for (std::int64_t s = 0; s <= length; ++s) drawn.push_back(draw.below(config.vocab, s));
      if (!config.packed) continue;
      const Draw packing(seed, "packing." + std::to_string(step) + "." + std::to_string(sequence));
      for (const std::int64_t document : documents_of(packing, length))
        documents.push_back(document);
    }
    const at::Tensor text = at::from_blob(drawn.data(), {rows, length + 1}, at::kLong);
    batch.tokens.push_back(text.index_select(1, positions).to(device));
    batch.labels.push_back(text.index_select(1, positions + 1).to(device));
    if (!config.packed) continue;
    const at::Tensor document = at::from_blob(documents.data(), {rows, length}, at::kLong);
    at::Tensor counted = at::zeros({rows, length}, at::kFloat);
    counted.narrow(1, 0, length - 1)
        .copy_(document.narrow(1, 1, length - 1).eq(document.narrow(1, 0, length - 1)));
    counted.mul_(document.ge(0));
    batch.documents.push_back(document.clone().to(device));
    batch.weights.push_back(
        (counted.index_select(1, positions) * layout.cp / counted.sum()).to(device));
  }
  return batch;
}

}  // namespace graphproof::workloads
