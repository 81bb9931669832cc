#include "workloads/parameters/parameter_shards.h"

#include <algorithm>

#include "fixtures/comm/collectives.h"
#include "fixtures/comm/collectives_into.h"
#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {

ParameterShards::ParameterShards(const Parameters& parameters, const GradientBuffer& gradients,
                                 std::vector<Bucket> buckets, faults::FaultHooks& faults,
                                 const MakeBuffer& make)
    : faults_(faults),
      buckets_(std::move(buckets)),
      flat_(parameters, "", parameters.all().front().tensor.scalar_type(), make) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters.all().size(); ++i) {
    at::Tensor parameter = parameters.all()[i].tensor, place = flat_.views()[i].tensor;
    place.copy_(parameter);
    parameter.set_data(place);
  }
  std::int64_t place = 0;
  for (const Bucket& bucket : buckets_) {
    const FlatRange mine = bucket.own();
    for (const std::size_t i : bucket.parameters) {
      const std::int64_t begin = std::max(gradients.begin(i), mine.begin);
      const std::int64_t end = std::min(gradients.begin(i) + parameters.all()[i].tensor.numel(),
                                        mine.begin + mine.elements);
      if (begin < end)
        pieces_.push_back({i,
                           {.begin = begin, .elements = end - begin},
                           {.begin = place + begin - mine.begin, .elements = end - begin}});
    }
    place += mine.elements;
  }
  own_elements_ = place;
  sent_ = at::empty({own_elements_}, flat().options());
  std::sort(pieces_.begin(), pieces_.end(),
            [](const Piece& a, const Piece& b) { return a.parameter < b.parameter; });
}

at::Tensor ParameterShards::own(const at::Tensor& flat) const {
  if (buckets_.size() == 1) return buckets_.front().own().of(flat);
  std::vector<at::Tensor> parts;
  for (const Bucket& bucket : buckets_) parts.push_back(bucket.own().of(flat));
  return at::cat(parts);
}

void ParameterShards::gather(const Bucket& bucket) const {
  if (comm::group_size(bucket.group) == 1) return;
  if (!faults_.gathers(static_cast<std::size_t>(&bucket - buckets_.data()), buckets_.size()))
    return;
  const at::NoGradGuard no_grad;
  // Each bucket has its own range of sent_, because the gathers of several buckets may be pending.
  std::int64_t place = 0;
  for (const Bucket* before = buckets_.data(); before != &bucket; ++before)
    place += before->own().elements;
  const at::Tensor sent = sent_.narrow(0, place, bucket.own().elements);
  sent.copy_(bucket.own().of(flat()));
  comm::all_gather_into(bucket.of(flat()), sent, bucket.group);
}

}  // namespace graphproof::workloads
