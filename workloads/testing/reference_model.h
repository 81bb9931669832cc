// A second implementation of the reference model, for tests: in double precision on the host, with
// library operators that the model itself does not use, rotations as complex products, each image
// alone and without a mask, a loop over experts and a loop over tokens for the selective scan. The
// score correction of routers is zero, as in the first step.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fixtures/tensors/named_tensor.h"
#include "fixtures/tensors/torch.h"
#include "workloads/config/model_config.h"
#include "workloads/training/data.h"

namespace graphproof::workloads {

/// The model on one rank. Used by one thread.
class ReferenceModel {
 public:
  /// Copies the `parameters` of a TrainStep on one rank. `masks` are those of TrainStep::masks();
  /// empty without dropout.
  ReferenceModel(const ModelConfig& config, const std::vector<fixtures::NamedTensor>& parameters,
                 const std::vector<fixtures::NamedTensor>& masks = {})
      : config_(config) {
    for (const auto& [name, tensor] : parameters)
      parameters_[name.substr(6)] = tensor.detach().cpu().to(at::kDouble).requires_grad_(true);
    for (const auto& [name, mask] : masks) masks_[name.substr(5)] = mask.cpu().to(at::kDouble);
  }

  /// Returns the mean loss over the microbatches and computes gradients, including those of the
  /// losses that routers add.
  double loss(const Batch& batch) {
    at::Tensor total = at::zeros({}, at::kDouble);
    of_routers_ = at::zeros({}, at::kDouble);
    for (std::size_t m = 0; m < batch.tokens.size(); ++m) total = total + microbatch(batch, m);
    const at::Tensor mean = total / static_cast<double>(batch.tokens.size());
    torch::autograd::backward({mean + of_routers_ / static_cast<double>(batch.tokens.size())});
    return mean.item<double>();
  }
  const at::Tensor& gradient(const std::string& parameter) const {
    return parameters_.at(parameter).grad();
  }
  /// The distance of the last loss from a different choice of experts or a different drop: the
  /// smallest difference between a number that decided and the next one. It must be well above
  /// differences of fp32 rounding, or the models are not comparable.
  double decision_margin() const { return margin_; }

 private:
  at::Tensor parameter(const std::string& name) const { return parameters_.at(name); }
  std::optional<at::Tensor> optional(const std::string& name) const {
    const auto found = parameters_.find(name);
    return found == parameters_.end() ? std::nullopt : std::optional(found->second);
  }
  at::Tensor norm(const at::Tensor& x, const std::string& name) const {
    const std::int64_t elements = x.size(-1);
    if (config_.normalization == Normalization::LayerNorm)
      return at::layer_norm(x, {elements}, parameter(name + ".weight"), parameter(name + ".bias"),
                            1e-5);
    return at::rms_norm(x, {elements}, parameter(name + ".weight"), 1e-5);
  }
  at::Tensor linear(const at::Tensor& x, const std::string& name) const {
    return at::linear(x, parameter(name + ".weight"), optional(name + ".bias"));
  }
  at::Tensor dropped(const at::Tensor& x, const std::string& place) const {
    if (masks_.empty()) return x;
    return x * masks_.at(place).view(x.sizes()) / (1 - config_.dropout);
  }

  at::Tensor microbatch(const Batch& batch, std::size_t m) {
    at::Tensor x = at::embedding(parameter("embedding.weight"), batch.tokens[m].cpu());
    if (config_.position_embedding == PositionEmbedding::learned_absolute)
      x = x + at::embedding(parameter("position_embedding.weight"), positions(batch, m));
    if (config_.encoder_layers > 0) x = with_images(x, batch, m);
    for (std::int64_t l = 0; l < config_.layers; ++l) {
      const std::string layer = "layers." + std::to_string(l),
                        place = std::to_string(m) + "." + std::to_string(l) + ".";
      if (config_.mamba(l)) {
        x = x +
            dropped(mixer(norm(x, layer + ".mamba_norm"), layer + ".mamba", positions(batch, m)),
                    place + "mamba");
        continue;
      }
      x = x + dropped(attention(norm(x, layer + ".attention_norm"), layer + ".attention", place,
                                batch, m),
                      place + "attention");
      const at::Tensor hidden = norm(x, layer + ".mlp_norm");
      x = x + dropped(config_.experts > 0 ? experts(hidden, layer + ".mlp")
                                          : mlp(hidden, layer + ".mlp"),
                      place + "mlp");
    }
    const at::Tensor hidden = norm(x, "final_norm");
    const at::Tensor logits = output(hidden);
    if (!config_.packed)
      return at::cross_entropy_loss(logits, batch.labels[m].cpu().view({-1})) +
             predictions(hidden, batch, m);
    const at::Tensor losses =
        at::cross_entropy_loss(logits, batch.labels[m].cpu().view({-1}), {}, at::Reduction::None);
    return (losses * batch.weights[m].cpu().to(at::kDouble).view({-1})).sum() +
           predictions(hidden, batch, m);
  }

  at::Tensor output(const at::Tensor& hidden) const {
    return linear(hidden, config_.tied_embeddings ? "embedding" : "output")
        .reshape({-1, config_.vocab});
  }

  // [B, S] bool: the positions whose own document, or sequence, has the token `ahead` further on.
  at::Tensor having(std::int64_t ahead, const Batch& batch, std::size_t m) const {
    const std::int64_t rows = config_.microbatch_size, length = config_.seq_length;
    if (!config_.packed) return at::arange(length).lt(length + 1 - ahead).repeat({rows, 1});
    const at::Tensor documents = batch.documents[m].cpu();
    at::Tensor known = at::zeros({rows, length}, at::kBool);
    for (std::int64_t b = 0; b < rows; ++b)
      for (std::int64_t s = 0; s + ahead < length; ++s) {
        const auto document = documents.index({b, s}).item<std::int64_t>();
        known.index_put_(
            {b, s},
            at::scalar_tensor(
                document >= 0 && documents.index({b, s + ahead}).item<std::int64_t>() == document,
                at::kBool));
      }
    return known;
  }

  // hidden [B, S, H]. Positions whose tokens are not known, or of another document, do not count.
  at::Tensor predictions(const at::Tensor& hidden, const Batch& batch, std::size_t m) {
    at::Tensor x = hidden, sum = at::zeros({}, at::kDouble);
    const at::Tensor labels = batch.labels[m].cpu();
    for (std::int64_t depth = 0; depth < config_.mtp_num_layers; ++depth) {
      const std::string number = std::to_string(depth), layer = "mtp.layers." + number,
                        place =
                            std::to_string(m) + "." + std::to_string(config_.layers + depth) + ".";
      // The last positions begin with any token, because no earlier one attends to them.
      const at::Tensor tokens = at::cat({labels.slice(1, depth), labels.slice(1, 0, depth)}, 1);
      const at::Tensor embedded = at::embedding(parameter("embedding.weight"), tokens);
      x = linear(at::cat({norm(embedded, "mtp.embedding_norms." + number),
                          norm(x, "mtp.hidden_norms." + number)},
                         2),
                 "mtp.projections." + number);
      x = x + dropped(attention(norm(x, layer + ".attention_norm"), layer + ".attention", place,
                                batch, m),
                      place + "attention");
      const at::Tensor inner = norm(x, layer + ".mlp_norm");
      x = x +
          dropped(config_.experts > 0 ? experts(inner, layer + ".mlp") : mlp(inner, layer + ".mlp"),
                  place + "mlp");
      x = norm(x, "mtp.final_norms." + number);
      const at::Tensor wanted =
          at::cat({labels.slice(1, depth + 1), labels.slice(1, 0, depth + 1)}, 1);
      const at::Tensor counted = having(depth + 2, batch, m);
      if (counted.any().item<bool>())
        sum = sum + at::cross_entropy_loss(output(x.index({counted})), wanted.index({counted}));
    }
    const auto layers = static_cast<double>(std::max<std::int64_t>(1, config_.mtp_num_layers));
    return sum * (config_.mtp_loss_scaling_factor / layers);
  }

  // x [B, S, H]. Every image is encoded as a sequence of its own, and padding not at all.
  at::Tensor with_images(const at::Tensor& x, const Batch& batch, std::size_t m) const {
    const at::Tensor numbers = batch.images[m].cpu().view({-1}), places = batch.image_rows[m].cpu(),
                     patches = batch.patches[m].cpu().to(at::kDouble);
    std::vector<at::Tensor> rows = x.reshape({-1, config_.hidden}).unbind();
    for (std::int64_t i = 0; i < config_.microbatch_size * config_.images; ++i) {
      const at::Tensor tokens = numbers.eq(i).nonzero().view({-1});
      if (tokens.numel() == 0) continue;
      const at::Tensor encoded = image(patches.index_select(0, tokens));
      for (std::int64_t t = 0; t < tokens.numel(); ++t)
        rows[places[tokens[t].item<std::int64_t>()].item<std::int64_t>()] = encoded[t];
    }
    return at::stack(rows).view(x.sizes());
  }

  // patches [tokens of an image, X]. Returns [tokens of an image, H].
  at::Tensor image(const at::Tensor& patches) const {
    const std::int64_t tokens = patches.size(0), heads = config_.heads,
                       width = config_.hidden / heads;
    at::Tensor x =
        linear(patches, "vision.patch_embedding") + parameter("vision.position_embedding.weight");
    for (std::int64_t l = 0; l < config_.encoder_layers; ++l) {
      const std::string layer = "vision.layers." + std::to_string(l);
      const auto parts = linear(norm(x, layer + ".attention_norm"), layer + ".attention.qkv")
                             .view({tokens, heads, 3, width})
                             .permute({2, 1, 0, 3});  // [3, heads, tokens, D]
      const at::Tensor attended = at::scaled_dot_product_attention(parts[0], parts[1], parts[2]);
      x = x + linear(attended.transpose(0, 1).reshape({tokens, config_.hidden}),
                     layer + ".attention.projection");
      x = x + mlp(norm(x, layer + ".mlp_norm"), layer + ".mlp");
    }
    return linear(norm(x, "vision.final_norm"), "vision.projection");
  }

  // [B, S] int64: the number of tokens before each token in its sequence or document.
  at::Tensor positions(const Batch& batch, std::size_t m) const {
    at::Tensor counted = at::arange(config_.seq_length).repeat({config_.microbatch_size, 1});
    if (!config_.packed) return counted;
    const at::Tensor document = batch.documents[m].cpu();
    for (std::int64_t b = 0; b < config_.microbatch_size; ++b)
      for (std::int64_t s = 1; s < config_.seq_length; ++s)
        if (document.index({b, s}).item<std::int64_t>() !=
            document.index({b, s - 1}).item<std::int64_t>())
          counted.select(0, b)
              .narrow(0, s, config_.seq_length - s)
              .sub_(counted.index({b, s}).item<std::int64_t>());
    return counted;
  }

  at::Tensor attention(const at::Tensor& x, const std::string& name, const std::string& place,
                       const Batch& batch, std::size_t m) const {
    const std::int64_t rows = config_.microbatch_size, length = config_.seq_length,
                       groups = config_.kv_groups;
    const std::int64_t of_group = config_.heads / groups, width = config_.hidden / config_.heads,
                       turned = config_.multi_latent_attention ? width / 2 : width;
    at::Tensor later = at::ones({length, length}, at::kBool).triu(1).unsqueeze(0);
    if (config_.packed)
      later = later.logical_or(
          batch.documents[m].cpu().unsqueeze(2).ne(batch.documents[m].cpu().unsqueeze(1)));
    const at::Tensor angles =
        positions(batch, m).to(at::kDouble).unsqueeze(2) *
        at::pow(10000.0, -at::arange(0, turned, 2, at::kDouble) / double(turned));
    const at::Tensor rotation = at::polar(at::ones_like(angles), angles).unsqueeze(2);
    const auto rotate = [&](const at::Tensor& heads) {
      if (!config_.multi_latent_attention && config_.position_embedding != PositionEmbedding::rope)
        return heads.transpose(1, 2);
      const auto halves = heads.chunk(2, -1);
      const at::Tensor rotated = at::complex(halves[0], halves[1]) * rotation;
      return at::cat({at::real(rotated), at::imag(rotated)}, -1)
          .transpose(1, 2);  // [B, heads, S, D]
    };
    at::Tensor query, key, value;  // [B, heads, S, D]
    if (config_.multi_latent_attention) {
      const std::int64_t heads = config_.heads, latent = config_.hidden / 4;
      const at::Tensor down = linear(x, name + ".kv_down");
      const at::Tensor queries =
          linear(norm(linear(x, name + ".q_down"), name + ".q_norm"), name + ".q_up")
              .view({rows, length, heads, width + turned});
      const at::Tensor both =
          linear(norm(down.slice(2, 0, latent), name + ".kv_norm"), name + ".kv_up")
              .view({rows, length, heads, 2, width});
      const at::Tensor shared = rotate(down.slice(2, latent).unsqueeze(2));
      query =
          at::cat({queries.slice(3, 0, width).transpose(1, 2), rotate(queries.slice(3, width))}, 3);
      key = at::cat({both.select(3, 0).transpose(1, 2), shared.repeat_interleave(heads, 1)}, 3);
      value = both.select(3, 1).transpose(1, 2);
    } else {
      const at::Tensor qkv =
          linear(x, name + ".qkv").view({rows, length, groups, of_group + 2, width});
      query = rotate(qkv.slice(3, 0, of_group).reshape({rows, length, config_.heads, width}));
      key = rotate(qkv.select(3, of_group)).repeat_interleave(of_group, 1);
      value = qkv.select(3, of_group + 1).transpose(1, 2).repeat_interleave(of_group, 1);
    }
    const at::Tensor scores =
        at::matmul(query, key.transpose(2, 3)) / std::sqrt(static_cast<double>(query.size(3)));
    const at::Tensor probabilities = at::softmax(
        scores.masked_fill(later.unsqueeze(1), -std::numeric_limits<double>::infinity()), -1);
    const at::Tensor context =
        at::matmul(dropped(probabilities, place + "core_attention"), value).transpose(1, 2);
    return linear(context.reshape({rows, length, config_.hidden}), name + ".projection");
  }

  // Each document is computed as a separate sequence.
  at::Tensor mixer(const at::Tensor& x, const std::string& name,
                   const at::Tensor& positions) const {
    std::vector<at::Tensor> rows;
    for (std::int64_t b = 0; b < x.size(0); ++b) {
      std::vector<at::Tensor> documents;
      for (std::int64_t begin = 0, end = 1; begin < x.size(1); begin = end++) {
        while (end < x.size(1) && positions.index({b, end}).item<std::int64_t>() > 0) ++end;
        documents.push_back(mixer(x.narrow(0, b, 1).narrow(1, begin, end - begin), name));
      }
      rows.push_back(at::cat(documents, 1));
    }
    return at::cat(rows);
  }

  at::Tensor mixer(const at::Tensor& x, const std::string& name) const {
    const std::int64_t rows = x.size(0), length = x.size(1), groups = config_.kv_groups;
    const std::int64_t heads = config_.heads / groups, width = 2 * config_.hidden / config_.heads,
                       inner = heads * width, state = 16;
    const auto parts = linear(x, name + ".in")
                           .view({rows, length, groups, -1})
                           .split_with_sizes({inner, inner + 2 * state, heads}, 3);
    const std::int64_t channels = groups * (inner + 2 * state);
    const at::Tensor by_channel = parts[1].reshape({rows, length, channels}).transpose(1, 2);
    const at::Tensor convolved =
        at::conv1d(at::constant_pad_nd(by_channel, {3, 0}),
                   parameter(name + ".conv.weight").unsqueeze(1), parameter(name + ".conv.bias"),
                   at::IntArrayRef{1}, at::IntArrayRef{0}, at::IntArrayRef{1}, channels);
    const auto mixed = at::silu(convolved.transpose(1, 2))
                           .view({rows, length, groups, -1})
                           .split_with_sizes({inner, state, state}, 3);
    const at::Tensor steps =
        at::softplus(parts[2] + parameter(name + ".dt_bias").view({groups, heads}));
    const at::Tensor decay =
        at::exp(-steps * at::exp(parameter(name + ".A_log")).view({groups, heads}));
    at::Tensor h = at::zeros({rows, groups, heads, width, state}, at::kDouble);
    std::vector<at::Tensor> outputs;
    for (std::int64_t t = 0; t < length; ++t) {
      const at::Tensor values = mixed[0].select(1, t).view({rows, groups, heads, width});
      const at::Tensor written =
          values.unsqueeze(4) * mixed[1].select(1, t).view({rows, groups, 1, 1, state});
      h = h * decay.select(1, t).view({rows, groups, heads, 1, 1}) +
          written * steps.select(1, t).view({rows, groups, heads, 1, 1});
      outputs.push_back((h * mixed[2].select(1, t).view({rows, groups, 1, 1, state})).sum(4) +
                        values * parameter(name + ".D").view({groups, heads, 1}));
    }
    const at::Tensor gated = at::stack(outputs, 1).flatten(3) * at::silu(parts[0]);
    const at::Tensor normed = at::rms_norm(gated, {inner}, std::nullopt, 1e-5) *
                              parameter(name + ".norm.weight").view({groups, inner});
    return linear(normed.reshape({rows, length, -1}), name + ".out");
  }

  at::Tensor mlp(const at::Tensor& x, const std::string& name) const {
    return linear(activation(linear(x, name + ".up")), name + ".down");
  }

  // The even elements of x [..., 2F] are the gates.
  at::Tensor activation(const at::Tensor& x) const {
    if (config_.activation == Activation::gelu) return at::gelu(x, "tanh");
    const at::Tensor gate = x.slice(-1, 0, std::nullopt, 2);
    return gate * at::sigmoid(gate) * x.slice(-1, 1, std::nullopt, 2);
  }

  at::Tensor experts(const at::Tensor& x, const std::string& name) {
    const std::int64_t experts = config_.experts, tokens = x.numel() / config_.hidden;
    const std::int64_t capacity =
        config_.dropless ? tokens : (tokens * config_.topk + experts - 1) / experts;
    const at::Tensor rows = x.reshape({-1, config_.hidden});
    const at::Tensor logits = linear(rows, name + ".router");
    const auto [values, chosen] = at::topk(logits, config_.topk, 1);
    const at::Tensor scores = at::sigmoid(logits), picked = scores.gather(1, chosen);
    if (config_.router_z_loss)
      of_routers_ = of_routers_ + 1e-3 * at::logsumexp(logits, {1}).pow(2).mean();
    if (config_.router_aux_loss) {
      const at::Tensor share =
          at::one_hot(chosen, experts).to(at::kDouble).sum(at::IntArrayRef{0, 1}) /
          static_cast<double>(tokens * config_.topk);
      const at::Tensor likely = config_.router_score_correction
                                    ? scores / scores.sum(1, /*keepdim=*/true)
                                    : at::softmax(logits, 1);
      of_routers_ =
          of_routers_ + 1e-2 * static_cast<double>(experts) * (likely.mean(0) * share).sum();
    }
    const at::Tensor own_weights = !config_.router_score_correction ? at::softmax(values, 1)
                                   : config_.topk == 1              ? picked
                                                       : picked / picked.sum(1, /*keepdim=*/true);
    const at::Tensor weights = at::zeros_like(logits).scatter(1, chosen, own_weights);
    if (config_.topk < experts) {
      const at::Tensor sorted = std::get<0>(at::sort(logits.detach(), 1, /*descending=*/true));
      note_margin((sorted.select(1, config_.topk - 1) - sorted.select(1, config_.topk))
                      .min()
                      .item<double>());
    }
    at::Tensor out = at::zeros_like(rows);
    for (std::int64_t e = 0; e < experts; ++e) {
      std::vector<std::pair<double, std::int64_t>> takers;
      for (std::int64_t n = 0; n < rows.size(0); ++n)
        if (const double weight = weights.index({n, e}).item<double>(); weight > 0)
          takers.push_back({weight, n});
      std::sort(takers.rbegin(), takers.rend());
      at::Tensor kept = at::zeros({rows.size(0), 1}, at::kDouble);
      for (std::size_t i = 0; i < takers.size() && i < static_cast<std::size_t>(capacity); ++i)
        kept[takers[i].second] = 1;
      if (takers.size() > static_cast<std::size_t>(capacity))
        note_margin(takers[static_cast<std::size_t>(capacity) - 1].first -
                    takers[static_cast<std::size_t>(capacity)].first);
      const auto of = [&](const char* which) {
        const auto found = optional(name + ".experts." + which);
        return found ? std::optional(found->select(0, e)) : std::nullopt;
      };
      at::Tensor inner = at::matmul(rows, of("up.weight")->t());
      if (const auto bias = of("up.bias")) inner = inner + *bias;
      at::Tensor result = at::matmul(activation(inner), of("down.weight")->t());
      if (const auto bias = of("down.bias")) result = result + *bias;
      out = out + weights.narrow(1, e, 1) * kept * result;
    }
    if (config_.shared_expert) out = out + mlp(rows, name + ".shared");
    return out.view(x.sizes());
  }

  void note_margin(double margin) { margin_ = std::min(margin_, margin); }

  ModelConfig config_;
  std::map<std::string, at::Tensor> parameters_, masks_;
  at::Tensor of_routers_;  // [] fp64: of the last loss()
  double margin_ = std::numeric_limits<double>::infinity();
};

}  // namespace graphproof::workloads
