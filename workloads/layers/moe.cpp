#include "workloads/layers/moe.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fixtures/comm/collectives.h"
#include "workloads/config/precision.h"
#include "workloads/forward/expert_choices.h"
#include "workloads/forward/recompute.h"
#include "workloads/layers/activation.h"
#include "workloads/layers/context_parallel.h"
#include "workloads/layers/linear.h"

namespace graphproof::workloads {
namespace {

/// The indices that would sort dimension `dimension` from large to small; equal elements keep their
/// order.
at::Tensor descending(const at::Tensor& x, std::int64_t dimension) {
  return std::get<1>(at::sort(x, /*stable=*/true, dimension, /*descending=*/true));
}

/// The inverse of permutations along dimension 1.
at::Tensor inverse_permutation(const at::Tensor& permutations) {
  return std::get<1>(at::sort(permutations, /*stable=*/true, 1, /*descending=*/false));
}

/// The indices of a microbatch's tokens, share by share: a share is the tokens of one rank in the
/// layout whose capacities are used.
at::Tensor tokens_by_share(const ModelConfig& config) {
  std::vector<at::Tensor> shares;
  const at::Tensor all = at::arange(config.microbatch_size * config.seq_length, at::kLong)
                             .view({config.microbatch_size, -1});
  for (int rank = 0; rank < config.capacity_cp; ++rank)
    for (const at::Tensor& positions :
         positions_of(config.seq_length, config.capacity_cp, rank).chunk(config.capacity_parts))
      shares.push_back(all.index_select(1, positions).view({-1}));
  return at::cat(shares);
}

/// scores [N, E] divided by their sums. The small summand is Megatron-LM's, for tokens whose scores
/// are all zero.
at::Tensor shares_of(const at::Tensor& scores) {
  return scores / (scores.sum({1}, /*keepdim=*/true) + 1e-20);
}

/// What the undefined rows of the flex dispatcher's buffers hold.
double undefined_rows(const ForwardPass& pass) {
  return pass.recording ? std::numeric_limits<double>::quiet_NaN() : 0;
}

/// Returns x, and makes `loss` [] a part of the differentiated loss, with the gradient `root`.
struct WithLoss : torch::autograd::Function<WithLoss> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& /*loss*/, const at::Tensor& root) {
    context->save_for_backward({root});
    return x.view_as(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    return {gradients[0], context->get_saved_variables()[0], at::Tensor()};
  }
};

}  // namespace

Moe::Moe(Parameters& parameters, const ModelConfig& config, const Layout& layout, at::Device device,
         const std::string& name, std::int64_t layer, DelayedGradients* shared_delayed,
         DelayedGradients* experts_delayed)
    : config_(config), layout_(layout), layer_(layer), delayed_(experts_delayed) {
  const std::int64_t experts = config.experts;
  const std::int64_t tokens =
      config.microbatch_size * layout.own_length(config) / layout.sequence_parts() / shares();
  capacity_ = (tokens * config.topk + experts - 1) / experts;
  if (shares() > 1) {
    by_share_ = tokens_by_share(config).to(device);
    place_by_share_ = inverse_permutation(by_share_.unsqueeze(0)).squeeze(0);
  }
  expert_ids_ = at::arange(experts, at::kLong).to(device);
  if (config.flex)
    row_numbers_ =
        at::arange(std::max(layout.etp * layout.ep * tokens * shares() * config.topk, experts),
                   at::kLong)
            .to(device);
  router_ = parameters.create(name + ".router.weight", {experts, config.hidden}, whole(layout),
                              weight_distribution(config.hidden, 1.0));
  if (config.shared_expert) {
    shared_.emplace_back(parameters, config, layout, name + ".shared", shared_delayed);
    shared_parameters_ =
        known_to_autograd(parameters.starting_with(name + ".shared."), shared_delayed);
  }
  const auto mine = [&layout](std::int64_t inner_dimension) {
    return Shard{.index = layout.ep_rank,
                 .count = layout.ep,
                 .expert = true,
                 .inner_dimension = inner_dimension,
                 .inner_index = layout.etp_rank,
                 .inner_count = layout.etp};
  };
  const double gain = 1.0 / std::sqrt(2.0 * static_cast<double>(config.layers));
  const std::int64_t inner = config.ffn * rows_of_element(config.activation);
  up_ = parameters.create(name + ".experts.up.weight", {experts, inner, config.hidden}, mine(1),
                          weight_distribution(config.hidden, 1.0));
  down_ = parameters.create(name + ".experts.down.weight", {experts, config.hidden, config.ffn},
                            mine(2), weight_distribution(config.ffn, gain));
  if (!config.linear_bias) return;
  up_bias_ =
      parameters.create(name + ".experts.up.bias", {experts, 1, inner}, mine(2), kBiasDistribution);
  down_bias_ = parameters.create(name + ".experts.down.bias", {experts, 1, config.hidden}, mine(2),
                                 kBiasDistribution);
}

Routing Moe::route(const at::Tensor& hidden, const ForwardPass& pass) const {
  at::Tensor logits = at::mm(wide(hidden), wide(router_).t());  // [N, E]
  if (pass.expert_pull.defined()) logits = logits + pass.expert_pull;
  if (config_.router_z_loss)
    logits = WithLoss::apply(
        logits,
        at::logsumexp(logits, {1}).square().mean() * (kZLossCoefficient / layout_.sequence_parts()),
        pass.root_gradient);
  const bool corrected = config_.router_score_correction;
  const at::Tensor scores = corrected ? at::sigmoid(logits) : logits;
  at::Tensor assigned, within;
  {
    const at::NoGradGuard no_grad;
    assigned = chosen_experts(corrected ? scores + pass.router_bias.of(layer_) : scores, pass);
  }
  // Far below any logit, so that its exponential is 0 and the softmax is over the chosen experts.
  constexpr double kNotChosen = -10000.0;
  at::Tensor probabilities;
  if (corrected)
    probabilities = config_.topk > 1 ? shares_of(scores * assigned) : scores * assigned;
  else
    probabilities = at::softmax(logits.masked_fill(assigned.logical_not(), kNotChosen), 1);
  if (config_.router_aux_loss) {
    // The loss is over all tokens of the microbatch. Each rank adds the part of its own tokens; the
    // gradients are summed over tensor parallel ranks and averaged over context parallel ranks.
    const double tokens = static_cast<double>(config_.microbatch_size * config_.seq_length);
    at::Tensor chosen_by = assigned.sum({0}).to(logits.scalar_type());  // [E]
    if (pass.faults.sums_router_load(chosen_by)) sum_over_sequence(chosen_by);
    const at::Tensor load =
        (corrected ? shares_of(scores) : at::softmax(logits, 1)).sum({0}) * chosen_by;
    const double scale = kAuxLossCoefficient * static_cast<double>(config_.experts * layout_.cp) /
                         (static_cast<double>(config_.topk) * tokens * tokens);
    probabilities = WithLoss::apply(probabilities, load.sum() * scale, pass.root_gradient);
  }
  if (config_.dropless || pass.choices) {
    within = assigned;
    if (!pass.again) pass.experts.routed(layer_, assigned, at::zeros_like(assigned));
  } else {
    const at::NoGradGuard no_grad;
    const at::Tensor place =
        places(descending(by_expert(probabilities), 1));  // [N, E]: by probability
    within = assigned.logical_and(place.lt(capacity_));
    if (!pass.again)
      pass.experts.routed(layer_, assigned, assigned.logical_and(place.ge(capacity_)));
  }
  within = pass.faults.dispatched(within, capacity(hidden.size(0), pass));
  return {probabilities * within, within};
}

/// scores [N, E]. Returns [N, E] bool: the K experts of each token.
at::Tensor Moe::chosen_experts(const at::Tensor& scores, const ForwardPass& pass) const {
  const auto layer = static_cast<std::size_t>(layer_);
  if (pass.choices && pass.choices->given) {
    pass.choices->scores.at(layer) = scores;
    return pass.choices->experts.at(layer);
  }
  const at::Tensor chosen = descending(scores, 1).narrow(1, 0, config_.topk);  // [N, K]
  at::Tensor assigned = chosen.unsqueeze(2).eq(expert_ids_).any(1);
  if (!pass.choices) return assigned;
  assigned = assigned.logical_and(pass.choices->requested.unsqueeze(1));
  pass.choices->experts.at(layer).copy_(assigned);
  return assigned;
}

/// C for a number of tokens of this rank.
std::int64_t Moe::capacity(std::int64_t tokens, const ForwardPass& pass) const {
  return pass.choices ? tokens : capacity_;
}

at::Tensor Moe::shared(const at::Tensor& hidden, const ForwardPass& pass) const {
  if (shared_.empty()) return {};
  if (!config_.recompute.of(RecomputedPart::shared_experts))
    return shared_[0].forward(hidden, pass);
  return recompute(
      RecomputedPart::shared_experts, pass.faults,
      [this, pass = with_kept_scales(pass)](const std::vector<at::Tensor>& inputs, bool again) {
        ForwardPass run = pass;
        run.again = run.again || again;
        const at::Tensor y = shared_[0].forward(inputs[0], run);
        pass.recomputes.note(RecomputedPart::shared_experts, layer_, y, again);
        return y;
      },
      {hidden}, shared_parameters_);
}

Dispatch Moe::preprocess(const at::Tensor& hidden, const Routing& routing,
                         const ForwardPass& pass) const {
  const std::int64_t capacity = this->capacity(hidden.size(0), pass);
  at::Tensor tokens, slots, own, counts;
  {
    const at::NoGradGuard no_grad;
    const at::Tensor map = routing.carried.to(at::kInt);
    own = descending(map, 1).narrow(1, 0, config_.topk);  // [N, K]: the experts of each token
    if (config_.dropless) {
      const at::Tensor sorted = std::get<1>(
          at::sort(own.reshape({1, -1}), /*stable=*/true, 1, /*descending=*/false));  // [1, N*K]
      tokens = at::div(sorted, config_.topk, "floor").view({-1});
      slots = inverse_permutation(sorted).view({-1, config_.topk});
    } else {
      const at::Tensor order =
          descending(by_expert(map), 1);  // [shares * E, N / shares]: its tokens first
      const at::Tensor place =
          at::gather(places(order), 1, own);  // [N, K]: among the tokens of the expert in the share
      tokens = order.narrow(1, 0, capacity);
      // A dropped assignment refers to some row of its expert, with weight 0.
      slots = own * (shares() * capacity) + place.clamp_max(capacity - 1);
      if (by_share_.defined()) {
        slots = slots + place_by_share_.div(order.size(1), "floor").unsqueeze(1) * capacity;
        tokens = by_share_.view({shares(), 1, -1})
                     .expand({-1, config_.experts, -1})
                     .gather(2, tokens.reshape({shares(), config_.experts, capacity}))
                     .transpose(0, 1);
      }
      tokens = tokens.reshape({-1});  // [E * shares * C]
    }
    own = own.unsqueeze(2).eq(expert_ids_);  // [N, K, E] bool
    if (config_.dropless) counts = own.flatten(0, 1).sum({0});
    if (!pass.again) {
      pass.experts.dispatched(layer_, routing.carried);
      // Carried once they have a place at their receivers: pack().
      if (config_.flex) pass.experts.carries(layer_, -counts);
    }
  }
  return {.tokens = at::index(hidden, {tokens}),
          .slots = slots,
          .weights = (routing.probabilities.unsqueeze(1) * own).sum({2}),
          .counts = counts};
}

/// Sums over the ranks that have other parts of the same sequences.
void Moe::sum_over_sequence(const at::Tensor& counts) const {
  if (layout_.sequence_parallel && layout_.tp > 1) comm::all_reduce_(counts, layout_.tp_group);
  if (layout_.cp > 1) comm::all_reduce_(counts, layout_.cp_group);
}

/// The number of shares of a microbatch that have a capacity of their own.
std::int64_t Moe::shares() const { return config_.capacity_cp * config_.capacity_parts; }

/// of_tokens [N, E] to [shares * E, N / shares], with the tokens of a share together.
at::Tensor Moe::by_expert(const at::Tensor& of_tokens) const {
  const at::Tensor rows = by_share_.defined() ? of_tokens.index({by_share_}) : of_tokens;
  return rows.view({shares(), -1, config_.experts}).transpose(1, 2).flatten(0, 1).contiguous();
}

/// order [shares * E, N / shares]: permutations of the tokens of each share. Returns [N, E]: the
/// place of each token in them.
at::Tensor Moe::places(const at::Tensor& order) const {
  const at::Tensor rows = inverse_permutation(order)
                              .view({shares(), config_.experts, -1})
                              .transpose(1, 2)
                              .flatten(0, 1);
  return place_by_share_.defined() ? rows.index({place_by_share_}) : rows;
}

at::Tensor Moe::exchange(const at::Tensor& rows) const {
  return layout_.ep == 1 ? rows : comm::all_to_all(rows, layout_.ep_group);
}

at::Tensor Moe::gather_over_etp(const at::Tensor& rows) const {
  return layout_.etp == 1 ? rows : comm::all_gather(rows, layout_.etp_group);
}

at::Tensor Moe::reduce_over_etp(const at::Tensor& rows, const ForwardPass& pass) const {
  if (layout_.etp == 1) return rows;
  const at::Tensor unsummed = pass.faults.unsummed_part(rows);
  return unsummed.defined() ? unsummed : comm::reduce_scatter(rows, layout_.etp_group);
}

at::Tensor Moe::activated(const at::Tensor& inner, const ForwardPass& pass) const {
  if (!config_.recompute.of(RecomputedPart::moe_act)) return activate(inner, config_.activation);
  return recompute(RecomputedPart::moe_act, pass.faults,
                   [this, pass](const std::vector<at::Tensor>& inputs, bool again) {
                     const at::Tensor y = activate(inputs[0], config_.activation);
                     pass.recomputes.note(RecomputedPart::moe_act, layer_, y, again);
                     return y;
                   },
                   {inner});
}

/// Runs this rank's experts. inputs: [n, H] for each, where n differs. Returns the same shapes.
std::vector<at::Tensor> Moe::own_experts(const std::vector<at::Tensor>& inputs,
                                         const ForwardPass& pass) const {
  const UsedWeight up = used_weight(up_, pass), down = used_weight(down_, pass);
  std::vector<at::Tensor> inner, outputs;
  std::vector<std::int64_t> rows;
  for (std::size_t e = 0; e < inputs.size(); ++e) {
    const auto expert = static_cast<std::int64_t>(e);
    at::Tensor x = product(inputs[e], up, up_.grad(), expert);
    inner.push_back(up_bias_.defined() ? x + up_bias_.select(0, expert) : x);
    rows.push_back(inputs[e].size(0));
  }
  const std::vector<at::Tensor> active = activated(at::cat(inner), pass).split_with_sizes(rows);
  for (std::size_t e = 0; e < inputs.size(); ++e) {
    const auto expert = static_cast<std::int64_t>(e);
    const at::Tensor y = product(active[e], down, down_.grad(), expert);
    outputs.push_back(down_bias_.defined() ? y + down_bias_.select(0, expert) : y);
  }
  return outputs;
}

namespace {

/// The number of rows that rank `from` of ep, with rank `part` in etp, sends to rank `to` of ep.
std::int64_t rows_between(const SplitSizes& sizes, std::int64_t part, std::int64_t from,
                          std::int64_t to) {
  const auto rows = sizes.rows.accessor<std::int64_t, 4>();
  std::int64_t sum = 0;
  for (std::int64_t e = 0; e < rows.size(3); ++e) sum += rows[part][from][to][e];
  return sum;
}

/// x with rows of zeros up to the largest number of rows.
at::Tensor padded(const at::Tensor& x, const SplitSizes& sizes) {
  return at::constant_pad_nd(x, {0, 0, 0, sizes.largest - x.size(0)});
}

}  // namespace

/// x times the weights of all own experts, or of one. main_gradient is that of all.
at::Tensor Moe::product(const at::Tensor& x, const UsedWeight& weight,
                        const at::Tensor& main_gradient, std::optional<std::int64_t> expert) const {
  const at::Tensor gradient = expert ? main_gradient.select(0, *expert) : main_gradient;
  if (weight.is_quantized())
    return linear_product(x, expert ? weight.of_expert(*expert) : weight, gradient,
                          /*fused=*/false, delayed_);
  const at::Tensor operand = autocast_operand(x), all = autocast_operand(weight.tensor);
  const at::Tensor factor = expert ? all.select(0, *expert) : all;
  return delayed_ ? delayed_product(operand, factor, gradient, *delayed_)
         : expert ? at::mm(operand, factor.t())
                  : at::bmm(operand, factor.transpose(1, 2));
}

at::Tensor Moe::pack(const at::Tensor& tokens, const at::Tensor& counts, const ForwardPass& pass,
                     SplitSizes& sizes) const {
  if (!counts.defined()) return tokens;
  const std::int64_t ranks = layout_.ep;
  const at::Tensor of_all =
      gather_over_etp(ranks == 1 ? counts : comm::all_gather(counts, layout_.ep_group));
  if (config_.flex) {
    const FlexPlacement& placement = sizes.flex.emplace(
        of_all.view({layout_.etp * ranks, ranks, config_.experts / ranks}), row_numbers_,
        FlexPlacement::Sizes{
            .rows = tokens.size(0),
            .capacity = std::min(pass.expert_buffers.rows(), layout_.etp * ranks * tokens.size(0)),
            .sender = layout_.etp_rank * ranks + layout_.ep_rank,
            .receiver = layout_.ep_rank});
    if (!pass.again) {
      pass.experts.carries(layer_, placement.carried());
      pass.experts.lost(layer_, (counts - placement.carried()).sum());
      pass.expert_buffers.arrived(placement.needed());
    }
    return placement.slots(tokens, undefined_rows(pass));
  }
  sizes.rows = of_all.cpu().view({layout_.etp, ranks, ranks, config_.experts / ranks});
  sizes.largest = sizes.rows.sum({3}).max().item<std::int64_t>();
  std::vector<at::Tensor> pieces;
  for (std::int64_t to = 0, first = 0; to < ranks; ++to) {
    const std::int64_t rows = rows_between(sizes, layout_.etp_rank, layout_.ep_rank, to);
    pieces.push_back(padded(tokens.narrow(0, first, rows), sizes));
    first += rows;
  }
  return at::cat(pieces);
}

/// arrived: rows ordered by sender, then by expert, each sender's padded. Returns the results in
/// the same places.
at::Tensor Moe::dropless_forward(const at::Tensor& arrived, const SplitSizes& sizes,
                                 const ForwardPass& pass) const {
  const std::int64_t ranks = layout_.ep, mine = config_.experts / ranks, me = layout_.ep_rank;
  const auto rows = sizes.rows.accessor<std::int64_t, 4>();
  std::vector<std::vector<at::Tensor>> of_expert(static_cast<std::size_t>(mine));
  for (std::int64_t part = 0; part < layout_.etp; ++part)
    for (std::int64_t from = 0; from < ranks; ++from)
      for (std::int64_t e = 0, first = (part * ranks + from) * sizes.largest; e < mine;
           first += rows[part][from][me][e++])
        of_expert[static_cast<std::size_t>(e)].push_back(
            arrived.narrow(0, first, rows[part][from][me][e]));
  std::vector<at::Tensor> inputs;
  for (const auto& pieces : of_expert) inputs.push_back(at::cat(pieces));
  const std::vector<at::Tensor> outputs = own_experts(inputs, pass);

  std::vector<std::int64_t> taken(static_cast<std::size_t>(mine),
                                  0);  // rows of each expert's output that are in `back`
  std::vector<at::Tensor> back;
  for (std::int64_t part = 0; part < layout_.etp; ++part)
    for (std::int64_t to = 0; to < ranks; ++to) {
      std::vector<at::Tensor> pieces;
      for (std::size_t e = 0; e < outputs.size(); ++e) {
        const std::int64_t count = rows[part][to][me][static_cast<std::int64_t>(e)];
        pieces.push_back(outputs[e].narrow(0, taken[e], count));
        taken[e] += count;
      }
      back.push_back(padded(at::cat(pieces), sizes));
    }
  return at::cat(back);
}

at::Tensor Moe::flex_forward(const at::Tensor& arrived, const FlexPlacement& placement,
                             const ForwardPass& pass) const {
  const double undefined = undefined_rows(pass);
  const at::Tensor inputs = placement.of_experts(placement.received(arrived, undefined));
  return placement.returned(placement.of_rows(padded_experts(inputs, pass)), undefined);
}

at::Tensor Moe::unpack(const at::Tensor& rows, const SplitSizes& sizes) const {
  if (sizes.flex) return sizes.flex->rows(rows);
  if (!sizes.rows.defined()) return rows;
  std::vector<at::Tensor> pieces;
  for (std::int64_t from = 0; from < layout_.ep; ++from)
    pieces.push_back(rows.narrow(0, from * sizes.largest,
                                 rows_between(sizes, layout_.etp_rank, layout_.ep_rank, from)));
  return at::cat(pieces);
}

at::Tensor Moe::gathered_experts(const at::Tensor& hidden, const Routing& routing,
                                 const ForwardPass& pass) const {
  const std::int64_t mine = config_.experts / layout_.ep, first = mine * layout_.ep_rank;
  const auto of_all_ranks = [this](const at::Tensor& x) {
    return gather_over_etp(layout_.ep == 1 ? x : comm::all_gather(x, layout_.ep_group));
  };
  if (!pass.again) pass.experts.dispatched(layer_, routing.carried);
  const at::Tensor tokens = of_all_ranks(hidden),
                   weights = of_all_ranks(routing.probabilities);  // [T*P*N, H], [T*P*N, E]
  const at::Tensor carried = of_all_ranks(routing.carried);
  std::vector<at::Tensor> taken, inputs;
  for (std::int64_t e = first; e < first + mine; ++e) {
    taken.push_back(at::nonzero(carried.select(1, e)).view({-1}));
    inputs.push_back(at::index(tokens, {taken.back()}));
  }
  const std::vector<at::Tensor> outputs = own_experts(inputs, pass);
  // The results of a token's experts are added in fp32, as in the other dispatches. One index_add
  // adds at most once to a row, so the order is fixed.
  at::Tensor sum = at::zeros({tokens.size(0), config_.hidden},
                             tokens.options().dtype(wide_type(tokens.scalar_type())));
  for (std::size_t e = 0; e < outputs.size(); ++e) {
    const at::Tensor weight =
        at::index(weights.select(1, first + static_cast<std::int64_t>(e)), {taken[e]}).unsqueeze(1);
    sum = sum.index_add(0, taken[e], wide(outputs[e]) * weight);
  }
  const at::Tensor of_ep = reduce_over_etp(sum, pass);
  return (layout_.ep == 1 ? of_ep : comm::reduce_scatter(of_ep, layout_.ep_group))
      .to(hidden.scalar_type());
}

at::Tensor Moe::experts(const at::Tensor& tokens, const at::Tensor& counts,
                        const ForwardPass& pass) const {
  SplitSizes sizes;
  const at::Tensor arrived = exchange(pack(tokens, counts, pass, sizes));
  return unpack(exchange(expert_forward(arrived, sizes, pass)), sizes);
}

at::Tensor Moe::expert_forward(const at::Tensor& arrived, const SplitSizes& sizes,
                               const ForwardPass& pass) const {
  if (sizes.rows.defined())
    return reduce_over_etp(dropless_forward(gather_over_etp(arrived), sizes, pass), pass);
  if (sizes.flex)
    return reduce_over_etp(flex_forward(gather_over_etp(arrived), *sizes.flex, pass), pass);
  const std::int64_t mine = config_.experts / layout_.ep, senders = layout_.etp * layout_.ep;
  const at::Tensor gathered = gather_over_etp(arrived);
  const std::int64_t rows = gathered.size(0) / (senders * mine), hidden = config_.hidden;
  // The experts are on the ranks in order, so each rank gets an equal part of the rows. The rows
  // that arrive are ordered by sender, then by expert.
  const at::Tensor of_expert = gathered.view({senders, mine, rows, hidden})
                                   .transpose(0, 1)
                                   .reshape({mine, senders * rows, hidden});
  return reduce_over_etp(padded_experts(of_expert, pass)
                             .view({mine, senders, rows, hidden})
                             .transpose(0, 1)
                             .reshape({-1, hidden}),
                         pass);
}

/// Runs this rank's experts on equally many rows each. inputs [E/P, n, H]; returns the same shape.
at::Tensor Moe::padded_experts(const at::Tensor& inputs, const ForwardPass& pass) const {
  at::Tensor inner = product(inputs, used_weight(up_, pass), up_.grad());  // [E/P, n, F/T or 2*F/T]
  if (up_bias_.defined()) inner = inner + up_bias_;
  const at::Tensor result =
      product(activated(inner, pass), used_weight(down_, pass), down_.grad());  // [E/P, n, H]
  return down_bias_.defined() ? result + down_bias_ : result;
}

at::Tensor Moe::combine(const at::Tensor& results, const at::Tensor& slots,
                        const at::Tensor& weights) const {
  const at::Tensor rows = at::index(results, {slots.reshape({-1})})
                              .view({-1, config_.topk, config_.hidden});  // [N, K, H]
  return (wide(rows) * weights.unsqueeze(2)).sum({1}).to(results.scalar_type());
}

}  // namespace graphproof::workloads
