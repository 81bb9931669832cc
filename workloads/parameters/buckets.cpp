#include "workloads/parameters/buckets.h"

#include <algorithm>
#include <optional>

#include "fixtures/comm/collectives.h"

namespace graphproof::workloads {
namespace {

// Small compared with Megatron-LM's 40 million, so that the models here have several buckets.
constexpr std::int64_t kBucketElements = std::int64_t{1} << 15;

/// Where a parameter begins in the buffer.
struct Place {
  std::int64_t begin;
  std::size_t parameter;
};

std::vector<Place> places_in_order(const Parameters& parameters, const ParameterBuffer& buffer,
                                   bool expert) {
  std::vector<Place> places;
  for (std::size_t i = 0; i < parameters.all().size(); ++i)
    if (parameters.shards()[i].expert == expert) places.push_back({buffer.begin(i), i});
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.begin < b.begin; });
  return places;
}

/// Appends the buckets of the parameters at `places`, which end at element `end`. A bucket ends
/// before the first parameter that begins `least` elements or more after the bucket's beginning.
/// `alone`: a parameter that gets its own bucket, if any.
void cut(std::vector<Bucket>& buckets, const std::vector<Place>& places, std::int64_t end,
         std::int64_t least, const std::string& group, std::optional<std::size_t> alone) {
  const std::size_t first = buckets.size();
  std::optional<std::size_t> last;
  for (const Place& place : places) {
    const bool apart = alone && (place.parameter == *alone || last == alone);
    last = place.parameter;
    if (buckets.size() == first || apart || place.begin - buckets.back().begin >= least) {
      if (buckets.size() > first) buckets.back().elements = place.begin - buckets.back().begin;
      buckets.push_back({{.begin = place.begin, .elements = end - place.begin}, group, {}});
    }
    buckets.back().parameters.push_back(place.parameter);
  }
}

}  // namespace

FlatRange Bucket::own() const {
  const std::int64_t mine = elements / comm::group_size(group);
  return {.begin = begin + mine * comm::group_index(group), .elements = mine};
}

std::vector<Bucket> cut_buckets(const ModelConfig& config, const Layout& layout,
                                const Parameters& parameters, const ParameterBuffer& buffer) {
  std::vector<Bucket> buckets;
  const std::int64_t all = buffer.flat().numel(), shared = buffer.shared().numel();
  // The first and the last stage sum the gradients of embeddings that both hold after the data
  // parallel ranks have, so both stages must own the same parts.
  std::optional<std::size_t> alone;
  for (std::size_t i = 0; i < parameters.all().size(); ++i)
    if (config.distributed_optimizer && config.embeds_on_last_stage() && layout.pp > 1 &&
        parameters.all()[i].name == "param:embedding.weight")
      alone = i;
  cut(buckets, places_in_order(parameters, buffer, /*expert=*/false), shared,
      config.overlap_grad_reduce ? kBucketElements : all, layout.replica_group(), alone);
  cut(buckets, places_in_order(parameters, buffer, /*expert=*/true), all, all, layout.edp_group,
      {});
  return buckets;
}

}  // namespace graphproof::workloads
