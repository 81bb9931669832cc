#include "workloads/data.h"

#include <string>

#include "workloads/context_parallel.h"
#include "workloads/draw.h"

namespace graphproof::workloads {

Batch make_batch(const ModelConfig& config, const Layout& layout, std::uint64_t seed, std::int64_t step,
                 at::Device device) {
  const std::int64_t rows = config.microbatch_size, length = config.seq_length;
  const at::Tensor positions = own_positions(config, layout);
  Batch batch;
  for (std::int64_t m = 0; m < config.microbatches; ++m) {
    // One token more than the length: labels are the tokens moved by one.
    std::vector<std::int64_t> drawn;
    for (std::int64_t b = 0; b < rows; ++b) {
      const std::int64_t sequence = (layout.dp_rank * config.microbatches + m) * rows + b;
      const Draw draw(seed, "sample." + std::to_string(step) + "." + std::to_string(sequence));
      for (std::int64_t s = 0; s <= length; ++s) drawn.push_back(draw.below(config.vocab, s));
    }
    const at::Tensor text = at::from_blob(drawn.data(), {rows, length + 1}, at::kLong);
    batch.tokens.push_back(text.index_select(1, positions).to(device));
    batch.labels.push_back(text.index_select(1, positions + 1).to(device));
  }
  return batch;
}

}  // namespace graphproof::workloads
