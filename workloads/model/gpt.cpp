#include "workloads/model/gpt.h"

#include <memory>
#include <utility>

namespace graphproof::workloads {
namespace {

at::Tensor own_columns(std::int64_t vocab, const Layout& layout, at::Device device) {
  const std::int64_t columns = vocab / layout.tp;
  return at::arange(columns * layout.tp_rank, columns * (layout.tp_rank + 1), at::kLong).to(device);
}

}  // namespace

Gpt::Gpt(Parameters& parameters, const ModelConfig& config, const Layout& layout, at::Device device,
         faults::FaultHooks& faults)
    : layout_(layout),
      recompute_(config.recompute),
      tables_(config, layout, device, faults),
      mamba_tables_(config, device) {
  // A tied weight also serves the output layer, whose sums are over H elements, so it is smaller.
  // The norms compensate for the small activations.
  const Distribution embedding =
      config.tied_embeddings ? weight_distribution(config.hidden, 1.0) : Distribution{0.0, 1.0};
  if (layout.first_stage() || (layout.last_stage() && config.embeds_on_last_stage()))
    embedding_.emplace(parameters, layout, "embedding", config.vocab, config.hidden, embedding,
                       config.embedding_gradient);
  if (layout.first_stage() && config.position_embedding == PositionEmbedding::learned_absolute)
    positions_.emplace(parameters, layout, "position_embedding", config, embedding);
  for (const fixtures::NamedTensor& parameter : parameters.all())
    before_layers_parameters_.push_back(parameter.tensor);
  chunks_.resize(static_cast<std::size_t>(layout.vpp));
  for (int chunk = 0; chunk < layout.vpp; ++chunk)
    for (std::int64_t l = 0; l < layout.chunk_layers(config); ++l) {
      const std::int64_t index = layout.first_layer(config, chunk) + l;
      chunks_[static_cast<std::size_t>(chunk)].emplace_back(
          parameters, config, layout, tables_, mamba_tables_, device,
          Layer::Place{.index = index,
                       .name = config.layer_name(index),
                       .counter = static_cast<std::size_t>(layout.place(config, index))});
    }
  if (!layout.last_stage()) return;
  final_norm_.emplace(parameters, config, layout, "final_norm");
  if (!config.tied_embeddings)
    output_.emplace(parameters, layout, "output", config.hidden, config.vocab,
                    /*with_bias=*/false, config.grad_accumulation_fusion);
  columns_ = own_columns(config.vocab, layout, device);
  if (config.mtp_num_layers > 0)
    prediction_.emplace(parameters, config, layout, tables_, mamba_tables_, device);
  for (const char* name : {"embedding.", "final_norm.", "output.", "mtp."})
    for (const at::Tensor& parameter : parameters.starting_with(name))
      after_layers_parameters_.push_back(parameter);
}

at::Tensor Gpt::before_layers(std::int64_t chunk, const at::Tensor& tokens,
                              const at::Tensor& received, const ForwardPass& pass) const {
  if (!embeds(chunk)) return received;
  if (pass.gather) pass.gather->wait(before_layers_parameters_);
  const at::Tensor x = embedding_->forward(rows_of(tokens, layout_));
  return positions_ ? positions_->forward(x, pass.documents) : x;
}

at::Tensor Gpt::after_layers(const at::Tensor& x, const at::Tensor& labels,
                             const at::Tensor& weights, const ForwardPass& pass) const {
  if (pass.gather) pass.gather->wait(after_layers_parameters_);
  const at::Tensor hidden = final_norm_->forward(x);
  const at::Tensor loss = loss_of(hidden, labels, weights, pass);
  if (!prediction_) return loss;
  return loss + prediction_->loss(hidden, prediction_->targets(labels, weights, pass),
                                  shared_with_prediction(pass), pass);
}

AroundLayer Gpt::around_prediction(const at::Tensor& labels, const at::Tensor& weights,
                                   const ForwardPass& pass) const {
  const auto targets = std::make_shared<MultiTokenPrediction::Targets>();
  return {.before =
              [=, this](const at::Tensor& x) {
                if (pass.gather) pass.gather->wait(after_layers_parameters_);
                const at::Tensor hidden = final_norm_->forward(x);
                *targets = prediction_->targets(labels, weights, pass);
                return std::pair{
                    prediction_->before_layer(hidden, *targets, shared_with_prediction(pass), pass),
                    hidden};
              },
          .after =
              [=, this](const at::Tensor& output, const at::Tensor& hidden) {
                return loss_of(hidden, labels, weights, pass) +
                       prediction_->after_layer(output, *targets, shared_with_prediction(pass));
              }};
}

/// `pass` outlives what is returned.
MultiTokenPrediction::Shared Gpt::shared_with_prediction(const ForwardPass& pass) const {
  return {
      .embed =
          [this](const at::Tensor& tokens) {
            return embedding_->forward(rows_of(tokens, layout_));
          },
      .loss = [this, &pass](
                  const at::Tensor& predicted, const at::Tensor& labels,
                  const at::Tensor& weights) { return loss_of(predicted, labels, weights, pass); }};
}

/// hidden [N/P, H], after a norm. Returns [] fp32 as forward().
at::Tensor Gpt::loss_of(const at::Tensor& hidden, const at::Tensor& labels,
                        const at::Tensor& weights, const ForwardPass& pass) const {
  return vocab_parallel_cross_entropy(wide(output_of(hidden, pass)), rows_of(labels, layout_),
                                      columns_, layout_,
                                      weights.defined() ? rows_of(weights, layout_) : weights);
}

/// hidden [N/P, H], after a norm. Returns the logits of this rank's part of the vocabulary.
at::Tensor Gpt::output_of(const at::Tensor& hidden, const ForwardPass& pass) const {
  return output_ ? output_->forward(hidden, pass)
                 : column_parallel(hidden, embedding_->weight(), layout_);
}

at::Tensor Gpt::logits(const at::Tensor& tokens, const ForwardPass& pass) const {
  at::Tensor x = pass.cached ? embedding_->forward(tokens) : before_layers(0, tokens, {}, pass);
  for (const Layer& layer : layers(0)) x = layer.forward(x, pass);
  const at::Tensor own = wide(output_of(final_norm_->forward(x), pass));  // [N, V/T]
  if (layout_.tp == 1) return own;
  return comm::all_gather(own.t().contiguous(), layout_.tp_group).t();
}

}  // namespace graphproof::workloads
