#include "workloads/forward/dropout.h"

#include <string>

namespace graphproof::workloads {
namespace {

struct Site {
  const char* name;
  bool tensor_parallel;  // inside a tensor parallel region
};
// In the order of DropoutSite.
constexpr std::array<Site, 4> kSites{
    {{"core_attention", true}, {"attention", false}, {"mlp", false}, {"mamba", false}}};

// The distance between the seeds of two recomputed sites. Larger than the seed offsets of pipeline
// stages (steps of 100) and tensor parallel ranks (from 2718), of which there are at most 64.
constexpr std::uint64_t kRegionSeedOffset = 16384;

const Site& site_of(DropoutPlace place) { return kSites[static_cast<std::size_t>(place.site)]; }

/// The index of a mask: layer by layer, within a layer first the masks of the forward and then
/// those of recompute.
std::size_t index_of(DropoutPlace place) {
  return (static_cast<std::size_t>(place.layer) * 2 + (place.again ? 1 : 0)) * kSites.size() +
         static_cast<std::size_t>(place.site);
}

/// All places, in the order of index_of().
std::vector<DropoutPlace> dropout_places(std::int64_t layers) {
  std::vector<DropoutPlace> all;
  for (std::int64_t layer = 0; layer < layers; ++layer)
    for (const bool again : {false, true})
      for (const DropoutSite site : {DropoutSite::core_attention, DropoutSite::attention,
                                     DropoutSite::mlp, DropoutSite::mamba})
        all.push_back({layer, site, again});
  return all;
}

/// The region of a recomputed site, which draws the same numbers a second time.
std::string own_region(DropoutPlace place) {
  return std::string(site_of(place).name) + "." + std::to_string(place.layer);
}

}  // namespace

Dropout::Dropout(const ModelConfig& config, const Layout& layout, fixtures::RngTracker& tracker,
                 std::uint64_t seed, at::Device device, faults::FaultHooks& faults)
    : config_(config), layout_(layout), tracker_(tracker), faults_(faults) {
  if (config.dropout == 0) return;
  const auto bytes = at::TensorOptions().dtype(at::kByte).device(device);
  const std::int64_t rows = config.microbatch_size, length = layout.own_length(config);
  running_ = RunningMicrobatch(config.microbatches, device);
  const std::int64_t layers = config.first_encoder_layer();
  for (const DropoutPlace& place : dropout_places(layers)) {
    if ((place.site == DropoutSite::mamba) != config.mamba(place.layer)) {
      by_place_.emplace_back();
      continue;
    }
    if (recomputed(place) && !place.again) {
      const std::uint64_t site = static_cast<std::uint64_t>(place.site),
                          all = static_cast<std::uint64_t>(layers);
      tracker.add(
          own_region(place),
          seed + kRegionSeedOffset * (site * all + static_cast<std::uint64_t>(place.layer) + 1) +
              (differs_by_rank(place.site)
                   ? fixtures::kModelParallelSeedOffset + static_cast<std::uint64_t>(layout.tp_rank)
                   : 0));
      tracker.add_repeat(own_region(place));
    }
    const std::vector<std::int64_t> shape =
        site_of(place).tensor_parallel
            ? std::vector<std::int64_t>{config.microbatches, rows * config.kv_groups / layout.tp,
                                        config.heads / config.kv_groups * length, config.seq_length}
            : std::vector<std::int64_t>{config.microbatches,
                                        rows * length / layout.sequence_parts(), config.hidden};
    by_place_.push_back(layout.holds(config, place.layer) && (!place.again || recomputed(place))
                            ? at::zeros(shape, bytes)
                            : at::Tensor());
  }
  for (std::int64_t m = 0; m < config.microbatches; ++m)
    for (const DropoutPlace& place : dropout_places(layers))
      if (const at::Tensor& masks = by_place_[index_of(place)]; masks.defined())
        masks_.push_back({"mask:" + std::to_string(m) + "." + std::to_string(place.layer) + "." +
                              site_of(place).name + (place.again ? "_again" : ""),
                          masks.select(0, m)});
}

void Dropout::begin(std::int64_t microbatch) {
  if (config_.dropout > 0) running_.begin(microbatch);
}

at::Tensor Dropout::apply(const at::Tensor& x, DropoutPlace place) {
  if (config_.dropout == 0 || evaluating_) return x;
  return apply(x, mask(x.sizes(), x.options(), place));
}

at::Tensor Dropout::mask(at::IntArrayRef sizes, const at::TensorOptions& options,
                         DropoutPlace place) {
  if (config_.dropout == 0 || evaluating_) return {};
  at::Tensor mask;
  DropoutPlace drawn_as = place;
  faults_.dropout_mask(mask, drawn_as, sizes, options, config_.dropout);
  if (!mask.defined()) mask = drawn_mask(sizes, options, drawn_as);
  // Of a shorter sequence (lengths.h) the front of the rows is written.
  at::Tensor rows = by_place_[index_of(place)];
  for (std::int64_t d = 0; d < mask.dim(); ++d) rows = rows.narrow(d + 1, 0, mask.size(d));
  running_.write(rows, mask);
  return mask;
}

at::Tensor Dropout::apply(const at::Tensor& x, const at::Tensor& mask) const {
  return mask.defined() ? x * mask * (1.0 / (1.0 - config_.dropout)) : x;
}

std::string Dropout::region_of(DropoutPlace place) const {
  if (recomputed(place)) return own_region(place) + (place.again ? ".repeat" : "");
  return std::string(differs_by_rank(place.site) ? fixtures::kModelParallelRegion
                                                 : fixtures::kDataParallelRegion);
}

bool Dropout::recomputed(DropoutPlace place) const {
  const std::int64_t of_chunk = layout_.chunk_layers(config_);
  if (config_.recompute.full() && place.layer >= config_.layers)
    return config_.recompute.of_prediction_layers();
  if (config_.recompute.full())
    return place.layer % of_chunk < config_.recompute.recomputed_layers(of_chunk);
  return place.site == DropoutSite::core_attention &&
         config_.recompute.of(RecomputedPart::core_attn);
}

bool Dropout::differs_by_rank(DropoutSite site) const {
  return layout_.sequence_parallel || kSites[static_cast<std::size_t>(site)].tensor_parallel;
}

at::Tensor Dropout::drawn_mask(at::IntArrayRef sizes, const at::TensorOptions& options,
                               DropoutPlace place) {
  const auto fork = tracker_.fork(region_of(place));
  return at::empty(sizes, options.dtype(at::kByte).requires_grad(false))
      .bernoulli_(1.0 - config_.dropout, fork.generator());
}

}  // namespace graphproof::workloads
