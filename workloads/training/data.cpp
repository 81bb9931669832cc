#include "workloads/training/data.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "workloads/layers/context_parallel.h"
#include "workloads/layers/tensor_parallel.h"
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

void require_room(const ModelConfig& config) {
  constexpr std::int64_t kPatches = ModelConfig::kPatches;
  const std::int64_t needed = config.microbatch_size * config.images * kPatches;
  if (needed > config.encoder_length())
    throw std::invalid_argument(
        "images: got up to " + std::to_string(needed) +
        " image tokens in a microbatch; want at most " + std::to_string(config.encoder_length()) +
        ", the encoder's length; why: rule B21, its graphs have room for "
        "that many; next: raise vision_seq_length or vision_positions, or lower images");
  if (config.images * kPatches > config.seq_length)
    throw std::invalid_argument("images: got up to " + std::to_string(config.images) +
                                " images of " + std::to_string(kPatches) +
                                " tokens in a sequence of " + std::to_string(config.seq_length) +
                                " tokens; want them to fit; why: image tokens take the places of "
                                "tokens of the sequence; next: raise seq_length or lower images");
}

/// [B * A + 1] int64: which of this rank's N rows outside of tensor parallel regions has each token
/// of the sequences, in the order of these; N for those of other ranks, and at the end.
at::Tensor own_rows(const ModelConfig& config, const Layout& layout) {
  const std::int64_t all = config.microbatch_size * config.seq_length,
                     own = config.microbatch_size * layout.own_length(config) /
                           layout.sequence_parts();
  const at::Tensor tokens = rows_of(at::arange(all, at::kLong)
                                        .view({config.microbatch_size, config.seq_length})
                                        .index_select(1, own_positions(config, layout)),
                                    layout);
  const std::int64_t part = layout.sequence_parallel ? layout.tp_rank : 0;
  return at::full({all + 1}, own, at::kLong)
      .index_copy(0, tokens.narrow(0, part * own, own), at::arange(own, at::kLong));
}

/// Adds the images of a microbatch whose first sequence is number `first` of the global batch.
/// Returns where their first tokens are among the B * A tokens of the sequences, in ascending
/// order.
std::vector<std::int64_t> add_images(Batch& batch, const ModelConfig& config, const Layout& layout,
                                     std::uint64_t seed, std::int64_t step, std::int64_t first,
                                     at::Device device) {
  std::vector<std::int64_t> begins;
  constexpr std::int64_t kPatches = ModelConfig::kPatches;
  const std::int64_t length = config.encoder_length(), rows = config.microbatch_size;
  at::Tensor patches = at::zeros({length, config.token_numbers()}, at::kFloat),
             images = at::full({1, length}, -1, at::kLong),
             image_rows = at::full({length}, rows * config.seq_length, at::kLong);
  std::int64_t token = 0;
  for (std::int64_t b = 0; b < rows; ++b) {
    const Draw draw(seed, "images." + std::to_string(step) + "." + std::to_string(first + b));
    const std::int64_t count =
        config.image_counts == ImageCounts::variable ? draw.below(config.images + 1, 0)
        : config.image_counts == ImageCounts::late && step < kFirstStepWithImages ? 0
                                                                                  : config.images;
    const std::int64_t room = config.seq_length / config.images;  // each image has its own part
    std::int64_t drawn = 1;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t begin = i * room + draw.below(room - kPatches + 1, drawn++);
      begins.push_back(b * config.seq_length + begin);
      for (std::int64_t p = 0; p < kPatches; ++p, ++token) {
        for (std::int64_t x = 0; x < config.token_numbers(); ++x)
          patches[token][x] = draw.uniform(drawn++);
        images[0][token] = b * config.images + i;
        image_rows[token] = b * config.seq_length + begin + p;
      }
    }
  }
  batch.patches.push_back(patches.to(device));
  batch.images.push_back(images.to(device));
  batch.image_rows.push_back(own_rows(config, layout).index_select(0, image_rows).to(device));
  return begins;
}

/// Moves borders of documents [B * A] out of the images that begin at `begins`, and padding after
/// them.
void keep_whole(std::vector<std::int64_t>& documents, const std::vector<std::int64_t>& begins) {
  for (const std::int64_t begin : begins) {
    const auto image = documents.begin() + begin;
    // The first token of a sequence is never padding.
    auto text = image;
    while (*text < 0) --text;
    std::fill(text, image + ModelConfig::kPatches, *text);
  }
}

}  // namespace

Batch make_batch(const ModelConfig& config, const Layout& layout, std::uint64_t seed,
                 std::int64_t step, at::Device device) {
  const std::int64_t rows = config.microbatch_size, length = config.seq_length;
  const at::Tensor positions = own_positions(config, layout);
  if (config.encoder_layers > 0) require_room(config);
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
    if (config.paged_stash)
      batch.expert_pull.push_back(at::zeros({config.experts}, at::kFloat).to(device));
    if (config.encoder_layers > 0) {
      const std::vector<std::int64_t> begins =
          add_images(batch, config, layout, seed, step,
                     (layout.dp_rank * config.microbatches + m) * rows, device);
      if (config.packed) keep_whole(documents, begins);
    }
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

Batch with_expert_pull(Batch batch, std::int64_t experts) {
  for (at::Tensor& pull : batch.expert_pull) {
    pull = at::zeros_like(pull);
    pull.narrow(-1, 0, experts).fill_(kStrongestPull);
  }
  return batch;
}

at::Tensor pull_in_circle(std::int64_t tokens, std::int64_t experts, std::int64_t topk,
                          std::int64_t first, std::int64_t circle) {
  const at::Tensor begins =
      (at::arange(tokens, at::kLong) + first).remainder(circle).unsqueeze(1);  // [N, 1]
  const at::Tensor distance =
      (at::arange(experts, at::kLong).unsqueeze(0) - begins).remainder(experts);  // [N, E]
  return distance.lt(topk).to(at::kFloat);
}

Batch with_image_padding(Batch batch, double number) {
  for (std::size_t m = 0; m < batch.patches.size(); ++m)
    batch.patches[m] = batch.patches[m].masked_fill(batch.images[m].lt(0).t(), number);
  return batch;
}

}  // namespace graphproof::workloads
