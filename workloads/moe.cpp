#include "workloads/moe.h"

#include <algorithm>
#include <cmath>

#include "fixtures/comm/collectives.h"
#include "workloads/activation.h"
#include "workloads/linear.h"
#include "workloads/recompute.h"

namespace graphproof::workloads {
namespace {

/// The indices that would sort dimension `dimension` from large to small; equal elements keep their order.
at::Tensor descending(const at::Tensor& x, std::int64_t dimension) {
  return std::get<1>(at::sort(x, /*stable=*/true, dimension, /*descending=*/true));
}

/// The inverse of permutations along dimension 1.
at::Tensor inverse_permutation(const at::Tensor& permutations) {
  return std::get<1>(at::sort(permutations, /*stable=*/true, 1, /*descending=*/false));
}

}  // namespace

Moe::Moe(Parameters& parameters, const ModelConfig& config, const Layout& layout, at::Device device,
         const std::string& name, std::int64_t layer)
    : config_(config), layout_(layout), layer_(layer) {
  const std::int64_t tokens = config.microbatch_size * layout.own_length(config), experts = config.experts;
  capacity_ = (tokens * config.topk + experts - 1) / experts;
  expert_ids_ = at::arange(experts, at::kLong).to(device);
  router_ = parameters.create(name + ".router.weight", {experts, config.hidden}, {}, weight_distribution(config.hidden, 1.0));
  if (config.shared_expert) {
    shared_.emplace_back(parameters, config, layout, name + ".shared");
    shared_parameters_ = parameters.starting_with(name + ".shared.");
  }
  const Shard mine{0, layout.ep_rank, layout.ep, /*expert=*/true};
  const double gain = 1.0 / std::sqrt(2.0 * static_cast<double>(config.layers));
  const std::int64_t inner = config.ffn * rows_of_element(config.activation);
  up_ = parameters.create(name + ".experts.up.weight", {experts, inner, config.hidden}, mine,
                          weight_distribution(config.hidden, 1.0));
  down_ = parameters.create(name + ".experts.down.weight", {experts, config.hidden, config.ffn}, mine,
                            weight_distribution(config.ffn, gain));
  if (!config.linear_bias) return;
  up_bias_ = parameters.create(name + ".experts.up.bias", {experts, 1, inner}, mine, kBiasDistribution);
  down_bias_ = parameters.create(name + ".experts.down.bias", {experts, 1, config.hidden}, mine, kBiasDistribution);
}

Routing Moe::route(const at::Tensor& hidden, const ForwardPass& pass) const {
  const at::Tensor logits = at::mm(hidden.to(at::kFloat), router_.to(at::kFloat).t());  // [N, E]
  at::Tensor assigned, within;
  {
    const at::NoGradGuard no_grad;
    const at::Tensor chosen = descending(logits, 1).narrow(1, 0, config_.topk);            // [N, K]
    assigned = chosen.unsqueeze(2).eq(expert_ids_).any(1);                                 // [N, E]
  }
  // Far below any logit, so that its exponential is zero: the softmax is that over the chosen ones.
  constexpr double kNotChosen = -10000.0;
  const at::Tensor probabilities = at::softmax(logits.masked_fill(assigned.logical_not(), kNotChosen), 1);
  {
    const at::NoGradGuard no_grad;
    // Of each expert, the place of every token in the order of its probability.
    const at::Tensor place = inverse_permutation(descending(probabilities.t().contiguous(), 1)).t();   // [N, E]
    // M74 stands for a dispatch whose captured buffers are smaller than the capacity that it counts with.
    const std::int64_t room = pass.fault.is("M74") && pass.recording ? capacity_ / 2 : capacity_;
    within = assigned.logical_and(place.lt(room));
    if (!pass.again) pass.experts.routed(layer_, assigned, assigned.logical_and(place.ge(capacity_)));
  }
  return {probabilities * within, within};
}

at::Tensor Moe::shared(const at::Tensor& hidden, const ForwardPass& pass) const {
  if (shared_.empty()) return {};
  if (!config_.recompute.of(RecomputedPart::shared_experts)) return shared_[0].forward(hidden, std::nullopt);
  return recompute(
      [this, pass](const std::vector<at::Tensor>& inputs, bool again) {
        const at::Tensor y = shared_[0].forward(inputs[0], std::nullopt);
        pass.recomputes.note(RecomputedPart::shared_experts, layer_, y, again);
        return y;
      },
      {hidden}, shared_parameters_);
}

Dispatch Moe::preprocess(const at::Tensor& hidden, const Routing& routing, const ForwardPass& pass) const {
  at::Tensor tokens, slots, own;
  {
    const at::NoGradGuard no_grad;
    const at::Tensor map = routing.carried.to(at::kInt);
    const at::Tensor order = descending(map.t().contiguous(), 1);        // [E, N]: an expert's tokens first
    tokens = order.narrow(1, 0, capacity_).reshape({-1});                // [E*C]
    own = descending(map, 1).narrow(1, 0, config_.topk);                 // [N, K]: a token's experts first
    const at::Tensor place = at::gather(inverse_permutation(order).t(), 1, own);     // [N, K]: among that expert's tokens
    // A dropped assignment points at some row of its expert, and weighs nothing.
    slots = own * capacity_ + place.clamp_max(capacity_ - 1);
    own = own.unsqueeze(2).eq(expert_ids_);                              // [N, K, E] bool
    if (!pass.again) pass.experts.dispatched(layer_, routing.carried);
  }
  return {.tokens = at::index(hidden, {tokens}),
          .slots = slots,
          .weights = (routing.probabilities.unsqueeze(1) * own).sum({2})};
}

at::Tensor Moe::exchange(const at::Tensor& rows) const {
  return layout_.ep == 1 ? rows : comm::all_to_all(rows, layout_.ep_group);
}

at::Tensor Moe::activated(const at::Tensor& inner, const ForwardPass& pass) const {
  if (!config_.recompute.of(RecomputedPart::moe_act)) return activate(inner, config_.activation);
  return recompute(
      [this, pass](const std::vector<at::Tensor>& inputs, bool again) {
        const at::Tensor y = activate(inputs[0], config_.activation);
        pass.recomputes.note(RecomputedPart::moe_act, layer_, y, again);
        return y;
      },
      {inner});
}

at::Tensor Moe::experts(const at::Tensor& tokens, const ForwardPass& pass) const {
  const std::int64_t ranks = layout_.ep, mine = config_.experts / ranks, hidden = config_.hidden;
  // Experts lie on the ranks in order, so equal parts of the rows are what each rank is sent; what arrives is ordered by
  // sender, then by expert.
  const at::Tensor arrived = exchange(tokens)
                                 .view({ranks, mine, capacity_, hidden})
                                 .transpose(0, 1)
                                 .reshape({mine, ranks * capacity_, hidden});
  at::Tensor inner = at::bmm(arrived, up_.transpose(1, 2));  // [E/P, P*C, F or 2*F]
  if (up_bias_.defined()) inner = inner + up_bias_;
  at::Tensor result = at::bmm(activated(inner, pass), down_.transpose(1, 2));  // [E/P, P*C, H]
  if (down_bias_.defined()) result = result + down_bias_;
  return exchange(result.view({mine, ranks, capacity_, hidden}).transpose(0, 1).reshape({-1, hidden}));
}

at::Tensor Moe::combine(const at::Tensor& results, const at::Tensor& slots, const at::Tensor& weights) const {
  const at::Tensor rows = at::index(results, {slots.reshape({-1})}).view({-1, config_.topk, config_.hidden});  // [N, K, H]
  return (rows.to(at::kFloat) * weights.unsqueeze(2)).sum({1}).to(results.scalar_type());
}

}  // namespace graphproof::workloads
